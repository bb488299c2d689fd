import type { Chain, DraftRejection, FeeBid } from '../../../src/chains/chain.ts'
import type { AssetId } from '../../../src/domain/catalog/assets.ts'
import { nativeAsset } from '../../../src/domain/catalog/assets.ts'
import { chainFacts } from '../../../src/domain/catalog/networks.ts'
import { amountOf, fromChainUnits, toChainUnits } from '../../../src/domain/money/amount.ts'
import { accept, type Outcome, refuse } from '../../../src/domain/outcome.ts'
import type { Outflow } from '../../../src/domain/payouts/intent.ts'
import { tellOnce, toOurs, unknownWithoutAnswer } from './coins_chain.ts'
import type { DatedId, DatedNode } from './dated_node.ts'
import { type Line, LineFailed } from './line.ts'

export type Asked = {
  readonly id: DatedId
  readonly ask: Line<DatedNode>
  readonly reserveAddress: () => Promise<string>
}

/** What all chains are asked alike whose transactions have an end. */
export function datedChain({ id, ask }: Asked) {
  const native = nativeAsset(id).id
  return {
    id,
    family: chainFacts[id].family,
    model: 'account',
    assets: [native],
    checkIdentity: async () => {
      await ask('head')
    },
    head: async () => {
      const { height, hash } = await ask('head')
      return { height, hash }
    },
    blockHash: (height) => ask('blockHash', height),
    readBlock: async (height, findOurs) => {
      const block = await ask('block', height)
      return block && { ...block, transfers: await toOurs(block.transfers, findOurs) }
    },
    readMempool: tellOnce(() => ask('waiting')),
    lookup: (txHash) => ask('lookup', txHash),
    broadcast: (tx) => unknownWithoutAnswer(ask('send', tx.bytes)),
    balance: async (asset: AssetId, addresses, height) =>
      fromChainUnits(asset, await ask('holds', asset, addresses, ...(height === undefined ? [] : [height])))
        .units,
  } satisfies Partial<Chain>
}

/** What a transaction costs us at the most, and the bid that says so. */
export type Priced = { readonly cost: bigint; readonly bid: FeeBid }

/** Looks whether the payment could be made, as the real connectors do; `least` has to stay where it leaves from. */
export async function bidFor(
  asked: Asked,
  outflow: Outflow,
  price: () => Promise<Outcome<Priced, DraftRejection>>,
  least = 0n,
): ReturnType<Chain['bid']> {
  try {
    const priced = await price()
    if (!priced.ok) return priced
    const { cost, bid } = priced.value
    const refusal = outflow.kind === 'filler' ? null : await whyNot(asked, outflow, cost + least)
    return refusal === null ? accept(bid) : refuse(refusal)
  } catch (error) {
    if (error instanceof LineFailed) return refuse({ code: 'network', message: error.message })
    throw error
  }
}

async function whyNot(
  { ask, reserveAddress }: Asked,
  { asset, units, address, from }: Outflow,
  beside: bigint,
): Promise<DraftRejection | null> {
  const needed = toChainUnits(amountOf(asset, units)) + beside
  // What a deposit address holds is told to `draft`.
  if (from === undefined && (await ask('holds', asset, [await reserveAddress()])) < needed)
    return { code: 'funds', message: `with fees ${needed} units of ${asset} are needed` }
  if (!(await ask('isPayable', address)))
    return { code: 'destination', message: 'the address cannot be paid' }
  return null
}
