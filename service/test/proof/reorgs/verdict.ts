import type { AssetId } from '../../../src/domain/catalog/assets.ts'
import type { CurrencyCode } from '../../../src/domain/catalog/currencies.ts'
import type { NetworkId } from '../../../src/domain/catalog/networks.ts'
import { fromChainUnits } from '../../../src/domain/money/amount.ts'
import type { OrderStatus } from '../../../src/domain/orders/order.ts'
import { balanceOf } from '../../harness/amounts.ts'
import { bookedFor } from '../../harness/orders.ts'
import { checkPaid, checkRefunded, type EndedRow } from './amounts.ts'
import type { Storm, StormOrder } from './storm.ts'

type Row = EndedRow & { readonly order_id: string; readonly status: OrderStatus }

export type Verdict = {
  readonly status: OrderStatus
  /** What the order was paid out for and is on the chain no more, in units of its asset. */
  readonly lostUnits: bigint
  /** Everything that does not follow from what is finally on the chains, a sentence each. */
  readonly wrong: readonly string[]
}

/** Holds an order that has ended against what the nodes say now, and what they once said. */
export async function judge(storm: Storm, order: StormOrder): Promise<Verdict> {
  const { sandbox, diaries } = storm
  const [row] = await sandbox.rows<Row>(
    `SELECT orders.*, asked.order_id IS NOT NULL AS was_asked, asked.shown_refund_fee FROM orders LEFT JOIN (
       SELECT order_id, snapshot #>> '{emergency,options,refund,network_fee}' AS shown_refund_fee FROM events
       WHERE order_id = $1 AND status = 'EMERGENCY' ORDER BY sequence DESC LIMIT 1) asked USING (order_id)
     WHERE order_id = $1`,
    [order.created.order_id],
  )
  if (row === undefined) throw new Error(`${order.created.order_id} is gone`)
  const diary = diaries[order.chain]
  const units = (payments: StormOrder['payments']) =>
    payments.map((payment) => fromChainUnits(row.from_asset, payment.units).units)
  const standing = order.payments.filter(({ txHash }) => diary.depthOf(txHash) > 0)
  const wereDeep = order.payments.filter(({ txHash }) => diary.deepestOf(txHash) >= order.confirmations)
  const used = usedOf(row)
  const lost = await bookedFor(sandbox, row.order_id, 'orphaned_deposits', row.from_asset)
  const unclaimed = -(await bookedFor(sandbox, row.order_id, 'unclaimed', row.from_asset))
  const wrong = [
    ...(isSumOfSome(used, units(wereDeep))
      ? []
      : [`it used ${used}, and no deposits that were ever deep enough come to that`]),
    ...(used - lost + unclaimed === sum(units(standing))
      ? []
      : [`it used ${used}, lost ${lost}, has ${unclaimed} unclaimed, and the chain ${sum(units(standing))}`]),
    ...(isSumOfSome(lost, units(wereDeep.filter((payment) => !standing.includes(payment))))
      ? []
      : [`it lost ${lost}, and no deposits that were deep once and are gone come to that`]),
    ...(unclaimed <= (await cameTooLate(storm, row))
      ? []
      : [`it has ${unclaimed} unclaimed, and not that much came after it was settled`]),
    ...(row.status === 'EXPIRED' && standing.some((payment) => wereDeep.includes(payment))
      ? ['it expired, and a deposit of it is on the chain']
      : []),
    ...(await checkEnd(storm, order, row)),
  ]
  return {
    status: row.status,
    lostUnits: lost,
    wrong: wrong.map((one) => `${row.order_id} ${row.status}: ${one}`),
  }
}

/** What the outflow was made of, in ledger units of the deposit's asset. */
function usedOf({ settled_received, refund_units, refund_network_fee }: Row): bigint {
  return settled_received ?? (refund_units ?? 0n) + (refund_network_fee ?? 0n)
}

/** What was confirmed after no exchange or refund could use it any more; 0 where there was none. */
async function cameTooLate({ sandbox }: Storm, { order_id, from_asset }: Row): Promise<bigint> {
  const [came] = await sandbox.rows<{ units: bigint }>(
    `SELECT coalesce(sum(units), 0)::numeric(78,0) AS units FROM deposits d WHERE order_id = $1 AND asset = $2 AND EXISTS (
       SELECT FROM facts f WHERE f.order_id = $1 AND starts_with(fact_key, deposit_key || ':confirmed:')
         AND f.at_ms >= (SELECT min(e.at_ms) FROM events e WHERE e.order_id = $1 AND e.status IN ('EXCHANGE', 'REFUND')))`,
    [order_id, from_asset],
  )
  return came?.units ?? 0n
}

async function checkEnd(storm: Storm, { created, refundAddress }: StormOrder, row: Row): Promise<string[]> {
  const paid = await held(storm, row.to_asset, created.destination)
  const refunded = await held(storm, row.from_asset, refundAddress)
  const owes = row.status === 'DONE' ? (row.settled_paid ?? -1n) : 0n
  const owesBack = row.status === 'REFUNDED' ? (row.refund_units ?? -1n) : 0n
  const wrong = [
    ...(paid === owes ? [] : [`its destination has ${paid} and is owed ${owes}`]),
    ...(refunded === owesBack ? [] : [`its refund address has ${refunded} and is owed ${owesBack}`]),
  ]
  if (row.status === 'DONE') wrong.push(...checkPaid(created, row))
  else if (row.status === 'REFUNDED') wrong.push(...checkRefunded(row))
  else if (row.status === 'EXPIRED' && usedOf(row) !== 0n) wrong.push('it expired and used something')
  else if (row.status !== 'EXPIRED') wrong.push('it has not ended')
  return wrong
}

async function held({ sandbox }: Storm, asset: AssetId, address: string): Promise<bigint> {
  const [currency, network] = asset.split(':') as [CurrencyCode, NetworkId]
  return fromChainUnits(asset, await balanceOf(sandbox, address, currency, network)).units
}

function sum(units: readonly bigint[]): bigint {
  return units.reduce((total, one) => total + one, 0n)
}

function isSumOfSome(total: bigint, units: readonly bigint[]): boolean {
  if (total === 0n) return true
  const [first, ...rest] = units
  if (first === undefined || total < 0n) return false
  return isSumOfSome(total - first, rest) || isSumOfSome(total, rest)
}

/**
 * Outflows that were signed more than once, or have more than one exact transaction. On TRON an attempt has its time: there
 * another one may follow that refers to a solid block after it.
 */
export async function findSignedAnew({ sandbox }: Storm): Promise<string[]> {
  const found = await sandbox.rows<{ payout_id: string; drafted: number; over: number; signed: number }>(
    `SELECT o.payout_id, (SELECT count(*) FROM attempts a WHERE a.payout_id = o.payout_id) AS drafted,
       (SELECT count(*) FROM attempts a JOIN attempts later USING (bucket, payout_id)
        WHERE a.payout_id = o.payout_id AND o.chain = 'TRX' AND later.attempt = a.attempt + 1
          AND (later.intent #>> '{reference,timeMs}')::bigint >= (a.intent ->> 'expirationMs')::bigint) AS over,
       (SELECT count(*) FROM signer.signed_transactions s WHERE s.payout_id = o.payout_id) AS signed FROM outflows o`,
  )
  return found
    .filter(({ drafted, over, signed }) => drafted > 1 + over || signed > 1 + over)
    .map(
      ({ payout_id, drafted, signed }) =>
        `${payout_id} was drafted ${drafted} times and signed ${signed} times`,
    )
}
