import { expect, test } from 'vitest'
import type { SolanaIntent } from '../../domain/payouts/intent.ts'
import { blocksOf } from './blocks.ts'
import { isOver, lookup } from './lookup.ts'
import { NodeRefusal } from './rpc.ts'
import { type Script, scriptedNode } from './testing/scripted_node.ts'

/**
 * What: an attempt is over when the final chain has passed it by and does not have it; a node that has forgotten, that lacks
 * blocks or that goes backwards is not believed. Why one has failed is told where it says whose fault it is.
 * How: a node that answers as the test says. Every slot has a block here, and its height is 100 less.
 */
const intent = {
  family: 'solana',
  reference: { slot: 1_100, blockhash: 'hash 1100', height: 1_000 },
  lastHeight: 1_151,
} as SolanaIntent
const signature = 'a'.repeat(88)

const block = (slot: number) => ({
  blockhash: `hash ${slot}`,
  previousBlockhash: `hash ${slot - 1}`,
  parentSlot: slot - 1,
  blockHeight: slot - 100,
  blockTime: 1,
})
const slots = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, index) => from + index)
const inContext = (value: unknown) => ({ context: { slot: 1 }, value })

function look(script: Script, txHash: string | null = signature) {
  const node = scriptedNode({
    getSlot: () => 1_300,
    getBlock: (slot) => block(Number(slot)),
    getBlocks: (from, to) => slots(Number(from), Number(to)),
    getTransaction: () => null,
    getSignatureStatuses: () => inContext([null]),
    ...script,
  })
  return isOver(node, blocksOf(node), intent, txHash)
}

test('it is over when a block above its last is final, and nobody has it', async () => {
  expect(await look({})).toBe(true)
  expect(await look({ getSlot: () => 1_252 })).toBe(true)
  expect(await look({ getSlot: () => 1_251 }), 'the next block is its last').toBe(false)
  expect(await look({}, null), 'never stored is never sent').toBe(true)
  expect(await look({ getSlot: () => 1_251 }, null)).toBe(false)
})

test('one that was drafted when a block less was counted is over no earlier', async () => {
  const node = (slot: number) =>
    scriptedNode({
      getSlot: () => slot,
      getBlock: (asked) => block(Number(asked)),
      getBlocks: (from, to) => slots(Number(from), Number(to)),
      getTransaction: () => null,
      getSignatureStatuses: () => inContext([null]),
    })
  const ask = (slot: number) =>
    isOver(node(slot), blocksOf(node(slot)), { ...intent, lastHeight: 1_150 }, signature)
  expect(await ask(1_251)).toBe(false)
  expect(await ask(1_252)).toBe(true)
})

test('it is not over when a block has it, final or not', async () => {
  expect(await look({ getTransaction: () => ({ slot: 1_200 }) })).toBe(false)
  expect(await look({ getSignatureStatuses: () => inContext([{ slot: 1_299 }]) })).toBe(false)
})

test('a node that does not have the block that it refers to has forgotten', async () => {
  const other = (slot: unknown) => ({ ...block(Number(slot)), blockhash: 'of another chain' })
  await expect(look({ getBlock: other })).rejects.toThrow('forgotten')
  const cleaned = (slot: unknown) => {
    if (Number(slot) < 1_200) throw new NodeRefusal('getBlock', -32_001, 'cleaned up')
    return block(Number(slot))
  }
  await expect(look({ getBlock: cleaned })).rejects.toThrow('cleaned up')
})

test('a node that lacks one of the blocks in which it could be cannot tell', async () => {
  const hole = (from: unknown, to: unknown) =>
    slots(Number(from), Number(to)).filter((slot) => slot !== 1_200)
  await expect(look({ getBlocks: hole })).rejects.toThrow('lacks blocks')
  // Its own height is 1,151 at the most, which is slot 1,251 here.
  const short = (from: unknown) => slots(Number(from), 1_250)
  await expect(look({ getBlocks: short })).rejects.toThrow('lacks blocks')
  await expect(look({ getBlocks: () => [] })).rejects.toThrow('lacks blocks')
})

test('a node that goes backwards meanwhile is not believed', async () => {
  let asked = 0
  expect(await look({ getSlot: () => (asked++ === 0 ? 1_300 : 1_200) })).toBe(false)
})

test.each([
  ['a program moves more than is there', { InstructionError: [2, { Custom: 1 }] }, 'ours'],
  ['who pays keeps less than its rent', { InsufficientFundsForRent: { account_index: 0 } }, 'ours'],
  ['who is paid has less than its rent', { InsufficientFundsForRent: { account_index: 1 } }, undefined],
  ['the account that it pays is frozen', { InstructionError: [1, { Custom: 17 }] }, undefined],
  ['the account that it pays is another’s', { InstructionError: [0, 'IllegalOwner'] }, undefined],
  ['of something else', 'ProgramCacheHitMaxLimit', undefined],
])('a payment that fails because %s', async (_, err, fault) => {
  const balances = { preBalances: [7_000], postBalances: [2_000] }
  const meta = { err, fee: 5_000, ...balances, preTokenBalances: [], postTokenBalances: [] }
  const node = scriptedNode({
    getSlot: () => 1_300,
    getBlock: (slot) => block(Number(slot)),
    getTransaction: () => ({ slot: 1_200, meta }),
  })
  const status = await lookup(node, blocksOf(node), 'SOL:SOL', signature)
  expect(status).toMatchObject({ where: 'block', succeeded: false, cost: { units: 5_000n } })
  expect(status.where === 'block' && status.fault).toBe(fault)
})
