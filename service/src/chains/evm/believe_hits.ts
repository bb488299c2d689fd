import type { AssetId } from '../../domain/catalog/assets.ts'
import { decodeHeld, heldCall } from './balance.ts'
import type { EvmHeader } from './decode.ts'
import { type JsonRpc, NodeNonsense } from './json_rpc.ts'

/** Something that came to an address in a block, before it is known whether the address is ours. */
export type Arrival = {
  readonly id: string
  readonly txHash: string
  /** Lowercase. */
  readonly from: string
  /** As our address table stores it. */
  readonly to: string
  /** The token's contract in lowercase; null for the native coin. */
  readonly contract: string | null
  readonly units: bigint
  readonly isOfBlock?: true
  /** Of a SELFDESTRUCT: the account that ran it, in lowercase. */
  readonly selfdestructOf?: string
}

/** What a block says that it moved. */
export type BlockMoves = {
  readonly arrivals: readonly Arrival[]
  /** What each sender paid for gas, of transactions that failed as well; by address in lowercase. */
  readonly feesWei: ReadonlyMap<string, bigint>
}

export const pairOf = ({ contract, to }: Arrival) => pairKey(contract, to)
const pairKey = (contract: string | null, holder: string) => `${contract} ${holder.toLowerCase()}`

/**
 * Neither a contract's word is enough, not even a listed one's (an event can be emitted without a balance moving, and a fee may be taken on
 * the way), nor a trace's (`believeCoin`). For each pair of asset and address in `hits` whose balance did not grow, from the parent of this
 * block to this one, by what the block says: what is said less what it grew. Of a token only where that is more than none; what
 * comes without an event is none of ours.
 */
export async function findGaps(
  rpc: JsonRpc,
  listed: ReadonlyMap<string, AssetId>,
  header: EvmHeader,
  { arrivals, feesWei }: BlockMoves,
  hits: readonly Arrival[],
): Promise<ReadonlyMap<string, bigint>> {
  const claims = new Map<string, { contract: string | null; to: string; units: bigint }>()
  for (const hit of hits) {
    const { contract, to } = hit
    if (contract === null || listed.has(contract)) claims.set(pairOf(hit), { contract, to, units: 0n })
  }
  if (claims.size === 0) return new Map()
  for (const { contract, from, to, units, selfdestructOf } of arrivals) {
    const income = claims.get(pairKey(contract, to))
    if (income !== undefined) income.units += units
    // An address of ours has no code that could end: what says so repeats a payment of ours.
    const spending = selfdestructOf === undefined ? claims.get(pairKey(contract, from)) : undefined
    if (spending !== undefined) spending.units -= units
  }
  for (const [sender, feeWei] of feesWei) {
    const spending = claims.get(pairKey(null, sender))
    if (spending !== undefined) spending.units -= feeWei
  }
  const pairs = [...claims]
  const balances = await rpc.batch(
    pairs.flatMap(([, { contract, to }]) => [
      heldCall(contract, to, { blockHash: header.parentHash }),
      heldCall(contract, to, { blockHash: header.hash }),
    ]),
  )
  const gaps = pairs.map(([pair, { contract, units }], index) => {
    const before = decodeHeld(contract, balances[2 * index])
    const after = decodeHeld(contract, balances[2 * index + 1])
    return { pair, contract, gap: units - (after - before) }
  })
  return new Map(
    gaps
      .filter(({ contract, gap }) => gap > 0n || (contract === null && gap < 0n))
      .map((one) => [one.pair, one.gap]),
  )
}

/**
 * The hits, without coin that no balance bears out. Since EIP-6780 a SELFDESTRUCT of an older contract in its own favour moves nothing, and
 * revm before 42.0.1 told it as the transaction's latest payment once more (https://github.com/bluealloy/revm/pull/3805): anybody
 * can have a payment to us told N times. Where it names another account than ran it, it is such a one; else the trace looks like that of a
 * contract that pays half of what it has and leaves the rest, and the balance alone tells how much of that is true.
 * Anything else that does not fit is an error of the node that we do not know, and nothing of the block is believed. Only what an
 * address that sent a transaction itself paid for that may be more than receipts say: no block is refused for it.
 */
export function believeCoin(
  height: number,
  hits: readonly Arrival[],
  { arrivals, feesWei }: BlockMoves,
  gaps: ReadonlyMap<string, bigint>,
): readonly Arrival[] {
  const left = new Map(gaps)
  const told = new Map(hits.map((hit) => [hit, hit.units]))
  const isDoubted = (hit: Arrival) => (gaps.get(pairOf(hit)) ?? 0n) > 0n && isRepetition(hit, arrivals)
  for (const hit of hits.filter(isDoubted).sort(falsestFirst)) {
    const gap = left.get(pairOf(hit)) ?? 0n
    const cut = gap < hit.units ? gap : hit.units
    left.set(pairOf(hit), gap - cut)
    told.set(hit, hit.units - cut)
  }
  for (const { contract, to } of hits) {
    const gap = left.get(pairKey(contract, to)) ?? 0n
    if (contract === null && gap !== 0n && !feesWei.has(to.toLowerCase())) throw unlike(height, to, gap)
  }
  return [...told].filter(([, units]) => units > 0n).map(([hit, units]) => ({ ...hit, units }))
}

/** A SELFDESTRUCT that says what was said before in its transaction. */
function isRepetition(hit: Arrival, arrivals: readonly Arrival[]): boolean {
  if (hit.selfdestructOf === undefined) return false
  const first = arrivals.find(
    ({ txHash, contract, from, to, units }) =>
      txHash === hit.txHash && contract === null && from === hit.from && to === hit.to && units === hit.units,
  )
  return first !== hit
}

function falsestFirst(left: Arrival, right: Arrival): number {
  const isOfOther = ({ from, selfdestructOf }: Arrival) => (from === selfdestructOf ? 0 : 1)
  return isOfOther(right) - isOfOther(left)
}

function unlike(height: number, address: string, gap: bigint): NodeNonsense {
  const came = gap > 0n ? `${gap} wei less` : `${-gap} wei more`
  return new NodeNonsense(
    `block ${height}: by its balances ${came} came to ${address} than the node's traces say. The node does not trace as it ` +
      'executes: update it, or use another; the block is read again',
  )
}
