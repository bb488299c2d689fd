import type { Command } from 'commander'
import { CommandRefused } from '../command_refused.ts'
import {
  type ListedOrder,
  listOrders,
  listTroubled,
  listUnended,
  type Troubled,
  type UnendedOutflow,
} from '../db/order_file.ts'
import { isOrderId } from '../domain/orders/identifiers.ts'
import { type OrderStatus, orderStatuses } from '../domain/orders/order.ts'
import { show } from '../engine/books/audit_order.ts'
import { type OrderCommandWorld, withDatabase } from './command_world.ts'
import { refuseUnknownAccount } from './known_account.ts'
import { limitOption, type Paged, readPage } from './page.ts'
import { showTime, table } from './table.ts'

export function registerList(order: Command, world: OrderCommandWorld): void {
  type Options = Paged & Listed
  order
    .command('list')
    .option('--status <list>', `comma-separated, of ${orderStatuses.join(', ')}`)
    .option('--account <id>', 'those of one account')
    .option(
      '--trouble',
      'payouts, refunds, sweeps and exchanges that something is in the way of, the longest first',
    )
    .option('--outflows', 'all payouts, refunds and sweeps that have not ended, the oldest first')
    .option(...limitOption)
    .option('--json', 'machine-readable output')
    .description('orders, the newest first')
    .action((options: Options) =>
      withDatabase(world, async (db) => {
        refuseMixture(options)
        const page = readPage(world, options)
        if (options.trouble) page.print(await listTroubled(db, page.ask), describeTroubled)
        else if (options.outflows) page.print(await listUnended(db, page.ask), describeUnended)
        else {
          const { account } = options
          const found = await listOrders(db, parseStatuses(options.status), account ?? null, page.ask)
          if (found.length === 0 && account !== undefined) await refuseUnknownAccount(db, account)
          page.print(found, describeList)
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
    throw new CommandRefused('--trouble lists what waits, of all orders; leave out --status and --account')
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

function whichOutflow(one: Troubled | UnendedOutflow): string[] {
  const orderId = isOrderId(one.order_id) ? one.order_id : '-'
  return [orderId, one.payout_id ?? '-', one.chain, one.kind, one.state, show(one.asset, one.units)]
}

function describeTroubled(found: readonly Troubled[]): string {
  if (found.length === 0) return 'Nothing is in the way of any outflow or exchange.'
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
