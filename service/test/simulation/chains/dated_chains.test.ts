import { describe, expect, test } from 'vitest'
import type { Funds } from '../../../src/chains/chain.ts'
import { nativeAsset } from '../../../src/domain/catalog/assets.ts'
import { chainFacts } from '../../../src/domain/catalog/networks.ts'
import { amountOf, fromChainUnits, toChainUnits } from '../../../src/domain/money/amount.ts'
import type { Outflow } from '../../../src/domain/payouts/intent.ts'
import { describeSimulatedChain } from '../../contract/chain_contract.ts'
import type { ChainWorld } from '../../contract/chain_driver.ts'
import { type DatedId, DatedNode } from './dated_node.ts'
import { datedIds, datedRules } from './dated_rules.ts'
import { directLine } from './line.ts'
import { outsideAddressOn } from './outside_address.ts'
import { payingSigner } from './paying_signer.ts'
import { datedChains } from './simulated_chains.ts'

/**
 * What: a simulated chain whose transactions have an end keeps the same promises as the ones over real nodes, and what
 * is over is over.
 * How: the suite that those have to pass, with the real signer; and blocks that leave a transaction out until its time
 * has passed.
 */
describeSimulatedChain({
  name: 'the simulated XRP Ledger',
  isFinal: true,
  assets: ['XRP:XRP'],
  start: () => startDated('XRP'),
})
describeSimulatedChain({
  name: 'the simulated Stellar',
  isFinal: true,
  hidesWaiting: true,
  assets: ['XLM:XLM'],
  start: () => startDated('XLM'),
})
describeSimulatedChain({
  name: 'the simulated TRON',
  // One deeper would be below the solid block.
  reorgDepthMax: 18,
  neverReplaces: true,
  assets: ['TRX:TRX'],
  start: () => startDated('TRX'),
})
describeSimulatedChain({
  name: 'the simulated EOS',
  isFinal: true,
  hidesWaiting: true,
  isFree: true,
  assets: ['EOS:EOS'],
  start: () => startDated('EOS'),
})
describeSimulatedChain({
  name: 'the simulated Solana',
  isFinal: true,
  hidesWaiting: true,
  assets: ['SOL:SOL'],
  start: () => startDated('SOL'),
})

/** In so many of the next blocks, one every three seconds, a transaction may be. */
const livesOf = { XRP: 15, XLM: 20, TRX: 60, EOS: 20, SOL: 8 } as const satisfies Record<DatedId, number>

type DatedWorld = ChainWorld & {
  readonly node: DatedNode
  mineAll(blocks: number, takes?: (txHash: string) => boolean): void
}

async function startDated(id: DatedId): Promise<DatedWorld> {
  let nowMs = 1_800_000_000_000
  const native = nativeAsset(id).id
  const { family } = chainFacts[id]
  const node = new DatedNode(datedRules[id], () => nowMs)
  const mineAll: DatedWorld['mineAll'] = (blocks, takes) => {
    for (let made = 0; made < blocks; made += 1) {
      nowMs += 3_000
      node.mine(1, takes)
    }
  }
  const keys = payingSigner()
  const reserve = await keys.address(family, 'reserve', 0)
  node.pay([{ to: reserve, asset: native, units: 10n ** 12n }])
  mineAll(30)
  const chain = datedChains[id]({ id, ask: directLine(node), reserveAddress: async () => reserve })
  let made = 1
  const units = (amount: bigint) => toChainUnits(amountOf(native, amount))
  return {
    chain,
    node,
    mineAll,
    ourAddress: () => keys.address(family, 'deposit', made++),
    reserveAddress: async () => reserve,
    outsideAddress: async () => outsideAddressOn(id, `outside ${made++}`),
    send: async (asset, to, amount) => node.pay([{ to, asset, units: units(amount) }]),
    sendTogether: async (payments) =>
      node.pay(payments.map(({ to, units: amount }) => ({ to, asset: native, units: units(amount) }))),
    replace: async () => 'nothing takes the place of another',
    mine: async (blocks) => mineAll(blocks + node.newest().height - node.head().height),
    reorg: async (depth) => node.reorg({ depth, fate: () => 'lost' }),
    holds: async (asset, held) => fromChainUnits(asset, node.holds(asset, [held])).units,
    // Accepted and forgotten; then as many blocks as it takes.
    lose: async (send) => {
      await send()
      for (const txHash of node.mempool()) node.forget(txHash)
      mineAll(livesOf[id] + 1 + node.newest().height - node.solid().height)
    },
    funds: async (): Promise<Funds> => {
      const from = { purpose: 'reserve', index: 0 } as const
      if (chain.isOver !== undefined) return { model: 'timed', from }
      return { model: 'account', from, nonce: (await chain.minedNonce(reserve)) + node.mempool().length }
    },
    sign: keys.pay,
    stop: async () => {},
  }
}

async function openPayout(id: DatedId) {
  const world = await startDated(id)
  const asset = nativeAsset(id)
  const outflow: Outflow = {
    payoutId: 'CB0000000000000001:1',
    kind: 'payout',
    asset: asset.id,
    units: asset.minPayout,
    address: await world.outsideAddress(),
    tag: null,
  }
  const bid = await world.chain.bid(outflow)
  if (!bid.ok) throw new Error(bid.rejection.message)
  const drafted = world.chain.draft(outflow, bid.value, await world.funds(asset.id, outflow.units))
  if (!drafted.ok) throw new Error(drafted.rejection.message)
  const [intent, tx] = [drafted.value, await world.sign(drafted.value)]
  const isPaid = async () => (await world.holds(asset.id, outflow.address)) === outflow.units
  return { ...world, outflow, intent, tx, isPaid }
}

describe.each(datedIds)('the time of a transaction on %s', (id) => {
  test('is used to its last block', async () => {
    const { chain, tx, mine, mineAll, isPaid } = await openPayout(id)
    expect(await chain.broadcast(tx)).toBe('accepted')
    mineAll(livesOf[id] - 1, () => false)
    await mine(1)
    expect(await isPaid()).toBe(true)
  })

  test('is over for good: it is never executed, and nobody takes it', async () => {
    const { chain, node, tx, mineAll, isPaid } = await openPayout(id)
    expect(await chain.broadcast(tx)).toBe('accepted')
    mineAll(livesOf[id] + 1, () => false)
    expect(node.mempool()).toEqual([])
    mineAll(30)
    expect(await chain.broadcast(tx)).toBe('refused')
    mineAll(3)
    expect([await isPaid(), await chain.lookup(tx.txHash)]).toEqual([false, { where: 'absent' }])
  })
})

describe.each(datedIds.filter((id) => datedRules[id].reversible() > 0))('solid blocks of %s', (id) => {
  test('alone say that an attempt is over', async () => {
    const { chain, node, intent, tx, mineAll } = await openPayout(id)
    const isOver = () => chain.isOver?.(intent, tx.txHash)
    expect(await chain.broadcast(tx)).toBe('accepted')
    mineAll(livesOf[id] + 1, () => false)
    expect([node.mempool(), await isOver()]).toEqual([[], false])
    mineAll(datedRules[id].reversible() + 1)
    expect(await isOver()).toBe(true)
  })

  test('leave an attempt that lost its block to be sent again, once', async () => {
    const { chain, node, intent, tx, mineAll, isPaid } = await openPayout(id)
    expect(await chain.broadcast(tx)).toBe('accepted')
    mineAll(1)
    node.reorg({ depth: 1, longer: 0, fate: () => 'lost' })
    expect(await chain.lookup(tx.txHash)).toEqual({ where: 'absent' })
    expect(await chain.isOver?.(intent, tx.txHash)).toBe(false)
    for (const _ of 'twice') expect(await chain.broadcast(tx)).toBe('accepted')
    mineAll(livesOf[id])
    expect([await isPaid(), await chain.isOver?.(intent, tx.txHash)]).toEqual([true, false])
  })
})

describe.each(['EOS', 'SOL'] as const)('blocks of %s that may be undone', (id) => {
  test('are told of to nobody, and what is in them waits', async () => {
    const { chain, node, tx, mineAll, isPaid } = await openPayout(id)
    expect(await chain.broadcast(tx)).toBe('accepted')
    mineAll(1)
    const { height } = node.newest()
    expect(await chain.lookup(tx.txHash)).toEqual({ where: 'mempool' })
    expect([await chain.blockHash(height), await isPaid()]).toEqual([null, false])
    mineAll(datedRules[id].reversible())
    expect(await chain.lookup(tx.txHash)).toMatchObject({ where: 'block', block: { height } })
    expect(await isPaid()).toBe(true)
  })
})

test('on Stellar of two transactions of an account one waits, and the next is taken when it is in a ledger', async () => {
  const { chain, outflow, intent, tx, sign, mine } = await openPayout('XLM')
  if (intent.family !== 'stellar') throw new Error('it is of Stellar')
  const next = await sign({ ...intent, payoutId: 'CB0000000000000002:1', sequence: intent.sequence + 1n })
  expect(await chain.broadcast(tx)).toBe('accepted')
  expect(await chain.broadcast(next)).toBe('unknown')
  await mine(1)
  expect(await chain.broadcast(next)).toBe('accepted')
  await mine(1)
  expect(await chain.lookup(next.txHash), 'the account was made before').toMatchObject({ succeeded: false })
  expect(await chain.balance(outflow.asset, [outflow.address])).toBe(outflow.units)
})
