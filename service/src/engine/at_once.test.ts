import { expect, test } from 'vitest'
import { atOnce } from './at_once.ts'

/**
 * What: many items are worked on with a limit on how many at once, and a failure leaves nothing running.
 * How: work that ends when the test says so.
 */
function gate() {
  const open = new Map<number, { end(): void; fail(error: Error): void }>()
  const work = (item: number) =>
    new Promise<string>((resolve, reject) => {
      open.set(item, {
        end: () => {
          open.delete(item)
          resolve(`done ${item}`)
        },
        fail: (error) => {
          open.delete(item)
          reject(error)
        },
      })
    })
  return { open, work }
}

const turn = () => new Promise<void>((resolve) => setImmediate(resolve))

test('no more than the limit are under way, and the answers stand in the order of the items', async () => {
  const { open, work } = gate()
  const all = atOnce(2, [0, 1, 2], work)
  await turn()
  expect([...open.keys()]).toEqual([0, 1])
  open.get(1)?.end()
  await turn()
  expect([...open.keys()]).toEqual([0, 2])
  open.get(2)?.end()
  open.get(0)?.end()
  expect(await all).toEqual(['done 0', 'done 1', 'done 2'])
  expect(await atOnce(5, [], work)).toEqual([])
})

test('after a failure nothing is begun, and it is told when nothing is under way any more', async () => {
  const { open, work } = gate()
  let told: unknown = null
  const all = atOnce(2, [0, 1, 2, 3], work).catch((error: unknown) => {
    told = error
  })
  await turn()
  open.get(0)?.fail(new Error('no'))
  await turn()
  expect([...open.keys()]).toEqual([1])
  expect(told).toBeNull()
  open.get(1)?.end()
  await all
  expect(told).toEqual(new Error('no'))
})
