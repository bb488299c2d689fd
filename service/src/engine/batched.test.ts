import { expect, test } from 'vitest'
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

const turn = () => new Promise((resolve) => setImmediate(resolve))

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

test('with whole turns, what arrives in one turn of the event loop is one write from the first on', async () => {
  const { write, items, at } = openWrites()
  const put = batched(write, { isWholeTurn: true })
  const answers = Promise.all(['a', 'b', 'c'].map(put))
  expect(items()).toEqual([])
  await turn()
  expect(items()).toEqual([['a', 'b', 'c']])
  at(0)?.end()
  expect(await answers).toEqual(['a!', 'b!', 'c!'])
})
