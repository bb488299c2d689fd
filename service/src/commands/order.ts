import type { Command } from 'commander'
import { CommandRefused } from '../command_refused.ts'
import type { Database } from '../db/database.ts'
import {
  listReserveArrivals,
  listUnclaimed,
  type ReserveArrival,
  type Unclaimed,
} from '../db/house_deposits.ts'
import {
  findByShortId,
  type ListedOrder,
  listOrders,
  listTroubled,
  listUnended,
  type OrderFile,
  readOrderFile,
  type TroubledOutflow,
  type UnendedOutflow,
} from '../db/order_file.ts'
import { findOrder } from '../db/orders.ts'
import { readTold, type Told } from '../db/told_of_order.ts'
import { assets } from '../domain/catalog/assets.ts'
import { showRate } from '../domain/money/rate.ts'
import { isOrderId, type OrderId } from '../domain/orders/identifiers.ts'
import { type Order, type OrderStatus, orderStatuses } from '../domain/orders/order.ts'
import { hostOf } from '../domain/webhooks/receiver_url.ts'
import { show } from '../engine/books/audit_order.ts'
import { describeTold } from './describe_told.ts'
import { describeFound, findNamed } from './find_order.ts'
import { section, showTime, table, toJson } from './table.ts'

/** `open` connects, and `close` is called however the command ends. */
export type OrderCommandWorld = {
  open(): Promise<{ readonly db: Database; close(): Promise<void> }>
  print(text: string): void
}

type Json = { readonly json?: boolean }

/** Registers `show`, `find`, `list` and `unclaimed` below `order`. They look and change nothing. */
export function registerOrderCommands(order: Command, world: OrderCommandWorld): void {
  order.description('orders, for the operator')
  registerShow(order, world)
  registerFind(order, world)
  registerList(order, world)
  registerUnclaimed(order, world)
}

function registerShow(order: Command, world: OrderCommandWorld): void {
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

function registerFind(order: Command, world: OrderCommandWorld): void {
  order
    .command('find')
    .argument(
      '<text>',
      'an address, or the hash of a transaction: of a deposit, of unclaimed money or of a payout',
    )
    .argument('[tag]', 'the tag or memo, where many share the account')
    .option('--json', 'machine-readable output')
    .description('the order that an address or a transaction is of')
    .action((text: string, tag: string | undefined, options: Json) =>
      withDatabase(world, async (db) => {
        const found = await findNamed(db, text, tag ?? null)
        world.print(options.json ? toJson(found) : describeFound(found))
      }),
    )
}

function registerList(order: Command, world: OrderCommandWorld): void {
  type Options = Json & Listed & { limit: string }
  order
    .command('list')
    .option('--status <list>', `comma-separated, of ${orderStatuses.join(', ')}`)
    .option('--account <id>', 'those of one account')
    .option('--trouble', 'payouts, refunds and sweeps that something is in the way of, the longest first')
    .option('--outflows', 'all payouts, refunds and sweeps that have not ended, the oldest first')
    .option('--limit <count>', 'at most so many, the first of them', '50')
    .option('--json', 'machine-readable output')
    .description('orders, the newest first')
    .action((options: Options) =>
      withDatabase(world, async (db) => {
        refuseMixture(options)
        const limit = parseLimit(options.limit)
        const print = <T>(found: readonly T[], describe: (rows: readonly T[]) => string) => {
          const rows = found.slice(0, limit)
          world.print(options.json ? toJson(rows) : describe(rows) + sayMore(found.length > limit, limit))
        }
        // One more than is shown tells whether there are more.
        if (options.trouble) print(await listTroubled(db, limit + 1), describeTroubled)
        else if (options.outflows) print(await listUnended(db, limit + 1), describeUnended)
        else {
          const statuses = parseStatuses(options.status)
          print(await listOrders(db, statuses, options.account ?? null, limit + 1), describeList)
        }
      }),
    )
}

type Listed = { status?: string; account?: string; trouble?: boolean; outflows?: boolean }

function refuseMixture({ status, account, trouble, outflows }: Listed): void {
  const ofOrders = (status ?? account) !== undefined
  if (outflows && (trouble || ofOrders)) {
    throw new CommandRefused(
      '--outflows lists all outflows and no orders; leave out --trouble, --status and --account',
    )
  }
  if (trouble && ofOrders)
    throw new CommandRefused('--trouble lists outflows and no orders; leave out --status and --account')
}

function sayMore(areMore: boolean, limit: number): string {
  return areMore ? `\n\nThere are more than these ${limit}: --limit shows them.` : ''
}

function registerUnclaimed(order: Command, world: OrderCommandWorld): void {
  order
    .command('unclaimed')
    .option(
      '--reserve',
      'what came to a reserve instead, the newest first: top-ups, and money that was sent back',
    )
    .option('--json', 'machine-readable output')
    .description('money that reached us and that no order could use')
    .action((options: Json & { reserve?: boolean }) =>
      withDatabase(world, async (db) => {
        const print = <T>(found: readonly T[], describe: (rows: readonly T[]) => string) =>
          world.print(options.json ? toJson(found) : describe(found))
        if (!options.reserve) return print(await listUnclaimed(db), describeUnclaimed)
        const leasts = assets.map(({ id, minCredit }) => ({ asset: id, units: minCredit }))
        print(await listReserveArrivals(db, leasts), describeReserve)
      }),
    )
}

const unclaimedHead = [
  ...['DEPOSIT', 'TRANSACTION', 'SEEN', 'ADDRESS', 'WHY', 'AMOUNT', 'STATE', 'AT THE ADDRESS OF'],
  'MAY BE GIVEN BACK',
]

function describeUnclaimed(found: readonly Unclaimed[]): string {
  if (found.length === 0) return 'There is no unclaimed money.'
  const rows = found.map((one) => [
    one.deposit_key,
    one.tx_hash,
    showTime(one.seen_at_ms),
    one.address,
    one.kind,
    show(one.asset, one.units),
    one.state,
    one.order_id ?? '-',
    mayBeGivenBack(one),
  ])
  return table(unclaimedHead, rows)
}

function describeReserve(found: readonly ReserveArrival[]): string {
  if (found.length === 0) return 'Nothing came to a reserve.'
  const rows = found.map((one) => [
    one.deposit_key,
    show(one.asset, one.units),
    one.state,
    one.is_final ? 'yes' : 'not yet',
    showTime(one.seen_at_ms),
    one.tx_hash,
  ])
  return table(['DEPOSIT', 'AMOUNT', 'STATE', 'FINAL', 'SEEN', 'TRANSACTION'], rows)
}

function mayBeGivenBack({ is_final, may_count, may_replace, status }: Unclaimed): string {
  const reasons = [
    ...(is_final ? [] : ['it is not final']),
    ...(may_count ? [`the order is ${status}`] : []),
    ...(may_replace ? ['what the order was paid for is gone'] : []),
  ]
  return reasons.length === 0 ? 'yes' : `not yet: ${reasons.join(', and ')}`
}

async function withDatabase(world: OrderCommandWorld, work: (db: Database) => Promise<void>): Promise<void> {
  const { db, close } = await world.open()
  try {
    await work(db)
  } finally {
    await close()
  }
}

async function resolveOrderId(db: Database, id: string): Promise<OrderId> {
  if (isOrderId(id)) return id
  if (!/^\d{8}$/.test(id)) throw new CommandRefused(`${id} is neither an order id nor its last 8 digits.`)
  const found = await findByShortId(db, id)
  const [only] = found
  if (only === undefined) throw new CommandRefused(`There is no order that ends with ${id}.`)
  if (found.length > 1) throw new CommandRefused(`Several orders end with ${id}: ${found.join(', ')}`)
  return only
}

function parseStatuses(list: string | undefined): readonly OrderStatus[] {
  if (list === undefined) return orderStatuses
  return list.split(',').map((text) => {
    const status = orderStatuses.find((one) => one === text.trim().toUpperCase())
    if (status === undefined) {
      throw new CommandRefused(`${text} is not a status; there are ${orderStatuses.join(', ')}`)
    }
    return status
  })
}

function parseLimit(text: string): number {
  const limit = /^\d{1,5}$/.test(text) ? Number.parseInt(text, 10) : 0
  if (limit === 0) throw new CommandRefused(`${text} is not a count from 1 to 99999`)
  return limit
}

function describeList(found: readonly ListedOrder[]): string {
  if (found.length === 0) return 'There are no such orders.'
  const rows = found.map((one) => [
    one.order_id,
    [one.status, ...one.emergency_reasons].join(' '),
    one.rate_type,
    show(one.from_asset, one.asks),
    show(one.to_asset, one.promises),
    showTime(one.created_at_ms),
    showTime(one.updated_at_ms),
  ])
  return table(['ORDER', 'STATUS', 'RATE', 'ASKS', 'PROMISES', 'CREATED', 'UPDATED'], rows)
}

const outflowHead = ['ORDER', 'OUTFLOW', 'CHAIN', 'KIND', 'STATE', 'AMOUNT']

function whichOutflow(one: Omit<TroubledOutflow, 'trouble' | 'trouble_since_ms'>): string[] {
  const orderId = isOrderId(one.order_id) ? one.order_id : '-'
  return [orderId, one.payout_id, one.chain, one.kind, one.state, show(one.asset, one.units)]
}

function describeTroubled(found: readonly TroubledOutflow[]): string {
  if (found.length === 0) return 'Nothing is in the way of any outflow.'
  const rows = found.map((one) => [...whichOutflow(one), showTime(one.trouble_since_ms), one.trouble])
  return table([...outflowHead, 'SINCE', 'TROUBLE'], rows)
}

function describeUnended(found: readonly UnendedOutflow[]): string {
  if (found.length === 0) return 'No outflow is under way.'
  const rows = found.map((one) => [
    ...whichOutflow(one),
    showTime(one.planned_at_ms),
    one.tx_hash ?? '-',
    one.trouble ?? '-',
  ])
  return table([...outflowHead, 'PLANNED', 'TRANSACTION', 'TROUBLE'], rows)
}

function describeOrder(order: Order, file: OrderFile, told: Told): string {
  const parts = [describeTerms(order), describeDeposits(order), ...describeFile(file)]
  return [...parts, ...describeTold(order, told)].join('\n\n')
}

function describeTerms({ terms, state, refundAddress, sequence, updatedAtMs }: Order): string {
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
    section(
      "At its address, not the order's",
      ['DEPOSIT', 'WHY', 'AMOUNT', 'STATE', 'SEEN', 'TRANSACTION'],
      file.at_address.map((one) => [
        one.deposit_key,
        one.kind,
        show(one.asset, one.units),
        one.state,
        showTime(one.seen_at_ms),
        one.tx_hash,
      ]),
    ),
    section(
      'Events',
      ['#', 'AT', 'FROM', 'TO', 'BECAUSE OF'],
      file.events.map((event) => [
        String(event.sequence),
        showTime(event.at_ms),
        event.previous_status ?? '-',
        event.status,
        event.fact_key,
      ]),
    ),
    section(
      'Facts',
      ['AT', 'FACT', 'OUTCOME', 'KEY'],
      file.facts.map((fact) => [showTime(fact.at_ms), fact.kind, fact.outcome, fact.fact_key]),
    ),
    section(
      'Postings',
      ['AT', 'DEBIT', 'CREDIT', 'AMOUNT', 'ENTRY'],
      file.postings.map((one) => [
        showTime(one.at_ms),
        one.debit,
        one.credit,
        show(one.asset, one.units),
        one.entry_key,
      ]),
    ),
    section(
      'Outflows',
      ['OUTFLOW', 'KIND', 'STATE', 'AMOUNT', 'TO', 'TAG', 'PLANNED', 'TROUBLE'],
      file.outflows.map((one) => [
        one.payout_id,
        one.kind,
        one.state,
        show(one.asset, one.units),
        one.address,
        one.tag ?? '-',
        showTime(one.planned_at_ms),
        one.trouble ?? '-',
      ]),
    ),
    section(
      'Attempts',
      ['OUTFLOW', '#', 'TRANSACTION', 'ANSWER', 'DRAFTED', 'SENT'],
      file.attempts.map((one) => [
        one.payout_id,
        String(one.attempt),
        one.tx_hash ?? '-',
        one.answer ?? '-',
        showTime(one.drafted_at_ms),
        showTime(one.broadcast_at_ms),
      ]),
    ),
  ]
}
