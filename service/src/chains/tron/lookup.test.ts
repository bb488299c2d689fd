import { expect, test } from 'vitest'
import { BoundedMap } from '../../domain/bounded_map.ts'
import type { TronIntent } from '../../domain/payouts/intent.ts'
import { base58Of, hexOf } from './address.ts'
import { blocksOf } from './blocks.ts'
import { isOver, type Looking, lookup } from './lookup.ts'
import { NoAnswer } from './rpc.ts'
import { blockAt, type Script, scriptedNode } from './testing/scripted_node.ts'

const hash = 'cd'.repeat(32)
const intent: TronIntent = {
  family: 'tron',
  chain: 'TRX',
  payoutId: 'CB1:1',
  attempt: 1,
  from: { purpose: 'reserve', index: 0 },
  to: 'TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t',
  units: 1n,
  token: null,
  feeLimitSun: 0n,
  reference: { id: blockAt(8, 1_000).blockID, timeMs: 1_000 },
  expirationMs: 61_000,
  timestampMs: 1_000,
}
/** Refers to block 8. Blocks 9 to 30 follow, one in three seconds, all of them solid; with what they have. */
const nodeWith = (txs: Readonly<Record<number, readonly string[]>> = {}, newest = 30): Script => ({
  'walletsolidity/getblock': ({ id_or_num: asked }) => {
    const height = Number(asked ?? newest)
    if (height > newest) return {}
    return blockAt(
      height,
      1_000 + (height - 8) * 3_000,
      (txs[height] ?? []).map((txID) => ({ txID })),
    )
  },
})
const lookingAt = (script: Script): Looking => {
  const rpc = scriptedNode(script)
  return { rpc, blocks: blocksOf(rpc), soFar: new BoundedMap(10) }
}
const overBy = (script: Script, txHash: string | null = hash) => {
  return isOver(lookingAt(script), intent, txHash)
}

test('an attempt is over when a solid block is as late as its expiration and none up to there has it', async () => {
  expect(await overBy(nodeWith({}, 28)), 'this one is as late').toBe(true)
  expect(await overBy(nodeWith({}, 27))).toBe(false)
  expect(await overBy(nodeWith({ 12: ['ef'.repeat(32)] }))).toBe(true)
  for (const height of [9, 20, 28])
    expect(await overBy(nodeWith({ [height]: ['ef'.repeat(32), hash] }))).toBe(false)
})

test('of several nodes behind one address one that is behind, and knows of no transaction yet, makes nothing over', async () => {
  const behind: Script = {
    'walletsolidity/gettransactioninfobyid': () => ({}),
    'walletsolidity/gettransactionbyid': () => ({}),
    'wallet/gettransactioninfobyid': () => ({}),
  }
  expect(await overBy({ ...nodeWith({ 27: [hash] }), ...behind })).toBe(false)
  const inTurns = (other: Script): Script => {
    let asked = 0
    const path = 'walletsolidity/getblock'
    return { [path]: (query) => (asked++ % 2 === 0 ? nodeWith() : other)[path]?.(query) }
  }
  await expect(overBy(inTurns(nodeWith({}, 20)))).rejects.toThrow('not as far yet')
})

test('a node without the blocks on top of the one that an attempt refers to cannot say', async () => {
  const blocksBy = (tell: (height: number) => object): Script => ({
    'walletsolidity/getblock': ({ id_or_num: height }) =>
      height === undefined ? blockAt(30, 67_000) : tell(Number(height)),
  })
  await expect(overBy(blocksBy(() => ({})))).rejects.toThrow('forgotten')
  await expect(overBy(blocksBy(() => blockAt(10, 4_000)))).rejects.toThrow('it is block 10')
  const forked = { ...blockAt(9, 4_000), blockID: `${'9'.padStart(16, '0')}${'cd'.repeat(24)}` }
  const onAnother = (height: number) => (height === 9 ? forked : blockAt(height, 67_000))
  await expect(overBy(blocksBy(onAnother))).rejects.toThrow('does not stand on')
  await expect(overBy(blocksBy((height) => blockAt(height, 4_000)))).rejects.toThrow('backwards')
})

test('a line that breaks goes on where it broke, and what was read is not read again', async () => {
  let left = 0
  const asked: number[] = []
  const looking = lookingAt({
    'walletsolidity/getblock': (query) => {
      const height = query.id_or_num
      if (height !== undefined && left-- <= 0) throw new NoAnswer('getblock', 'the line is cut')
      if (height !== undefined) asked.push(Number(height))
      return nodeWith()['walletsolidity/getblock']?.(query)
    },
  })
  let told = 0
  const look = () =>
    isOver(looking, intent, hash, async () => {
      told += 1
    })
  for (left = 7; ; left = 7) {
    if (await look().catch(() => false)) break
  }
  expect(asked).toEqual(Array.from({ length: 20 }, (_, index) => 9 + index))
  expect(told, 'before each block, and each that did not come').toBe(22)
  expect(await look()).toBe(true)
  expect(asked.length).toBe(20)
})

test('what was never stored was never sent', async () => {
  expect(await overBy(nodeWith({}, 27), null)).toBe(false)
  expect(await overBy(nodeWith({}, 28), null)).toBe(true)
})

const node: Script = { 'wallet/getblock': () => blockAt(50, 150_000) }
const find = (script: Script, attempt?: TronIntent) => {
  const rpc = scriptedNode({ ...node, ...script })
  return lookup(rpc, blocksOf(rpc), 'TRX:TRX', hash, attempt)
}

test('nowhere, waiting, or in a block with what became of it', async () => {
  expect(await find({})).toEqual({ where: 'absent' })
  const pending = { 'wallet/gettransactionfrompending': () => ({ txID: hash }) }
  expect(await find(pending)).toEqual({ where: 'mempool' })
  const tx = (contractRet: string) => ({ txID: hash, ret: [{ contractRet }] })
  const inBlock = (contractRet: string, more: object = {}): Script => ({
    'wallet/gettransactioninfobyid': () => ({ id: hash, blockNumber: 40, fee: 345_000, ...more }),
    'wallet/getblockbynum': () => blockAt(40, 120_000, [tx(contractRet)]),
  })
  const cost = { asset: 'TRX:TRX', units: 345_000n }
  expect(await find(inBlock('SUCCESS'))).toMatchObject({ where: 'block', succeeded: true, cost })
  expect(await find(inBlock('OUT_OF_ENERGY', { result: 'FAILED' }))).toMatchObject({ succeeded: false, cost })
  expect(await find(inBlock('SUCCESS', { receipt: { result: 'REVERT' } }))).toMatchObject({
    succeeded: false,
  })
})

test.each([
  ['takes more energy than its limit', 'OUT_OF_ENERGY', 'ours'],
  ['takes the witness too long', 'OUT_OF_TIME', 'ours'],
  ['is refused by its token', 'REVERT', undefined],
  ['fails in another way', 'UNKNOWN', undefined],
])('a call that %s', async (_, contractRet, fault) => {
  const status = await find({
    'wallet/gettransactioninfobyid': () => ({
      ...{ id: hash, blockNumber: 40, fee: 345_000 },
      ...{ result: 'FAILED', receipt: { result: contractRet } },
    }),
    'wallet/getblockbynum': () => blockAt(40, 120_000, [{ txID: hash, ret: [{ contractRet }] }]),
  })
  expect(status).toMatchObject({ succeeded: false })
  expect(status.where === 'block' && status.fault).toBe(fault)
})

test('a block that no longer has it, another answer and none are no answer', async () => {
  const info = () => ({ id: hash, blockNumber: 40 })
  const gone = { 'wallet/gettransactioninfobyid': info, 'wallet/getblockbynum': () => blockAt(40, 120_000) }
  await expect(find(gone)).rejects.toThrow('ask again')
  await expect(find({ 'wallet/gettransactioninfobyid': () => ({ id: 'ab'.repeat(32) }) })).rejects.toThrow(
    'another',
  )
  await expect(find({ 'wallet/getblock': () => ({}) })).rejects.toThrow()
})

test('one that gets into a block between two questions is found there', async () => {
  let asked = 0
  const isMined = () => asked++ > 0
  const status = await find({
    'wallet/gettransactionfrompending': () => (isMined() ? {} : { txID: hash }),
    'wallet/gettransactioninfobyid': () => (isMined() ? { id: hash, blockNumber: 40, fee: 345_000 } : {}),
    'wallet/getblockbynum': () => blockAt(40, 120_000, [{ txID: hash, ret: [{ contractRet: 'SUCCESS' }] }]),
  })
  expect(status).toMatchObject({ where: 'block', succeeded: true })
})

const reserve = `41${'1'.repeat(40)}`
const [payee, stranger] = ['2', '3'].map((digit) => `41${digit.repeat(40)}`) as [string, string]
const usdt = 'TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t'
const payment = { ...intent, to: base58Of(payee), units: 1_000n, token: usdt }
const event = (from: string, to: string, units: bigint) => ({
  address: hexOf(usdt).slice(2),
  topics: [
    'ddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef',
    from.slice(2).padStart(64, '0'),
    to.slice(2).padStart(64, '0'),
  ],
  data: units.toString(16).padStart(64, '0'),
})
const call = {
  txID: hash,
  ret: [{ contractRet: 'SUCCESS' }],
  raw_data: {
    contract: [{ type: 'TriggerSmartContract', parameter: { value: { owner_address: reserve } } }],
  },
}
const saying = (log: readonly unknown[]) =>
  find(
    {
      'wallet/gettransactioninfobyid': () => ({ id: hash, blockNumber: 40, fee: 345_000, log }),
      'wallet/getblockbynum': () => blockAt(40, 120_000, [call]),
    },
    payment,
  )

test('a token has been paid when its contract says so, whatever the call answered', async () => {
  const paid = await saying([event(reserve, payee, 1_000n)])
  expect(paid).toMatchObject({ succeeded: true })
  expect(paid).not.toHaveProperty('movedOtherwise')
  expect(await saying([]), 'nothing moved').toMatchObject({ where: 'block', succeeded: false })
  expect(await saying([event(reserve, payee, 990n), event(reserve, stranger, 10n)])).toMatchObject({
    succeeded: true,
    movedOtherwise: expect.stringContaining('was to move 1000 units'),
  })
})
