import { expect, test } from 'vitest'
import { blocksOf } from './blocks.ts'
import { NoAnswer, NodeRefusal } from './rpc.ts'
import { scriptedNode } from './testing/scripted_node.ts'

/**
 * What: of a slot the node is asked once, by however many at the same time; what it did not answer, or was not final, is asked
 * again.
 * How: a node that answers as the test says, and counts.
 */
const block = (slot: number) => ({
  ...{ blockhash: `hash ${slot}`, previousBlockhash: `hash ${slot - 1}`, parentSlot: slot - 1 },
  ...{ blockHeight: slot, blockTime: 1, transactions: [], rewards: [] },
})

/** Its newest slot is 100 at first. */
function countingNode() {
  const state = { newest: 100, isSilent: false }
  const asked: number[] = []
  const node = scriptedNode({
    getSlot: () => state.newest,
    getBlock: (slot) => {
      asked.push(Number(slot))
      if (state.isSilent) throw new NoAnswer('getBlock', 'timeout')
      return block(Number(slot))
    },
  })
  return { blocks: blocksOf(node), state, asked }
}

test('many who ask for a slot at once, and all who come later, get one answer', async () => {
  const { blocks, asked } = countingNode()
  const found = await Promise.all(Array.from({ length: 16 }, () => blocks.at(90)))
  expect(new Set(found.map((one) => one?.hash))).toEqual(new Set(['hash 90']))
  expect((await blocks.at(90))?.hash).toBe('hash 90')
  expect((await blocks.header(90))?.hash).toBe('hash 90')
  expect(asked).toEqual([90])
})

test('what a node did not answer is asked again', async () => {
  const { blocks, state, asked } = countingNode()
  state.isSilent = true
  const answers = await Promise.allSettled([blocks.at(90), blocks.at(90), blocks.header(90)])
  expect(answers.map(({ status }) => status)).toEqual(['rejected', 'rejected', 'rejected'])
  state.isSilent = false
  expect((await blocks.at(90))?.hash).toBe('hash 90')
  expect(asked).toEqual([90, 90])
})

test('a slot that was not final is asked again', async () => {
  const { blocks, state, asked } = countingNode()
  expect(await Promise.all([blocks.at(101), blocks.at(101)])).toEqual([null, null])
  state.newest = 101
  expect((await blocks.at(101))?.hash).toBe('hash 101')
  expect(asked).toEqual([101])
})

test('a slot that was refused once and is there is not taken for skipped', async () => {
  let isBusy = true
  const blocks = blocksOf(
    scriptedNode({
      getSlot: () => 100,
      getBlocks: (from) => [from],
      getBlock: (slot) => {
        if (!isBusy) return block(Number(slot))
        isBusy = false
        throw new NodeRefusal('getBlock', -32_007, '50/second request limit reached')
      },
    }),
  )
  await expect(blocks.at(90)).rejects.toThrow('slot 90 was not skipped: ask again')
  expect((await blocks.at(90))?.hash).toBe('hash 90')
})
