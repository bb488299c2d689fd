import { createHash, createHmac, createSecretKey } from 'node:crypto'
import { MessageChannel } from 'node:worker_threads'
import { describe, expect, test } from 'vitest'
import type { Funds } from '../../../src/chains/chain.ts'
import { type AssetId, assetOf, nativeAsset } from '../../../src/domain/catalog/assets.ts'
import { type Amount, amountOf, fromChainUnits, toChainUnits } from '../../../src/domain/money/amount.ts'
import { sealText } from '../../../src/domain/orders/seal.ts'
import type { Coin, Intent, KeyPath, SignedTx } from '../../../src/domain/payouts/intent.ts'
import { localSigner } from '../../../src/signer/local_signer.ts'
import { memoryStore } from '../../../src/signer/testing/memory_store.ts'
import { describeSimulatedChain } from '../../contract/chain_contract.ts'
import type { ChainWorld } from '../../contract/chain_driver.ts'
import { accountChain, accountRules } from './account_chain.ts'
import { AccountNode } from './account_node.ts'
import { coinsChain } from './coins_chain.ts'
import { CoinsNode } from './coins_node.ts'
import { datedRules, tagsChain, timedChain } from './dated_chains.ts'
import { DatedNode } from './dated_node.ts'
import { directLine, LineFailed } from './line.ts'
import { accountAddress } from './read_account_tx.ts'
import { coinsAddress } from './read_coins_tx.ts'
import { tronAddress, xrpAddress } from './read_dated_tx.ts'
import { simulatedSignerSettings } from './signer_settings.ts'
import { connectSimulated, directLines, type NodeLines, openNodes } from './simulated_chains.ts'
import { serveNode, threadLine } from './thread_line.ts'

/**
 * What: a simulated chain keeps the same promises as the chains over real nodes.
 * How: the suite that those have to pass, with the real signer; and a line that fails.
 */
describeSimulatedChain({ name: 'the simulated coins', assets: ['BTC:BTC'], start: startCoins })
describeSimulatedChain({
  name: 'the simulated accounts',
  assets: ['ETH:ETH', 'USDT:ERC20'],
  start: startAccounts,
})

describeSimulatedChain({ name: 'the simulated tags', isFinal: true, assets: ['XRP:XRP'], start: startTags })
describeSimulatedChain({
  name: 'the simulated times',
  // One deeper would be below the solid block.
  reorgDepthMax: 18,
  neverReplaces: true,
  assets: ['TRX:TRX'],
  start: startTimes,
})

async function startCoins(): Promise<ChainWorld> {
  const node = new CoinsNode(() => 1_800_000_000_000)
  const keys = signer()
  let made = 0
  const address = (purpose: KeyPath['purpose'], index: number) => keys.address('bitcoin', purpose, index)
  return {
    chain: coinsChain(directLine(node)),
    ourAddress: () => address('deposit', made++),
    reserveAddress: () => address('reserve', 0),
    outsideAddress: async () => coinsAddress(digest(`outside ${made++}`).slice(0, 40)),
    send: async (_, to, satoshi) => node.pay([{ address: to, satoshi }]),
    sendTogether: async (payments) =>
      node.pay(payments.map(({ to, units }) => ({ address: to, satoshi: units }))),
    replace: async (txHash, { to, units }) => {
      const old = node.waiting().find((transfer) => transfer.txHash === txHash)
      const fresh = node.replace(txHash, [
        { address: to ?? old?.to ?? '', satoshi: units ?? old?.units ?? 0n },
      ])
      return fresh ?? 'nothing'
    },
    mine: async (blocks) => node.mine(blocks),
    reorg: async (depth) => node.reorg({ depth }),
    holds: async (_, held) => node.holds([held]),
    funds: async (_, units): Promise<Funds> => {
      const key = { purpose: 'reserve', index: 0 } as const
      const coin: Coin = {
        txHash: node.pay([{ address: await address('reserve', 0), satoshi: units * 3n }]),
        index: 0,
        satoshi: units * 3n,
        address: await address('reserve', 0),
        key,
      }
      node.mine(1)
      const change = { purpose: 'change', index: made++ } as const
      return {
        model: 'coins',
        coins: [coin],
        change: { address: await address('change', change.index), key: change },
      }
    },
    sign: keys.pay,
    stop: async () => {},
  }
}

async function startAccounts(): Promise<ChainWorld> {
  const rules = accountRules.ETH
  const node = new AccountNode('ETH', rules.tokens, () => 1_800_000_000_000)
  const keys = signer()
  const reserve = await keys.address('evm', 'reserve', 0)
  const chainUnits = (asset: AssetId, units: bigint) => toChainUnits(amountOf(asset, units))
  let made = 0
  let nonce = 0
  for (const asset of ['ETH:ETH', 'USDT:ERC20'] as const) {
    node.pay([{ to: reserve, asset, units: chainUnits(asset, assetOf(asset).maxAmount) }])
  }
  node.mine(20)
  return {
    chain: accountChain(rules, directLine(node), async () => reserve),
    ourAddress: () => keys.address('evm', 'deposit', made++),
    reserveAddress: async () => reserve,
    outsideAddress: async () => accountAddress(`outside ${made++}`),
    send: async (asset, to, units) => node.pay([{ to, asset, units: chainUnits(asset, units) }]),
    sendTogether: async (payments) => node.pay(payments.map((one) => ({ ...one, asset: 'ETH:ETH' }))),
    replace: async (txHash, { to, units }) => {
      const old = node.waiting().find((transfer) => transfer.txHash === txHash)
      const payment = { to: to ?? old?.to ?? '', asset: 'ETH:ETH' as const, units: units ?? old?.units ?? 0n }
      return node.replace(txHash, [payment]) ?? 'nothing'
    },
    mine: async (blocks) => node.mine(blocks),
    reorg: async (depth) => node.reorg({ depth, fate: () => 'lost' }),
    holds: async (asset, held) => {
      const { chainDecimals, decimals } = assetOf(asset)
      return node.holds(asset, [held]) * 10n ** BigInt(decimals - chainDecimals)
    },
    funds: async () => ({ model: 'account', from: { purpose: 'reserve', index: 0 }, nonce: nonce++ }),
    sign: keys.pay,
    stop: async () => {},
  }
}

/** What the two chains have in common whose transactions have an end. A block comes every three seconds. */
function openDated(id: 'XRP' | 'TRX') {
  let nowMs = 1_800_000_000_000
  const node = new DatedNode(datedRules[id], () => nowMs)
  const mine = async (blocks: number) => {
    for (let made = 0; made < blocks; made += 1) {
      nowMs += 3_000
      node.mine(1)
    }
  }
  let made = 0
  const chainUnits = (asset: AssetId, units: bigint) => toChainUnits(amountOf(asset, units))
  const address = id === 'XRP' ? xrpAddress : tronAddress
  const outside = {
    outsideAddress: async () => address(`outside ${made++}`),
    send: async (asset: AssetId, to: string, units: bigint) =>
      node.pay([{ to, asset, units: chainUnits(asset, units) }]),
    sendTogether: async (payments: readonly { to: string; units: bigint }[]) =>
      node.pay(payments.map(({ to, units }) => ({ to, asset: `${id}:${id}` as const, units }))),
    replace: async () => 'nothing takes the place of another',
    mine,
    reorg: async (depth: number) => node.reorg({ depth, fate: () => 'lost' }),
    holds: async (asset: AssetId, held: string) => fromChainUnits(asset, node.holds(asset, [held])).units,
    stop: async () => {},
  }
  const fund = async (reserve: string) => {
    node.pay([{ to: reserve, asset: `${id}:${id}`, units: 10n ** 12n }])
    await mine(30)
  }
  /** Accepted and forgotten; then as many blocks as it takes. */
  const loseFor = (blocks: number) => async (send: () => Promise<void>) => {
    await send()
    for (const txHash of node.mempool()) node.forget(txHash)
    await mine(blocks)
  }
  return { node, outside, fund, loseFor }
}

async function startTags(): Promise<ChainWorld> {
  const { node, outside, fund, loseFor } = openDated('XRP')
  const keys = signer()
  const reserve = await keys.address('xrp', 'reserve', 0)
  await fund(reserve)
  let tags = 1
  return {
    ...outside,
    chain: tagsChain(directLine(node), async () => reserve),
    ourAddress: () => keys.address('xrp', 'deposit', tags++),
    reserveAddress: async () => reserve,
    lose: loseFor(16),
    funds: async () => {
      const nonce = node.minedNonce(reserve) + node.mempool().length
      return { model: 'account', from: { purpose: 'reserve', index: 0 }, nonce }
    },
    sign: keys.pay,
  }
}

async function startTimes(): Promise<ChainWorld> {
  const { node, outside, fund, loseFor } = openDated('TRX')
  const keys = signer()
  const reserve = await keys.address('tron', 'reserve', 0)
  await fund(reserve)
  let made = 0
  return {
    ...outside,
    chain: timedChain(directLine(node), async () => reserve),
    ourAddress: () => keys.address('tron', 'deposit', made++),
    reserveAddress: async () => reserve,
    lose: loseFor(85),
    funds: async () => ({ model: 'timed', from: { purpose: 'reserve', index: 0 } }),
    sign: keys.pay,
  }
}

describe('a line', () => {
  const nodes = () => openNodes(() => 1_800_000_000_000)
  const connect = (lines: NodeLines) => [
    ...connectSimulated(lines, async () => accountAddress('us')).values(),
  ]

  test('that fails leaves a broadcast unknown and rejects every question', async () => {
    const fails = async () => {
      throw new LineFailed('cut')
    }
    for (const chain of connect({ BTC: fails, ETH: fails, BNB: fails, XRP: fails, TRX: fails })) {
      expect(await chain.broadcast({ txHash: '00', bytes: '00' })).toBe('unknown')
      for (const answer of [chain.head(), chain.lookup('00'), chain.readMempool(async () => new Set())])
        await expect(answer).rejects.toThrow(LineFailed)
    }
  })

  test('into another thread is asked and answered alike', async () => {
    const near = nodes()
    const { port1, port2 } = new MessageChannel()
    serveNode(near.BTC, port1)
    near.BTC.pay([{ address: coinsAddress('00'.repeat(20)), satoshi: 7n }])
    near.BTC.mine(1)
    const [far] = connect({ ...directLines(near), BTC: threadLine<CoinsNode>(port2) })
    const [direct] = connect(directLines(near))
    const everybody = async (addresses: readonly string[]) => new Set(addresses)
    expect(await far?.readBlock(1, everybody)).toEqual(await direct?.readBlock(1, everybody))
    expect(await far?.head()).toMatchObject({ height: 1 })
    port1.close()
  })
})

function signer() {
  const sealKey = createSecretKey(Buffer.alloc(32, 7))
  const local = localSigner({
    seed: Buffer.alloc(64, 7),
    store: memoryStore(),
    sealKey,
    clock: { nowMs: () => 1_800_000_000_000 },
    settings: simulatedSignerSettings,
  })
  const pay = async (intent: Intent): Promise<SignedTx> => {
    const asset = paidAsset(intent)
    const terms = {
      orderId: intent.payoutId.split(':')[0] ?? '',
      payoutAsset: asset,
      destination: payeeOf(intent),
      destinationTag: null,
      depositAsset: asset,
      refundAddress: null,
    }
    const seal = createHmac('sha256', sealKey).update(sealText(terms)).digest('hex')
    const signed = await local.sign(intent, { kind: 'payout', ...terms, payeeKey: null, seal })
    if (!signed.ok) throw new Error(signed.rejection.message)
    return signed.value
  }
  const address = async (
    family: 'bitcoin' | 'evm' | 'xrp' | 'tron',
    purpose: KeyPath['purpose'],
    index: number,
  ) => (await local.addresses(family, purpose, index, 1))[0] ?? ''
  return { pay, address }
}

function payeeOf(intent: Intent): string {
  if (intent.family === 'bitcoin') return intent.payment.address
  if (intent.family === 'evm' || intent.family === 'tron' || intent.family === 'solana') return intent.to
  if (intent.payment === null) throw new Error('a payout pays somebody')
  return intent.payment.to
}

function paidAsset(intent: Intent): Amount['asset'] {
  if (intent.family !== 'evm' || intent.token === null) return nativeAsset(intent.chain).id
  const asset = Object.entries(accountRules.ETH.tokens).find(([contract]) => contract === intent.token)?.[1]
  if (asset === undefined) throw new Error('a listed token is paid')
  return asset
}

function digest(text: string): string {
  return createHash('sha256').update(text).digest('hex')
}
