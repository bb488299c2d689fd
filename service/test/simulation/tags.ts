import { textOf as eosText } from '../../src/chains/eos/address.ts'
import { textOf as stellarText } from '../../src/chains/stellar/address.ts'
import { textOf as xrpText } from '../../src/chains/xrp/address.ts'
import { type AssetId, assetOf } from '../../src/domain/catalog/assets.ts'
import { type ChainId, chainFacts, depositsLie } from '../../src/domain/catalog/networks.ts'
import { spelling } from './chains/dated_rules.ts'
import type { SimulatedNodes } from './chains/simulated_chains.ts'
import type { Chance } from './chance.ts'
import type { Ground } from './ground.ts'
import type { Recorder } from './recorder.ts'

/** Chains on which many share an account. */
const sharingIds = ['XRP', 'XLM', 'EOS'] as const
type SharingId = (typeof sharingIds)[number]

function isShared(chain: ChainId): chain is SharingId {
  return depositsLie[chainFacts[chain].family] === 'tags'
}

/** Somebody to pay, as a client says it and as the chain has to tell it. */
export type Named = {
  readonly address: string
  /** Beside the address. */
  readonly tag: string | null
  /** Null: nobody in particular. */
  readonly told: string | null
}

/** What tells people apart who share an account: what stands beside it, or in one text with it. */
const tags = {
  XRP: { beside: ['0', '7', '48213', '4294967295'], inside: ['0', '7', '4294967295'] },
  XLM: {
    beside: ['7', '18446744073709551615', '18446744073709551616', '007', 'für Zoë'],
    inside: ['0', '7', '18446744073709551615'],
  },
  EOS: { beside: ['7', 'für Zoë', 'a/b', 'x'.repeat(256)], inside: ['7', 'deposit:48-213'] },
} as const satisfies Record<SharingId, unknown>

const together: Record<SharingId, (account: string, tag: string) => string> = {
  XRP: (account, tag) => xrpText({ account, tag: Number(tag) }, spelling),
  XLM: (account, id) => stellarText({ account, id }),
  EOS: (account, memo) => eosText({ account, memo }),
}

/** Stellar's memos are of a kind: what is no number that fits an id is text. */
function toldBeside(chain: SharingId, tag: string): string {
  if (chain !== 'XLM') return tag
  return ['7', '18446744073709551615'].includes(tag) ? `id ${tag}` : `text ${tag}`
}

function toldInside(chain: SharingId, tag: string): string {
  return chain === 'XLM' ? `muxed ${tag}` : tag
}

/** Of clients who pay to where a tag is needed, so many forget it. */
const FORGETFUL = 0.04

/** Beside the account, in one text with it, or both; and now and then not at all, which no order may come of. */
export function nameDestination(chance: Chance, chain: ChainId, account: string): Named {
  if (!isShared(chain) || chance.isHit(FORGETFUL)) return { address: account, tag: null, told: null }
  if (chance.isHit(0.5)) {
    const tag = chance.pick<string>(tags[chain].beside)
    return { address: account, tag, told: toldBeside(chain, tag) }
  }
  const tag = chance.pick<string>(tags[chain].inside)
  const address = together[chain](account, tag)
  return { address, tag: chance.isHit(0.5) ? tag : null, told: toldInside(chain, tag) }
}

/** A refund needs none, and may have one in its address; `number` decides. */
export function nameRefund(chain: ChainId, account: string, number: number): Named {
  const unnamed = { address: account, tag: null, told: null }
  if (!isShared(chain)) return unnamed
  const tag = [null, ...tags[chain].inside][number % (tags[chain].inside.length + 1)] ?? null
  if (tag === null) return unnamed
  return { address: together[chain](account, tag), tag: null, told: toldInside(chain, tag) }
}

type Told = Pick<Named, 'address' | 'told'>

type Order = {
  readonly order_id: string
  readonly to_asset: AssetId
  readonly from_asset: AssetId
}

/** What clients have named: for the payout, and with the action that asks for a refund. */
export type Names = {
  readonly payout: (orderId: string) => Told | null
  readonly refund: (order: Order) => Told
}

/** Whatever left for an account that many share has to say for whom, as it was named; asked of the nodes, not of the tables. */
export async function findWrongTags(
  rows: Ground['rows'],
  nodes: SimulatedNodes,
  names: Names,
  recorder: Pick<Recorder, 'count'>,
): Promise<string[]> {
  const orders = await rows<Order>('SELECT order_id, to_asset, from_asset FROM orders')
  const look = (chain: ChainId, { address, told }: Told, orderId: string, how: 'paid' | 'refunded') => {
    if (!isShared(chain)) return []
    return nodes[chain].paidTo(address).flatMap(({ tag, units }) => {
      recorder.count(`${how} on ${chain}: ${tag === null ? 'without' : 'with'} a tag`)
      const what = `${orderId} is ${how}: ${address} got ${units} for ${tag}, and that is ${told}`
      return tag === told ? [] : [`${NAMED}: ${what}`]
    })
  }
  return orders.flatMap((order) => {
    const { order_id, to_asset, from_asset } = order
    const payee = names.payout(order_id)
    if (payee === null) return []
    const { chain } = assetOf(to_asset)
    const unnamed = isShared(chain) && payee.told === null
    return [
      ...(unnamed ? [`${NAMED}: ${order_id} was taken without a tag`] : []),
      ...look(chain, payee, order_id, 'paid'),
      ...look(assetOf(from_asset).chain, names.refund(order), order_id, 'refunded'),
    ]
  })
}

const NAMED = 'who shares an account is named'
