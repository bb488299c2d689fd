import { expect, test } from 'vitest'
import { balance } from './balance.ts'
import { blocksOf } from './blocks.ts'
import { type Script, scriptedNode } from './testing/scripted_node.ts'
import { transfersToOurs } from './transfers.ts'

/**
 * What: what a validator is paid by a block is money that we hold, when it has named an address of ours for it.
 * How: a node that answers as the test says. In slot 101 a block is rewarded; every other one is empty.
 */
const us = '7UkEVmiaC9pPb5DtFrP4pW2ykVAHpmGLUALV9WVRwAo2'
const them = 'H8sMJSCQxfKiFTCfDR3DUMLPwcRbM61LGFJ8N4dK3WjS'
const listed = { native: 'SOL:SOL', tokens: new Map() } as const

const [START, VOTING, PAID, FEE] = [5_000_000, 7_000, 2_000_000, 9_000]
const END = START + VOTING + PAID + FEE

const rewards = [
  {
    pubkey: them,
    lamports: 400_000_000_000_000_000,
    postBalance: 0,
    rewardType: 'Staking',
    commission: null,
  },
  { pubkey: us, lamports: VOTING, postBalance: START + VOTING, rewardType: 'Voting', commission: 5 },
  { pubkey: us, lamports: 0, postBalance: START + VOTING, rewardType: 'Voting', commission: 5 },
  { pubkey: us, lamports: FEE, postBalance: END, rewardType: 'Fee', commission: null },
]
const transaction = {
  transaction: { accountKeys: [{ pubkey: them }, { pubkey: us }], signatures: ['signature'] },
  meta: {
    err: null,
    preBalances: [9e9, START + VOTING],
    postBalances: [8e9, START + VOTING + PAID],
    preTokenBalances: [],
    postTokenBalances: [],
  },
}

function block(slot: number, { transactionDetails, rewards: isAsked }: Record<string, unknown>) {
  const isRewarded = slot === 101
  return {
    blockhash: `hash ${slot}`,
    previousBlockhash: `hash ${slot - 1}`,
    parentSlot: slot - 1,
    blockHeight: slot,
    blockTime: 1,
    ...(transactionDetails !== 'none' && { transactions: isRewarded ? [transaction] : [] }),
    ...(isAsked === true && { rewards: isRewarded ? rewards : [] }),
  }
}

/** The newest final slot is `newest`, of which balances are told. */
function nodeAt(newest: number, script: Script = {}) {
  const held = { lamports: newest < 101 ? START : END, owner: '1'.repeat(32), data: ['', 'base64'] }
  return scriptedNode({
    getSlot: () => 103,
    getBlock: (slot, options) => block(Number(slot), options as Record<string, unknown>),
    getMultipleAccounts: () => ({ context: { slot: newest }, value: [held] }),
    ...script,
  })
}

test('what a block gives by itself is told as the block’s, beside what its transactions brought', async () => {
  const found = await blocksOf(nodeAt(103)).at(101)
  expect(found).not.toBeNull()
  if (found === null) return
  const asked: string[][] = []
  const transfers = await transfersToOurs(found, listed, async (addresses) => {
    asked.push([...addresses])
    return new Set([us])
  })
  const ofBlock = { txHash: 'hash 101', to: us, asset: 'SOL:SOL', isOfBlock: true }
  expect(transfers).toEqual([
    { ...ofBlock, id: 'hash 101:reward:1', units: BigInt(VOTING) },
    { ...ofBlock, id: 'hash 101:reward:3', units: BigInt(FEE) },
    { id: 'signature:sol:1', txHash: 'signature', to: us, asset: 'SOL:SOL', units: BigInt(PAID) },
  ])
  expect(asked, 'all at once').toHaveLength(1)
})

test.each([
  [103, 100, START],
  [103, 101, END],
  [100, 100, START],
  [100, 101, END],
  [100, 102, END],
])('of what is held in slot %i it is known what was held in slot %i', async (newest, height, held) => {
  const rpc = nodeAt(newest)
  const blocks = blocksOf(rpc)
  expect(await balance({ rpc, blocks }, 'SOL:SOL', null, [us], height)).toBe(BigInt(held))
})

test('a node that tells a block and not what it gave by itself gives no answer', async () => {
  const silent = nodeAt(103, { getBlock: (slot) => block(Number(slot), { transactionDetails: 'accounts' }) })
  await expect(blocksOf(silent).at(101)).rejects.toThrow('getBlock rewards')
})

test('what a block takes from an address is no deposit', async () => {
  const taken = { at: 0, address: us, lamports: -VOTING, isAtEnd: false }
  const transfers = await transfersToOurs(
    { hash: 'hash 101', transactions: [], rewards: [taken] },
    listed,
    async (addresses) => new Set(addresses),
  )
  expect(transfers).toEqual([])
})
