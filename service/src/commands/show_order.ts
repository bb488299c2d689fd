import type { Command } from 'commander'
import { CommandRefused } from '../command_refused.ts'
import type { Database } from '../db/database.ts'
import { findByShortId, type OrderFile, readOrderFile } from '../db/order_file.ts'
import { findOrder } from '../db/orders.ts'
import { readTold, type Told } from '../db/told_of_order.ts'
import { escapeControls } from '../domain/control_characters.ts'
import { showRate } from '../domain/money/rate.ts'
import { isOrderId, type OrderId } from '../domain/orders/identifiers.ts'
import type { Order } from '../domain/orders/order.ts'
import { hostOf } from '../domain/webhooks/receiver_url.ts'
import { show } from '../engine/books/audit_order.ts'
import { verdictText } from '../engine/payouts/judge.ts'
import { type Json, type OrderCommandWorld, withDatabase } from './command_world.ts'
import { describeTold } from './describe_told.ts'
import { section, showTime, toJson } from './table.ts'

export function registerShow(order: Command, world: OrderCommandWorld): void {
  order
    .command('show')
    .argument('<id>', 'the order id, or its last 8 digits')
    .option('--json', 'machine-readable output')
    .description('an order with everything that happened to it')
    .action((id: string, options: Json) =>
      withDatabase(world, async (db) => {
        const orderId = await resolveOrderId(db, id)
        const found = await findOrder(db, orderId)
        if (found === null) throw new CommandRefused(`There is no order ${orderId}.`)
        const file = await readOrderFile(db, orderId)
        const told = await readTold(db, found)
        world.print(
          options.json
            ? toJson({ order: withoutUrl(found), ...file, told })
            : describeOrder(found, file, told),
        )
      }),
    )
}

/** A callback_url may hold a secret of whoever made the order. */
function withoutUrl({ terms: { callbackUrl, ...terms }, ...order }: Order) {
  return { ...order, terms: { ...terms, callbackHost: callbackUrl === null ? null : hostOf(callbackUrl) } }
}

/** The id of an order that is named by it or by its last 8 digits; refuses by throwing. */
export async function resolveOrderId(db: Database, id: string): Promise<OrderId> {
  if (isOrderId(id)) return id
  if (!/^\d{8}$/.test(id)) throw new CommandRefused(`${id} is neither an order id nor its last 8 digits.`)
  const found = await findByShortId(db, id)
  const [only] = found
  if (only === undefined) throw new CommandRefused(`There is no order that ends with ${id}.`)
  if (found.length > 1) throw new CommandRefused(`Several orders end with ${id}: ${found.join(', ')}`)
  return only
}

function describeOrder(order: Order, file: OrderFile, told: Told): string {
  const parts = [describeTerms(order, file), describeDeposits(order), ...describeFile(file)]
  return [...parts, ...describeTold(order, told)].join('\n\n')
}

function describeTerms(order: Order, { exchange }: OrderFile): string {
  const { terms, state, refundAddress, sequence, updatedAtMs } = order
  const reasons = state.status === 'EMERGENCY' ? ` (${state.reasons.join(', ')})` : ''
  const rate = `1 ${terms.from} = ${showRate(terms.rate)} ${terms.to}, ${terms.rateType}`
  const settled = 'settlement' in state && state.settlement !== null ? state.settlement : null
  const refund = 'refund' in state ? state.refund : null
  const txHash = 'txHash' in state ? state.txHash : null
  const rows = [
    ['Order', terms.id],
    ['Status', `${state.status}${reasons}, event ${sequence}, updated ${showTime(updatedAtMs)}`],
    ['Account', terms.accountId],
    ['Created', `${showTime(terms.createdAtMs)}, expires ${showTime(terms.expiresAtMs)}`],
    ['Asks', `${show(terms.from, terms.asks.units)} to ${terms.depositAddress}`],
    ...(terms.depositTag === null ? [] : [['Deposit tag', terms.depositTag]]),
    ['Promises', `${show(terms.to, terms.promises.units)} to ${terms.destination}`],
    ...(terms.destinationTag === null ? [] : [['Tag', terms.destinationTag]]),
    ['Rate', rate],
    ['Refund to', refundAddress ?? '-'],
    ...(exchange === null ? [] : [['Exchange', describeTrouble(exchange)]]),
    ...(settled === null
      ? []
      : [
          [
            'Settled',
            `${show(terms.from, settled.received.units)} for ${show(terms.to, settled.paid.units)} (fee ${show(terms.to, settled.fee.units)}, network ${show(terms.to, settled.networkFee.units)})`,
          ],
        ]),
    ...(refund === null ? [] : [['Refund', `${show(terms.from, refund.amount.units)} to ${refund.address}`]]),
    ...(txHash === null ? [] : [[refund === null ? 'Paid by' : 'Refunded by', txHash]]),
  ]
  const width = Math.max(...rows.map(([name = '']) => name.length)) + 2
  return rows.map(([name = '', value = '']) => `${name.padEnd(width)}${value}`).join('\n')
}

/** Kept until the next: a person is asked about what was given up, and it says why. */
function describeTrouble({ trouble, trouble_since_ms }: NonNullable<OrderFile['exchange']>): string {
  const waits = trouble_since_ms === null ? 'had to wait' : `waits since ${showTime(trouble_since_ms)}`
  return `${waits}: ${escapeControls(trouble)}`
}

function describeDeposits({ deposits }: Order): string {
  const rows = deposits.map((deposit) => [
    deposit.key,
    show(deposit.amount.asset, deposit.amount.units),
    deposit.isLate ? `${deposit.role}, late` : deposit.role,
    deposit.state,
    deposit.block === null ? '-' : `${deposit.block.height} ${deposit.block.hash}`,
    showTime(deposit.seenAtMs),
    deposit.txHash,
  ])
  return section('Deposits', ['DEPOSIT', 'AMOUNT', 'ROLE', 'STATE', 'BLOCK', 'SEEN', 'TRANSACTION'], rows)
}

function describeFile(file: OrderFile): string[] {
  return [
    describeAtAddress(file),
    describeWords(file),
    describeVerdicts(file),
    describeNotes(file),
    describeEvents(file),
    describeFacts(file),
    describePostings(file),
    describeOutflows(file),
    describeAttempts(file),
  ]
}

function describeAtAddress({ at_address }: OrderFile): string {
  const rows = at_address.map((one) => [
    one.deposit_key,
    one.kind,
    show(one.asset, one.units),
    one.state,
    showTime(one.seen_at_ms),
    one.tx_hash,
  ])
  const head = ['DEPOSIT', 'WHY', 'AMOUNT', 'STATE', 'SEEN', 'TRANSACTION']
  return section("At its address, not the order's", head, rows)
}

function describeWords({ words }: OrderFile): string {
  const rows = words.map((one) => [one.about, show(one.asset, one.units), showTime(one.at_ms), one.because])
  return section('Closed or written off', ['ABOUT', 'AMOUNT', 'AT', 'BECAUSE'], rows)
}

function describeVerdicts({ verdicts }: OrderFile): string {
  const rows = verdicts.map((one) => [
    one.payout_id,
    verdictText(one.is_paid),
    one.tx_hash,
    one.moved,
    showTime(one.at_ms),
    one.by ?? '-',
    one.because ?? '-',
  ])
  return section('Judged', ['OUTFLOW', 'AS', 'TRANSACTION', 'MOVED', 'AT', 'BY', 'BECAUSE'], rows)
}

function describeNotes({ notes }: OrderFile): string {
  const rows = notes.map((one) => [one.subject, showTime(one.at_ms), one.by ?? '-', one.because ?? '-'])
  return section('Noted', ['ABOUT', 'AT', 'BY', 'BECAUSE'], rows)
}

function describeEvents({ events }: OrderFile): string {
  const rows = events.map((event) => [
    String(event.sequence),
    showTime(event.at_ms),
    event.previous_status ?? '-',
    event.status,
    event.fact_key,
  ])
  return section('Events', ['#', 'AT', 'FROM', 'TO', 'BECAUSE OF'], rows)
}

function describeFacts({ facts }: OrderFile): string {
  const rows = facts.map((fact) => [showTime(fact.at_ms), fact.kind, fact.outcome, fact.fact_key])
  return section('Facts', ['AT', 'FACT', 'OUTCOME', 'KEY'], rows)
}

function describePostings({ postings }: OrderFile): string {
  const rows = postings.map((one) => [
    showTime(one.at_ms),
    one.debit,
    one.credit,
    show(one.asset, one.units),
    one.entry_key,
  ])
  return section('Postings', ['AT', 'DEBIT', 'CREDIT', 'AMOUNT', 'ENTRY'], rows)
}

function describeOutflows({ outflows }: OrderFile): string {
  const rows = outflows.map((one) => [
    one.payout_id,
    one.kind,
    one.state,
    show(one.asset, one.units),
    one.address,
    one.tag ?? '-',
    showTime(one.planned_at_ms),
    one.trouble ?? '-',
  ])
  const head = ['OUTFLOW', 'KIND', 'STATE', 'AMOUNT', 'TO', 'TAG', 'PLANNED', 'TROUBLE']
  return section('Outflows', head, rows)
}

function describeAttempts({ attempts }: OrderFile): string {
  const rows = attempts.map((one) => [
    one.payout_id,
    String(one.attempt),
    one.tx_hash ?? '-',
    one.answer ?? '-',
    showTime(one.drafted_at_ms),
    showTime(one.broadcast_at_ms),
  ])
  return section('Attempts', ['OUTFLOW', '#', 'TRANSACTION', 'ANSWER', 'DRAFTED', 'SENT'], rows)
}
