import { parseAddress } from '../../../src/chains/bitcoin/addresses.ts'
import { draft, parsePayment, raise, rateWithin } from '../../../src/chains/bitcoin/draft.ts'
import { estimateAt } from '../../../src/chains/bitcoin/fees.ts'
import type { Chain, FindOurs, Transfer } from '../../../src/chains/chain.ts'
import { assert } from '../../../src/domain/assert.ts'
import { chainFacts } from '../../../src/domain/catalog/networks.ts'
import { accept, refuse } from '../../../src/domain/outcome.ts'
import type { Intent } from '../../../src/domain/payouts/intent.ts'
import type { CoinsNode } from './coins_node.ts'
import { type Line, LineFailed } from './line.ts'

export const coinsRules = {
  id: 'BTC',
  network: 'regtest',
  milliSatPerVbMax: 500_000n,
  feeSatoshiMax: 1_000_000n,
} as const

/** The chain BTC over a simulated node: drafts, raises and reads addresses by the code of the real connector. */
export function coinsChain(ask: Line<CoinsNode>): Chain {
  return {
    id: 'BTC',
    family: 'bitcoin',
    model: 'coins',
    assets: ['BTC:BTC'],
    parseAddress: (text) => {
      const parsed = parseAddress(coinsRules.network, text)
      return parsed.ok ? accept(parsed.value.canonical) : parsed
    },
    checkIdentity: async () => {
      await ask('head')
    },
    head: () => ask('head'),
    blockHash: (height) => ask('blockHash', height),
    readBlock: async (height, findOurs) => {
      const block = await ask('block', height)
      return block && { ...block, transfers: await toOurs(block.transfers, findOurs) }
    },
    readMempool: tellOnce(() => ask('waiting')),
    lookup: (txHash) => ask('lookup', txHash),
    estimatePayout: async () => estimateAt(await ask('askedMilliSatPerVb'), coinsRules),
    bid: (outflow) => bid(ask, outflow),
    draft: (outflow, feeBid, funds) => draft(coinsRules, outflow, feeBid, funds),
    raise: (previous, feeBid) => raise(coinsRules, previous, feeBid),
    broadcast: (tx) => unknownWithoutAnswer(ask('send', tx.bytes)),
    balance: async (asset, addresses, height) => {
      assert(asset === 'BTC:BTC' && height === undefined, 'coins are counted now')
      return ask('holds', addresses)
    },
    minedNonce: async () => {
      throw new Error('bitcoin pays with coins and has no nonces')
    },
    isUnspent: ({ txHash, index }) => ask('isUnspent', `${txHash}:${index}`),
    areExcluded: (attempts) => areExcluded(ask, attempts),
  }
}

async function bid(ask: Line<CoinsNode>, outflow: Parameters<Chain['bid']>[0]): ReturnType<Chain['bid']> {
  if (outflow.kind !== 'filler') {
    const payable = parsePayment(coinsRules.network, outflow)
    if (!payable.ok) return payable
  }
  try {
    const rate = rateWithin(await ask('askedMilliSatPerVb'), coinsRules)
    return rate.ok ? accept({ family: 'bitcoin', milliSatPerVb: rate.value }) : rate
  } catch (error) {
    if (error instanceof LineFailed) return refuse({ code: 'network', message: error.message })
    throw error
  }
}

async function areExcluded(ask: Line<CoinsNode>, attempts: readonly Intent[]): Promise<boolean> {
  const spends = attempts.map((attempt) => {
    assert(attempt.family === 'bitcoin', 'a coin chain has attempts that spend coins')
    return attempt.inputs.map(({ txHash, index }) => `${txHash}:${index}`)
  })
  try {
    return await ask('excludes', spends, chainFacts.BTC.confirmations)
  } catch (error) {
    if (error instanceof LineFailed) return false
    throw error
  }
}

/** Every transfer of a mempool once to each object, and again what is to be told again, as `readMempool` promises. */
export function tellOnce(waiting: () => Promise<readonly Transfer[]>): Chain['readMempool'] {
  const told = new Set<string>()
  return async (findOurs, again = new Set()) => {
    const now = await waiting()
    const ids = new Set(now.map(({ id }) => id))
    for (const id of told) if (!ids.has(id)) told.delete(id)
    const fresh = now.filter(({ id, txHash }) => !told.has(id) || again.has(txHash))
    const ours = await toOurs(fresh, findOurs)
    for (const { id } of fresh) told.add(id)
    return ours
  }
}

export async function toOurs(transfers: readonly Transfer[], findOurs: FindOurs): Promise<Transfer[]> {
  const reached = transfers.filter(({ units }) => units > 0n)
  if (reached.length === 0) return []
  const ours = await findOurs([...new Set(reached.map(({ to }) => to))])
  return reached.filter(({ to }) => ours.has(to))
}

export async function unknownWithoutAnswer(
  answer: Promise<'accepted' | 'refused' | 'unknown'>,
): Promise<'accepted' | 'refused' | 'unknown'> {
  try {
    return await answer
  } catch (error) {
    if (error instanceof LineFailed) return 'unknown'
    throw error
  }
}
