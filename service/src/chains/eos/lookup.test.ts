import { expect, test } from 'vitest'
import { BoundedMap } from '../../domain/bounded_map.ts'
import type { EosIntent } from '../../domain/payouts/intent.ts'
import { blocksOf } from './blocks.ts'
import { isOver, type Looking, lookup } from './lookup.ts'
import { NoAnswer, NodeRefusal } from './rpc.ts'
import {
  CHAIN_ID,
  idOf,
  infoAt,
  missing,
  nodeAt,
  type Script,
  scriptedNode,
  tracedBlock,
} from './testing/scripted_node.ts'

const hash = 'cd'.repeat(32)
/** Refers to block 10, and may be in a block until the one of 50 seconds, which is the hundredth. */
const intent: EosIntent = {
  family: 'eos',
  chain: 'EOS',
  chainId: 'aa'.repeat(32),
  payoutId: 'CB1:1',
  attempt: 1,
  from: { purpose: 'reserve', index: 0 },
  account: 'mycambist123',
  payment: { to: 'alice', memo: '7', units: 1n },
  reference: { id: idOf(10), timeMs: 5_000 },
  expirationMs: 50_000,
  netWordsMax: 1_000,
}
const own = [{ id: hash, status: 'executed', actions: [] }]
const lookingAt = (script: Script): Looking => {
  const rpc = scriptedNode(script)
  return { rpc, blocks: blocksOf(rpc, CHAIN_ID), soFar: new BoundedMap(10) }
}
const overBy = (script: Script, txHash: string | null = hash) => isOver(lookingAt(script), intent, txHash)

test('an attempt is over when an irreversible block is later than its expiration and none before has it', async () => {
  expect(await overBy(nodeAt(101))).toBe(true)
  expect(await overBy(nodeAt(100)), 'a block of that very time may have it').toBe(false)
  expect(await overBy(nodeAt(100), null)).toBe(false)
  expect(await overBy(nodeAt(101), null), 'never stored is never sent').toBe(true)
  for (const height of [11, 57, 100]) expect(await overBy(nodeAt(101, { [height]: own }))).toBe(false)
})

test('one that its block has as failed is not over: it was in a block', async () => {
  expect(await overBy(nodeAt(101, { 50: [{ ...own[0], status: 'hard_fail' }] }))).toBe(false)
})

test('a node that cannot show all of those blocks cannot say', async () => {
  const holed = (height: number): Script => ({
    ...nodeAt(200),
    'trace_api/get_block': (asked) => {
      if (asked.block_num === height) throw missing('trace_api/get_block')
      return nodeAt(200)['trace_api/get_block']?.(asked)
    },
  })
  for (const height of [11, 57, 100]) await expect(overBy(holed(height))).rejects.toThrow('no trace')
  const forked: Script = {
    ...nodeAt(200),
    'trace_api/get_block': ({ block_num }) => ({
      ...tracedBlock(block_num as number, 'irreversible'),
      ...(block_num === 57 && { previous_id: idOf(3) }),
    }),
  }
  await expect(overBy(forked)).rejects.toThrow('does not follow')
  const behind: Script = { ...nodeAt(200), 'chain/get_info': () => infoAt(90) }
  expect(await overBy(behind), 'what it says of itself counts').toBe(false)
})

const find = (script: Script, attempt?: EosIntent) => lookup(lookingAt(script), hash, attempt)
const traced = (block_num: number, id = hash) => ({
  'trace_api/get_transaction_trace': () => ({ id, block_num }),
})

test('a transaction is where the traces say, and still waits in a block that may be undone', async () => {
  const at50 = nodeAt(50, { 50: own, 51: own })
  expect(await find({ ...at50, ...traced(50) })).toEqual({
    where: 'block',
    block: { height: 50, hash: idOf(50) },
    succeeded: true,
    cost: { asset: 'EOS:EOS', units: 0n },
  })
  expect(await find({ ...at50, ...traced(51) })).toEqual({ where: 'mempool' })
  const failed = nodeAt(50, { 50: [{ ...own[0], status: 'hard_fail' }] })
  expect(await find({ ...failed, ...traced(50) })).toMatchObject({ succeeded: false })
})

const NOT_INDEXED = 'Trace API: transaction id missing in the transaction id log files'
const refusing = (reason: string) => ({
  'trace_api/get_transaction_trace': () => {
    throw new NodeRefusal('trace_api/get_transaction_trace', 404, { code: 0, name: '', reason })
  },
})

test('absent is what neither the index nor the blocks have; a node without traces says nothing', async () => {
  const absent = { ...nodeAt(50), ...refusing(NOT_INDEXED) }
  expect(await find(absent)).toEqual({ where: 'absent' })
  expect(await find(absent, intent), 'it may come yet').toEqual({ where: 'absent' })
  expect(await find({ ...nodeAt(200), ...refusing(NOT_INDEXED) }, intent), 'it never will').toEqual({
    where: 'absent',
  })
  const blind = { ...nodeAt(50), ...refusing('Not Found: Unknown Endpoint') }
  for (const attempt of [undefined, intent])
    await expect(find(blind, attempt)).rejects.toThrow('Unknown Endpoint')
})

test('a payout that the index does not find is in the block that has it', async () => {
  const unindexed = (irreversible: number, at: number, more: Partial<(typeof own)[0]> = {}) =>
    find({ ...nodeAt(irreversible, { [at]: [{ ...own[0], ...more }] }), ...refusing(NOT_INDEXED) }, intent)
  for (const height of [11, 57, 100]) {
    expect(await unindexed(300, height)).toEqual({
      where: 'block',
      block: { height, hash: idOf(height) },
      succeeded: true,
      cost: { asset: 'EOS:EOS', units: 0n },
    })
  }
  expect(await unindexed(60, 57, { status: 'hard_fail' })).toMatchObject({ succeeded: false })
  expect(await unindexed(60, 61), 'its block may be undone yet').toEqual({ where: 'absent' })
})

const silent = {
  'trace_api/get_transaction_trace': () => {
    throw new NoAnswer('trace_api/get_transaction_trace', 'timeout')
  },
}

test('where the irreversible blocks say it, a node that reads all its index for what it does not have is not asked', async () => {
  const block = { height: 57, hash: idOf(57) }
  expect(await find({ ...nodeAt(200), ...silent }, intent)).toEqual({ where: 'absent' })
  const mined = nodeAt(200, { 57: own })
  expect(await find({ ...mined, ...silent }, intent)).toMatchObject({ where: 'block', block })
  await expect(find({ ...nodeAt(50), ...silent }, intent), 'it may wait').rejects.toThrow('timeout')
  await expect(find({ ...mined, ...silent }), 'nobody knows since when').rejects.toThrow('timeout')
})

test('a payout waits in a block that may be undone, and is in one that is final since', async () => {
  const pending = nodeAt(50, { 51: own })
  expect(await find({ ...pending, ...traced(51) }, intent)).toEqual({ where: 'mempool' })
  // The block became final between the two questions.
  const since = { ...nodeAt(51, { 51: own }), ...traced(51), 'chain/get_info': () => infoAt(50) }
  expect(await find(since, intent)).toMatchObject({ where: 'block', block: { height: 51 } })
})

test('a node that lacks the blocks before it is believed where its index names one that it has', async () => {
  const mined = nodeAt(200, { 57: own })
  const holed: Script = {
    ...mined,
    'trace_api/get_block': (of) => {
      if (of.block_num === 30) throw missing('trace_api/get_block')
      return mined['trace_api/get_block']?.(of)
    },
  }
  expect(await find({ ...holed, ...traced(57) }, intent)).toMatchObject({
    where: 'block',
    block: { height: 57 },
  })
  await expect(find({ ...holed, ...refusing(NOT_INDEXED) }, intent)).rejects.toThrow('no trace')
})

test('a look goes on where the one before has ended', async () => {
  let irreversible = 50
  const asked: unknown[] = []
  const node: Script = {
    'chain/get_info': () => infoAt(irreversible),
    'trace_api/get_block': (of) => {
      asked.push(of.block_num)
      return nodeAt(irreversible, { 58: own })['trace_api/get_block']?.(of)
    },
    ...refusing(NOT_INDEXED),
  }
  const looking = lookingAt(node)
  expect(await lookup(looking, hash, intent)).toEqual({ where: 'absent' })
  irreversible = 60
  expect(await lookup(looking, hash, intent)).toMatchObject({ where: 'block', block: { height: 58 } })
  expect(asked).toEqual(Array.from({ length: 48 }, (_, at) => 11 + at))
})

test('what does not fit together is no answer', async () => {
  await expect(find({ ...nodeAt(50), ...traced(50) }), 'its block does not have it').rejects.toThrow(
    'ask again',
  )
  await expect(find({ ...nodeAt(50, { 50: own }), ...traced(50, 'ab'.repeat(32)) })).rejects.toThrow(
    'another',
  )
})

test("a node that has become another network's says nothing", async () => {
  const other: Script = {
    ...nodeAt(200),
    'chain/get_info': () => ({ ...infoAt(200), chain_id: 'ee'.repeat(32) }),
  }
  await expect(overBy(other, null)).rejects.toThrow('it is of the chain')
})

test('a block is told once it is irreversible, and by its own height', async () => {
  const blocks = blocksOf(scriptedNode(nodeAt(50)), CHAIN_ID)
  expect(await blocks.final(50)).toMatchObject({ height: 50, hash: idOf(50) })
  expect(await blocks.final(51)).toBeNull()
  const lying = { ...nodeAt(50), 'trace_api/get_block': () => tracedBlock(49, 'irreversible') }
  await expect(blocksOf(scriptedNode(lying), CHAIN_ID).final(50)).rejects.toThrow('it is block 49')
  const lagging = { ...nodeAt(50), 'trace_api/get_block': () => tracedBlock(50, 'pending') }
  await expect(blocksOf(scriptedNode(lagging), CHAIN_ID).final(50), 'its traces are behind').rejects.toThrow(
    'no trace',
  )
})
