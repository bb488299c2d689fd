import { createHash } from 'node:crypto'
import { MessageChannel } from 'node:worker_threads'
import { describe, expect, test } from 'vitest'
import type { Funds } from '../../../src/chains/chain.ts'
import { type AssetId, assetOf } from '../../../src/domain/catalog/assets.ts'
import { amountOf, toChainUnits } from '../../../src/domain/money/amount.ts'
import type { Coin, KeyPath } from '../../../src/domain/payouts/intent.ts'
import { describeSimulatedChain } from '../../contract/chain_contract.ts'
import type { ChainWorld } from '../../contract/chain_driver.ts'
import { accountChain, accountRules } from './account_chain.ts'
import { AccountNode } from './account_node.ts'
import { coinsChain } from './coins_chain.ts'
import { CoinsNode } from './coins_node.ts'
import { directLine, LineFailed } from './line.ts'
import { payingSigner } from './paying_signer.ts'
import { accountAddress } from './read_account_tx.ts'
import { coinsAddress } from './read_coins_tx.ts'
import { connectSimulated, directLines, linesBy, type NodeLines, openNodes } from './simulated_chains.ts'
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

async function startCoins(): Promise<ChainWorld> {
  const node = new CoinsNode(() => 1_800_000_000_000)
  const keys = payingSigner()
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
  const keys = payingSigner()
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

describe('a line', () => {
  const nodes = () => openNodes(() => 1_800_000_000_000)
  const connect = (lines: NodeLines) => [
    ...connectSimulated(lines, async () => accountAddress('us')).values(),
  ]

  test('that fails leaves a broadcast unknown and rejects every question', async () => {
    const fails = async () => {
      throw new LineFailed('cut')
    }
    for (const chain of connect(linesBy(() => fails))) {
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

function digest(text: string): string {
  return createHash('sha256').update(text).digest('hex')
}
