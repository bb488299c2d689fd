import { expect, test } from 'vitest'
import { balance } from './balance.ts'
import { blocksOf } from './blocks.ts'
import { scriptedNode } from './testing/scripted_node.ts'

/**
 * What: what an address held at a slot is followed through every transaction between that slot and the newest, in their order.
 * How: a node that answers as the test says. In slot 101 two transactions pay us and a third is paid by us; slot 102 is empty.
 */
const us = '7UkEVmiaC9pPb5DtFrP4pW2ykVAHpmGLUALV9WVRwAo2'
const them = 'H8sMJSCQxfKiFTCfDR3DUMLPwcRbM61LGFJ8N4dK3WjS'
const HELD = [5_000_000, 7_000_000, 11_000_000, 10_000_000] as const
const [START, , , END] = HELD

const transactions = HELD.slice(1).map((after, index) => ({
  transaction: { accountKeys: [{ pubkey: them }, { pubkey: us }], signatures: [`signature ${index}`] },
  meta: {
    ...{ err: null, preTokenBalances: [], postTokenBalances: [] },
    ...{ preBalances: [9e9, HELD[index]], postBalances: [9e9, after] },
  },
}))

function nodeAt(newest: number) {
  const held = { lamports: newest < 101 ? START : END, owner: '1'.repeat(32), data: ['', 'base64'] }
  return scriptedNode({
    getSlot: () => 102,
    getBlock: (slot) => ({
      ...{ blockhash: `hash ${slot}`, previousBlockhash: `hash ${Number(slot) - 1}` },
      ...{ parentSlot: Number(slot) - 1, blockHeight: slot, blockTime: 1, rewards: [] },
      transactions: slot === 101 ? transactions : [],
    }),
    getMultipleAccounts: () => ({ context: { slot: newest }, value: [held] }),
  })
}

test.each([
  [102, 100, START],
  [102, 101, END],
  [100, 102, END],
])('of what is held in slot %i it is known what was held in slot %i', async (newest, height, held) => {
  const rpc = nodeAt(newest)
  expect(await balance({ rpc, blocks: blocksOf(rpc) }, 'SOL:SOL', null, [us], height)).toBe(BigInt(held))
})
