import { assert } from '../../src/domain/assert.ts'
import { type Asset, type AssetId, assetOf, nativeAsset } from '../../src/domain/catalog/assets.ts'
import type { ChainId } from '../../src/domain/catalog/networks.ts'
import { fromChainUnits, parseAmount } from '../../src/domain/money/amount.ts'
import type { EmergencyReason, OrderStatus } from '../../src/domain/orders/order.ts'
import { defaultPolicy } from '../../src/engine/default_policy.ts'
import type { EmergencyAction, OrderView } from '../../src/engine/desks/desk.ts'
import { SILENCE_MS } from '../../src/engine/watching/silence.ts'
import { heldBy, type Owed } from './chain_promises.ts'
import { depositPlace, refundPlace, type Wanted } from './customers.ts'
import type { Play } from './play.ts'
import { type Path, pathsOf, receivable, sumOf, sumsOfSome } from './receipts.ts'
import type { Tariff } from './tariffs.ts'
import type { Planned } from './witness.ts'

/**
 * What clients got is worked out anew: from what came on the chains, what things were worth when it was settled, the fee
 * that is asked, and what payouts were said to cost. The tables are asked how each order ended, when its client was
 * asked and when something was heard of first, but for no amount.
 */
export async function findWrongAmounts(
  play: Play,
  wanted: readonly Wanted[],
  owed: readonly Owed[],
): Promise<string[]> {
  const ended = await play.ground.rows<Ended>(
    `SELECT order_id, status, from_asset,
       (SELECT jsonb_agg(jsonb_build_object('atMs', at_ms, 'reasons', snapshot->'emergency'->'reasons') ORDER BY sequence)
          FROM events e WHERE (e.bucket, e.order_id) = (o.bucket, o.order_id) AND e.status = 'EMERGENCY') AS asked,
       (SELECT min(seen_at_ms) FROM deposits d WHERE (d.bucket, d.order_id) = (o.bucket, o.order_id)) AS "heardAtMs"
     FROM orders o WHERE status IN ('DONE', 'REFUNDED', 'EXPIRED', 'EMERGENCY')`,
  )
  const areOwed = new Set(owed.map(({ order_id }) => order_id))
  return ended.flatMap((order) => {
    const client = wanted.find((one) => one.order?.order_id === order.order_id)
    if (client?.order == null || areOwed.has(order.order_id)) return []
    const story = storyOf(play, order, client, client.order)
    return [
      ...judgeShown(story, client),
      ...judgeTime(story, client),
      ...judgeReasons(story),
      ...judge(story),
    ]
  })
}

type Ended = {
  readonly order_id: string
  readonly status: OrderStatus
  /** Only names the place of its refund. */
  readonly from_asset: AssetId
  /** When its client was asked what to do, and why. */
  readonly asked: readonly { readonly atMs: number; readonly reasons: readonly EmergencyReason[] }[] | null
  /** From when its first deposit counts, which says whether it was in time. */
  readonly heardAtMs: number | null
}

/** An order, and everything that was seen of it from outside. */
type Story = {
  readonly play: Play
  readonly ended: Ended
  readonly shown: OrderView
  readonly from: Asset
  readonly to: Asset
  readonly destination: string
  readonly paths: readonly Path[]
  readonly choices: ReadonlySet<EmergencyAction>
  /** Looks in which its last outflow may have been planned. */
  readonly planned: readonly Planned[]
}

function storyOf(play: Play, ended: Ended, { request }: Wanted, shown: OrderView): Story {
  const from = assetOf(`${request.from}:${request.fromNetwork}` as AssetId)
  const to = assetOf(`${request.to}:${request.toNetwork}` as AssetId)
  const history = play.nodes[from.chain].history()
  const kind = ended.status === 'DONE' ? 'payout' : 'refund'
  const alike = (play.witness.planned.get(ended.order_id) ?? []).filter((one) => one.kind === kind)
  const last = Math.max(...alike.map(({ number }) => number))
  // One that somebody overtook is made anew, for what it was planned for.
  const wasMadeAnew = play.nodes.XLM.overtaken.has(
    kind === 'payout' ? request.destination : refundPlace(ended),
  )
  return {
    play,
    ended,
    shown,
    from,
    to,
    destination: request.destination,
    paths: pathsOf(history, {
      asset: from.id,
      address: depositPlace(shown),
      asked: unitsIn(from, shown.deposit_amount),
    }),
    choices: new Set(play.choices.get(ended.order_id)),
    planned: wasMadeAnew ? alike : alike.filter(({ number }) => number === last),
  }
}

/** What is shown is worth what is asked for, by prices and costs of a moment between the question and the answer. */
function judgeShown(story: Story, { askedAtMs, answeredAtMs }: Wanted): string[] {
  const { shown, from, to, play, ended } = story
  assert(askedAtMs !== null && answeredAtMs !== null, 'who has an order has asked and was answered')
  const asked = unitsIn(from, shown.deposit_amount)
  const is = unitsIn(to, shown.receive_amount)
  const costs = play.tariffs.costsUntil(to.id, answeredAtMs)
  const should = play.tariffs
    .during(askedAtMs, answeredAtMs)
    .flatMap((tariff) => costs.map((cost) => atMarket(story, asked, costIn(to, cost, tariff), tariff)))
  if (should.includes(is)) return []
  return [
    `what is shown is what it is worth: ${ended.order_id}, ${shown.rate_type}, shows ${is} of ${to.id} and is worth ${should.join(' or ')}`,
  ]
}

/** A rate is kept for who pays in time: who has sent nothing before its end is asked first. */
function judgeTime({ shown, ended, choices }: Story, { sentAtMs }: Wanted): string[] {
  // What is heard of counts from when the node was asked for it, and that may be a little before it was sent.
  const mayBeLaterMs = ended.heardAtMs !== null && ended.heardAtMs < shown.expires_at ? SILENCE_MS : 0
  const wasInTime = sentAtMs.some((atMs) => atMs < shown.expires_at + mayBeLaterMs)
  if (ended.status !== 'DONE' || choices.size > 0 || wasInTime) return []
  return [`who pays too late is asked: ${ended.order_id}, ${shown.rate_type}, is DONE, and nobody chose`]
}

const aboutPayments: ReadonlySet<EmergencyReason> = new Set(['UNDERPAID', 'OVERPAID', 'LATE_DEPOSIT'])

/** Whose only payment is what was asked, in a block that was never lost and is older than the order's end, has done all right. */
function judgeReasons({ play, ended, shown, from, paths }: Story): string[] {
  const blocks = paths.filter(({ head, arrivals }) => arrivals.some(({ height }) => height === head.height))
  const [first] = blocks
  if (first === undefined || blocks.length > 1 || first.arrivals.length > 1) return []
  const { head, arrivals } = first
  const isRight = floorTo(from.step, sumOf(arrivals), 1n) === unitsIn(from, shown.deposit_amount)
  const wasInTime = head.timeMs + play.time.aheadMs < shown.expires_at
  if (!isRight || !wasInTime || play.nodes[from.chain].lostAtMs(head.hash) !== null) return []
  const wrong = (ended.asked ?? []).flatMap(({ reasons }) =>
    reasons.filter((reason) => aboutPayments.has(reason)),
  )
  return wrong.length === 0
    ? []
    : [`who pays as asked is not asked about it: ${ended.order_id}, ${wrong.join(' and ')}`]
}

function judge(story: Story): string[] {
  const { ended, from, to, destination } = story
  const { nodes } = story.play
  switch (ended.status) {
    case 'DONE':
      return judgeAmount(story, heldBy(nodes, to, destination), duePayouts)
    case 'REFUNDED':
      return judgeAmount(story, heldBy(nodes, from, refundPlace(ended)), dueRefunds)
    default:
      return judgeUnpaid(story)
  }
}

/** From the least to the most, both right. */
type Due = { readonly least: bigint; readonly most: bigint }

/** What may be due for an amount that was received, settled in this look. */
type DueFor = (story: Story, received: bigint, planned: Planned) => readonly Due[]

function judgeAmount(story: Story, got: bigint, dueFor: DueFor): string[] {
  const { play, shown, ended, from, planned, paths, choices } = story
  const requiredDepth = play.witness.requiredDepth(from.id, unitsIn(from, shown.deposit_amount))
  const course = { isChosen: choices.size > 0, requiredDepth }
  const isRight = (one: Planned, sums: Iterable<bigint>) =>
    [...sums].some((sum) => dueFor(story, sum, one).some(({ least, most }) => least <= got && got <= most))
  const mayReceive = ({ atMs: untilMs, lookedHeights }: Planned) =>
    receivable(paths, { ...course, untilMs, lookedHeight: lookedHeights.get(from.chain) ?? 0 })
  if (planned.some((one) => isRight(one, mayReceive(one)))) return []
  const parts = new Set(paths.flatMap(({ arrivals }) => sumsOfSome(arrivals, (_, index) => index)))
  const isForLess = planned.some((one) => isRight(one, parts))
  const promise = isForLess ? 'all that came in time counts' : 'what is due is paid'
  const came = [...new Set(planned.flatMap((one) => [...mayReceive(one)]))]
  return [
    `${promise}: ${ended.order_id}, ${shown.rate_type}, is ${ended.status} with ${got} for ${came.join(' or ')} of ${from.id}`,
  ]
}

/** Who has paid and has not been served is asked what to do. */
function judgeUnpaid(story: Story): string[] {
  const { play, ended, from, paths } = story
  const { hash } = play.nodes[from.chain].head()
  const came = sumOf(paths.find(({ head }) => head.hash === hash)?.arrivals ?? [])
  const isWorthIt = play.tariffs.during(0, Number.POSITIVE_INFINITY).every((tariff) => {
    const cost = costIn(from, tariff.costs.get(from.id) ?? 0n, tariff) + failedCost(story, from, tariff)
    return came >= cost + from.minPayout + from.step
  })
  // Whose payment does not pay for its way back has nothing to choose, and waits.
  const isServed = came === 0n || (ended.status === 'EMERGENCY' && !isWorthIt)
  if (isServed) return []
  return [
    `all that came in time counts: ${ended.order_id} is ${ended.status}, and ${came} of ${from.id} have come`,
  ]
}

/**
 * A fixed order that nothing went wrong with pays what it has shown. Whoever chose has the market; by `continue` the rate that was
 * shown as long as it is locked.
 */
function duePayouts(story: Story, received: bigint, planned: Planned): readonly Due[] {
  const { shown, from, to, choices, play } = story
  const isWhatWasAsked = floorTo(from.step, received, 1n) === unitsIn(from, shown.deposit_amount)
  if (choices.size === 0 && !isWhatWasAsked) return []
  const promised = unitsIn(to, shown.receive_amount)
  const isFixed = shown.rate_type === 'fixed'
  const due: Due[] = isFixed && isWhatWasAsked ? [{ least: promised, most: promised }] : []
  for (const tariff of play.tariffs.during(planned.begunAtMs, planned.atMs)) {
    const failed = failedCost(story, to, tariff)
    const isLocked = isFixed && mayBeLocked(story, received, planned, tariff)
    if (!isFixed || choices.has('recalculate') || (choices.has('continue') && isLocked !== true)) {
      for (const cost of play.tariffs.costsUntil(to.id, planned.atMs)) {
        const charged = costIn(to, cost, tariff)
        const atCost = (all: bigint) => atMarket(story, received, all, tariff)
        due.push({ least: atCost(charged + failed), most: atCost(charged) })
      }
    }
    if (choices.has('continue') && isLocked !== false) {
      const most = atRate(story, received)
      due.push({ least: floorTo(to.step, most - failed, 1n), most })
    }
  }
  // Further below what was shown than this nobody is paid who was not asked.
  const share = WHOLE_BASIS_POINTS - defaultPolicy.slippage
  const isFairWithoutAsking = ({ most }: Due) => most * WHOLE_BASIS_POINTS >= promised * share
  return choices.size > 0 ? due : due.filter(isFairWithoutAsking)
}

const LOCK_HELD_MS = 3_600_000

/**
 * Whether `continue` keeps the rate that was shown: for an hour after the order's expiry if nothing came too late, and what came
 * is worth its own payout and could have been asked for. No longer; where only the house was in trouble, for an hour after its
 * client was first asked.
 */
function mayBeLocked(story: Story, received: bigint, planned: Planned, tariff: Tariff): boolean | 'unclear' {
  const { shown, ended, from, to, play } = story
  const asked = ended.asked ?? []
  const isOurs = asked.some(({ reasons }) => reasons.every((reason) => reason === 'NETWORK_PROBLEM'))
  const heldSinceMs = isOurs ? Math.max(shown.expires_at, asked[0]?.atMs ?? 0) : shown.expires_at
  if (planned.begunAtMs >= heldSinceMs + LOCK_HELD_MS) return false
  const isLate = asked.some(({ reasons }) => reasons.includes('LATE_DEPOSIT'))
  const costs = play.tariffs.costsUntil(to.id, planned.atMs).map((cost) => costIn(to, cost, tariff))
  const failed = failedCost(story, to, tariff)
  const isWorthIt = costs.every((cost) => atMarket(story, received, cost + failed, tariff) >= to.minPayout)
  const isUsual = received <= from.maxAmount && isWorthIt && paysItsShare(story, received)
  return planned.atMs < shown.expires_at + LOCK_HELD_MS && !isLate && isUsual ? true : 'unclear'
}

/** What is missing of the network's cost, because less came, is no more than the fee. */
function paysItsShare(story: Story, received: bigint): boolean {
  const { shown, from, to } = story
  const asked = unitsIn(from, shown.deposit_amount)
  const fee = (atRate(story, received) * defaultPolicy.fees.fixed) / WHOLE_BASIS_POINTS
  return (asked - received) * unitsIn(to, shown.network_fee) <= fee * asked
}

function dueRefunds(story: Story, received: bigint, { begunAtMs, atMs }: Planned): readonly Due[] {
  const { from, play } = story
  if (!story.choices.has('refund')) return []
  return play.tariffs.during(begunAtMs, atMs).flatMap((tariff) => {
    const failed = failedCost(story, from, tariff)
    return play.tariffs.costsUntil(from.id, atMs).map((cost): Due => {
      const left = received - costIn(from, cost, tariff)
      return { least: floorTo(from.step, left - failed, 1n), most: floorTo(from.step, left, 1n) }
    })
  })
}

const WHOLE_BASIS_POINTS = 10_000n

/** Received × price, less the network's cost; the rest is what is paid and the fee on it. Rounded down once. */
function atMarket({ from, to, shown }: Story, received: bigint, cost: bigint, tariff: Tariff): bigint {
  const worth = received * usdOf(from, tariff) * tenTo(to.decimals)
  const each = usdOf(to, tariff) * tenTo(from.decimals)
  const fee = defaultPolicy.fees[shown.rate_type]
  return floorTo(to.step, (worth - cost * each) * WHOLE_BASIS_POINTS, each * (WHOLE_BASIS_POINTS + fee))
}

/** At the rate that was shown, which has everything in it. */
function atRate({ from, to, shown }: Story, received: bigint): bigint {
  const [whole = '', fraction = ''] = shown.rate.split('.')
  const digits = BigInt(whole + fraction)
  return floorTo(
    to.step,
    received * digits * tenTo(to.decimals),
    tenTo(fraction.length) * tenTo(from.decimals),
  )
}

/**
 * What payments that were executed and failed have cost at the most, told in an asset: it is taken off what is offered next where
 * that was the customer's doing, and nothing is where it was not.
 */
function failedCost(story: Story, asset: Asset, tariff: Tariff): bigint {
  const { play, ended, from, to, destination } = story
  const spentOn = (chain: ChainId, address: string) => {
    const chainUnits = chain === 'BTC' ? 0n : play.nodes[chain].failedCost(address)
    return told(asset, nativeAsset(chain), fromChainUnits(nativeAsset(chain).id, chainUnits).units, tariff)
  }
  return spentOn(to.chain, destination) + spentOn(from.chain, refundPlace(ended))
}

/** What sending an asset out costs in its chain's coin, told in itself. */
function costIn(asset: Asset, chainUnits: bigint, tariff: Tariff): bigint {
  const native = nativeAsset(asset.chain)
  return told(asset, native, fromChainUnits(native.id, chainUnits).units, tariff)
}

/** Raised to what is shown. */
function told(asset: Asset, native: Asset, units: bigint, tariff: Tariff): bigint {
  const worth = units * usdOf(native, tariff) * tenTo(asset.decimals)
  const each = usdOf(asset, tariff) * tenTo(native.decimals)
  return -floorTo(asset.step, -worth, each)
}

/** The greatest multiple of `step` that is no more than the fraction. */
function floorTo(step: bigint, numerator: bigint, denominator: bigint): bigint {
  const divisor = denominator * step
  const quotient = numerator / divisor
  return (quotient * divisor > numerator ? quotient - 1n : quotient) * step
}

function usdOf({ currency }: Asset, { usd }: Tariff): bigint {
  const price = usd.get(currency)
  assert(price != null, `${currency} has a price`)
  return price
}

function unitsIn(asset: Asset, text: string): bigint {
  const amount = parseAmount(asset, text)
  assert(amount.ok, `${text} is an amount`)
  return amount.value.units
}

function tenTo(exponent: number): bigint {
  return 10n ** BigInt(exponent)
}
