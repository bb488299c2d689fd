import type { Block } from '../../src/chains/chain.ts'
import type { AssetId } from '../../src/domain/catalog/assets.ts'
import { assetOf } from '../../src/domain/catalog/assets.ts'

/** A payment to the order's address, in its asset. */
export type Arrival = { readonly txHash: string; readonly units: bigint; readonly height: number }

/** A block, and what had come to an order, and counts for it, when it was the newest one. */
export type Path = { readonly head: Block; readonly arrivals: readonly Arrival[] }

export type PaidTo = { readonly asset: AssetId; readonly address: string; readonly asked: bigint }

/** A chain as it was at any moment, and on any branch, is the blocks below one of these. */
export function pathsOf(history: readonly Block[], paidTo: PaidTo): readonly Path[] {
  const { asset, address } = paidTo
  const known = new Map<string, readonly Arrival[]>()
  return history.flatMap((head) => {
    const before = known.get(head.parentHash) ?? []
    const here = head.transfers.filter((transfer) => transfer.to === address && transfer.asset === asset)
    const more = here.map(({ txHash, units }) => ({ txHash, units, height: head.height }))
    const came = more.length === 0 ? before : [...before, ...more]
    known.set(head.hash, came)
    return countable(came, paidTo).map((arrivals) => ({ head, arrivals }))
  })
}

/** What counts of all that came: no dust, but one of those that make of too little what was asked. Which of several is not said. */
function countable(came: readonly Arrival[], { asset, asked }: PaidTo): readonly (readonly Arrival[])[] {
  const { minCredit, step } = assetOf(asset)
  const usual = came.filter(({ units }) => units >= minCredit)
  const isShort = sumOf(usual) < asked
  const missing = asked - sumOf(usual)
  const isMissing = ({ units }: Arrival) => isShort && units >= missing && units < missing + step
  const completing = came.filter((one) => !usual.includes(one) && isMissing(one))
  if (completing.length === 0) return [usual]
  return completing.map((one) => came.filter((arrival) => arrival === one || usual.includes(arrival)))
}

export type Course = {
  /** When what was received was settled. */
  readonly untilMs: number
  /** Whether its client has ever chosen anything. */
  readonly isChosen: boolean
  /** How far the chain was known at the least when it was settled. */
  readonly lookedHeight: number
  /** How deep a payment has to be for this order. */
  readonly requiredDepth: number
}

/**
 * Every amount that an order may have received. A service may be behind the chain, and on a branch that loses later, but what
 * it goes by was the chain once: so it has all payments up to a block, or none of that block. By itself it does not settle
 * while another payment waits in a block for its confirmations; who chooses does not wait for it: he is given what is deep then, and
 * all of it that was deep when the service looked last. What is not deep is too late for this order, unless that settlement comes to
 * nothing: what came while it was under way counts for the next.
 */
export function receivable(
  paths: readonly Path[],
  { untilMs, isChosen, lookedHeight, requiredDepth }: Course,
): ReadonlySet<bigint> {
  const sums = new Set<bigint>()
  for (const { head, arrivals } of paths) {
    if (arrivals.length === 0 || head.timeMs > untilMs || head.height < lookedHeight) continue
    const deep = arrivals.filter(({ height }) => head.height - height + 1 >= requiredDepth)
    if (deep.length === arrivals.length || (isChosen && deep.length > 0)) sums.add(sumOf(deep))
  }
  return sums
}

/** Of every choice of groups, but none. */
export function sumsOfSome(
  arrivals: readonly Arrival[],
  groupOf: (arrival: Arrival, index: number) => string | number,
): readonly bigint[] {
  const numbered = arrivals.map((arrival, index) => [arrival, groupOf(arrival, index)] as const)
  let sums: readonly bigint[] = [0n]
  for (const group of Map.groupBy(numbered, ([, name]) => name).values()) {
    const more = sumOf(group.map(([arrival]) => arrival))
    sums = [...new Set([...sums, ...sums.map((sum) => sum + more)])]
  }
  return sums.filter((sum) => sum > 0n)
}

export function sumOf(arrivals: readonly Arrival[]): bigint {
  return arrivals.reduce((sum, { units }) => sum + units, 0n)
}
