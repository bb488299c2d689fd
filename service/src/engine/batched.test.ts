import { expect, test } from 'vitest'
import { soon } from '../../test/harness/eventually.ts'
import { batched } from './batched.ts'

/**
 * What: what arrives during a write goes together into the next one, nobody waits without need, and what one item
 * does wrong is its own trouble.
 * How: writes that the test ends by hand.
 */
function openWrites() {
  const under: { items: readonly string[]; end(): void; fail(error: Error): void }[] = []
  const write = (items: readonly string[]) =>
    new Promise<readonly string[]>((resolve, reject) => {
      under.push({ items, end: () => resolve(items.map((item) => `${item}!`)), fail: reject })
    })
  return { write, items: () => under.map(({ items }) => items), at: (index: number) => under[index] }
}

const turn = () => new Promise<void>((resolve) => setImmediate(resolve))

test('a lonely item is written at once, alone', async () => {
  const { write, items, at } = openWrites()
  const answer = batched(write)('a')
  expect(items()).toEqual([['a']])
  at(0)?.end()
  expect(await answer).toBe('a!')
})

test('what arrives during a write is the next one, in its order, and each gets its own answer', async () => {
  const { write, items, at } = openWrites()
  const put = batched(write, { itemsMax: 3 })
  const answers = Promise.all(['a', 'b', 'c', 'd', 'e'].map(put))
  expect(items()).toEqual([['a']])
  at(0)?.end()
  await turn()
  expect(items()).toEqual([['a'], ['b', 'c', 'd']])
  at(1)?.end()
  await turn()
  expect(items()).toEqual([['a'], ['b', 'c', 'd'], ['e']])
  at(2)?.end()
  expect(await answers).toEqual(['a!', 'b!', 'c!', 'd!', 'e!'])
})

test('when all that waited is written, the next item is written at once again', async () => {
  const { write, items, at } = openWrites()
  const put = batched(write)
  const first = put('a')
  at(0)?.end()
  expect(await first).toBe('a!')
  void put('b')
  await turn()
  expect(items()).toEqual([['a'], ['b']])
})

test('when one item may be to blame each is written alone, and only that one fails', async () => {
  const bad = new Error('bad')
  const write = async (items: readonly string[]) => {
    if (items.includes('bad')) throw bad
    return items
  }
  const put = batched(write, { isOneToBlame: (error) => error === bad })
  const settled = await Promise.allSettled(['a', 'b', 'bad', 'c'].map(put))
  expect(settled.map(({ status }) => status)).toEqual(['fulfilled', 'fulfilled', 'rejected', 'fulfilled'])
})

test('when no item is to blame all of the batch fail after one try, and the next batch is tried', async () => {
  const tries: (readonly string[])[] = []
  const write = async (items: readonly string[]) => {
    tries.push(items)
    if (tries.length === 2) throw new Error('the database is away')
    return items
  }
  const put = batched(write)
  const settled = await Promise.allSettled(['a', 'b', 'c'].map(put))
  expect(settled.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'rejected'])
  expect(tries).toEqual([['a'], ['b', 'c']])
  expect(await put('d')).toBe('d')
})

test('who waits for more writes when two turns have brought nobody, and takes all who came in the turns before', async () => {
  const { write, items, at } = openWrites()
  const put = batched(write, { endOfTurn: turn })
  const answers = Promise.all(['a', 'b'].map(put))
  await turn()
  const later = put('c')
  await turn()
  await turn()
  expect(items()).toEqual([])
  await turn()
  await turn()
  expect(items()).toEqual([['a', 'b', 'c']])
  at(0)?.end()
  expect(await answers).toEqual(['a!', 'b!'])
  expect(await later).toBe('c!')
})

test('who waits for more takes with those who came during a write also those who come when it is answered', async () => {
  const { write, items, at } = openWrites()
  const put = batched(write, { endOfTurn: turn })
  const first = put('a').then(() => put('c'))
  await soon(() => expect(items()).toEqual([['a']]))
  const second = put('b')
  at(0)?.end()
  await soon(() => expect(items()).toEqual([['a'], ['b', 'c']]))
  at(1)?.end()
  expect(await Promise.all([first, second])).toEqual(['c!', 'b!'])
})

test('who waits for more waits no longer when a write is full, however many still arrive', async () => {
  const { write, items } = openWrites()
  const put = batched(write, { endOfTurn: turn, itemsMax: 3 })
  for (const item of ['a', 'b', 'c', 'd', 'e', 'f']) {
    void put(item)
    await turn()
  }
  expect(items()).toEqual([['a', 'b', 'c']])
})

test('who waits for more waits for eight turns at the most', async () => {
  const { write, items } = openWrites()
  const put = batched(write, { endOfTurn: turn })
  let came = 0
  while (items().length === 0) {
    void put(String(came))
    came += 1
    await turn()
  }
  expect(items()[0]).toHaveLength(8)
})
