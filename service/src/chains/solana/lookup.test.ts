import { expect, test } from 'vitest'
import { BoundedMap } from '../../domain/bounded_map.ts'
import type { SolanaIntent } from '../../domain/payouts/intent.ts'
import { blocksOf } from './blocks.ts'
import { isOver, type Looking, lookup } from './lookup.ts'
import { NoAnswer, NodeRefusal } from './rpc.ts'
import { type Script, scriptedNode } from './testing/scripted_node.ts'

/**
 * What: an attempt is over when the final chain has passed it by and none of the blocks in which it could be has it; a node that has
 * forgotten, that lacks blocks or that is behind is not believed. Why one has failed is told where it says whose fault it is.
 * How: a node that answers as the test says. Every slot has a block here, and its height is 100 less.
 */
const intent = {
  family: 'solana',
  reference: { slot: 1_100, blockhash: 'hash 1100', height: 1_000 },
  lastHeight: 1_151,
} as SolanaIntent
const signature = 'a'.repeat(88)

const block = (slot: number, signatures: readonly string[] = []) => ({
  blockhash: `hash ${slot}`,
  previousBlockhash: `hash ${slot - 1}`,
  parentSlot: slot - 1,
  blockHeight: slot - 100,
  blockTime: 1,
  signatures: ['b'.repeat(88), ...signatures],
})
const slots = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, index) => from + index)

/** Behind one address, and behind: it has not heard of anything that was signed since. */
const behind: Script = {
  getTransaction: () => null,
  getSignatureStatuses: () => ({ context: { slot: 1_150 }, value: [null] }),
}

function lookingAt(script: Script): Looking {
  const rpc = scriptedNode({
    getSlot: () => 1_300,
    getBlock: (slot) => block(Number(slot)),
    getBlocks: (from, to) => slots(Number(from), Number(to)),
    ...behind,
    ...script,
  })
  return { rpc, blocks: blocksOf(rpc), soFar: new BoundedMap(10) }
}

function look(script: Script, txHash: string | null = signature, asked = intent) {
  return isOver(lookingAt(script), asked, txHash)
}

test('it is over when a block above its last is final, and none up to there has it', async () => {
  expect(await look({})).toBe(true)
  expect(await look({ getSlot: () => 1_252 })).toBe(true)
  expect(await look({ getSlot: () => 1_251 }), 'the next block is its last').toBe(false)
  expect(await look({}, null), 'never stored is never sent').toBe(true)
  expect(await look({ getSlot: () => 1_251 }, null)).toBe(false)
})

test('one that was drafted when a block less was counted is over no earlier', async () => {
  const ask = (slot: number) => look({ getSlot: () => slot }, signature, { ...intent, lastHeight: 1_150 })
  expect(await ask(1_251)).toBe(false)
  expect(await ask(1_252)).toBe(true)
})

test.each([1_101, 1_200, 1_251])(
  'it is not over when the block of slot %d has it, whatever an index says',
  async (at) => {
    const having = (slot: unknown) => block(Number(slot), slot === at ? [signature] : [])
    expect(await look({ getBlock: having })).toBe(false)
  },
)

test('slots without a block are passed over, and one whose block was lost is not', async () => {
  const without = (from: unknown, to: unknown) =>
    slots(Number(from), Number(to)).filter((slot) => slot !== 1_200)
  await expect(look({ getBlocks: without }), 'its block is the parent of the next').rejects.toThrow(
    'does not stand on',
  )
  const skipped = (slot: unknown) => ({
    ...block(Number(slot)),
    ...(slot === 1_201 && { previousBlockhash: 'hash 1199' }),
    ...(Number(slot) > 1_200 && { blockHeight: Number(slot) - 101 }),
  })
  const skips = { getBlocks: without, getBlock: skipped }
  expect(await look(skips)).toBe(true)
  expect(await look({ ...skips, getSlot: () => 1_252 }), 'its last one').toBe(false)
  const having = (slot: unknown) => ({ ...skipped(slot), signatures: slot === 1_252 ? [signature] : [] })
  expect(await look({ ...skips, getBlock: having })).toBe(false)
})

test('a node that does not have the blocks on top of the one that it refers to has forgotten', async () => {
  const cleaned = (slot: unknown) => {
    if (Number(slot) < 1_200) throw new NodeRefusal('getBlock', -32_001, 'cleaned up')
    return block(Number(slot))
  }
  await expect(look({ getBlock: cleaned })).rejects.toThrow('cleaned up')
  const lost = (slot: unknown) => {
    if (slot === 1_200) throw new NodeRefusal('getBlock', -32_007, 'skipped, or missing')
    return block(Number(slot))
  }
  await expect(look({ getBlock: lost })).rejects.toThrow('forgotten')
  const elsewhere = { ...intent, reference: { ...intent.reference, blockhash: 'of another chain' } }
  await expect(look({}, signature, elsewhere)).rejects.toThrow('does not stand on')
})

test('a node that does not tell of all the blocks in which it could be cannot say', async () => {
  const short = (from: unknown) => slots(Number(from), 1_250)
  await expect(look({ getBlocks: short })).rejects.toThrow('lacks blocks')
  await expect(look({ getBlocks: () => [] })).rejects.toThrow('lacks blocks')
})

test('a line that breaks goes on where it broke, and what was read is not read again', async () => {
  let left = 0
  const asked: number[] = []
  const looking = lookingAt({
    getBlock: (slot, options) => {
      const { transactionDetails } = options as { readonly transactionDetails: string }
      if (transactionDetails !== 'signatures') return block(Number(slot))
      if (left-- <= 0) throw new NoAnswer('getBlock', 'the line is cut')
      asked.push(Number(slot))
      return block(Number(slot))
    },
  })
  let told = 0
  const once = () =>
    isOver(looking, intent, signature, async () => {
      told += 1
    })
  for (left = 50; ; left = 50) {
    if (await once().catch(() => false)) break
  }
  expect(asked).toEqual(slots(1_101, 1_251))
  expect(told, 'before each block, and each that did not come').toBe(154)
  expect(await once()).toBe(true)
  expect(asked.length).toBe(151)
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

test('one in a block that is not final yet waits, and one that nobody has heard of is nowhere', async () => {
  const find = (value: unknown) => {
    const node = scriptedNode({
      ...behind,
      getSignatureStatuses: () => ({ context: { slot: 1_150 }, value }),
    })
    return lookup(node, blocksOf(node), 'SOL:SOL', signature)
  }
  expect(await find([{ slot: 1_149, confirmationStatus: 'processed', err: null }])).toEqual({
    where: 'mempool',
  })
  expect(await find([null])).toEqual({ where: 'absent' })
  await expect(find([])).rejects.toThrow(NoAnswer)
})

test('a payment that makes an account costs its rent as well, less what somebody had sent there', async () => {
  const made = {
    ...{ accountIndex: 1, mint: 'a mint', owner: 'somebody', programId: 'a program' },
    uiTokenAmount: { amount: '7' },
  }
  const meta = {
    ...{ err: null, fee: 5_000, preBalances: [9_000_000, 900_000], postBalances: [7_855_720, 2_039_280] },
    ...{ preTokenBalances: [], postTokenBalances: [made] },
  }
  const node = scriptedNode({
    getSlot: () => 1_300,
    getBlock: (slot) => block(Number(slot)),
    getTransaction: () => ({ slot: 1_200, meta }),
  })
  const status = await lookup(node, blocksOf(node), 'SOL:SOL', signature)
  expect(status).toMatchObject({ where: 'block', succeeded: true, cost: { units: 1_144_280n } })
})
