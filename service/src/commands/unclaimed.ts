import type { Command } from 'commander'
import { CommandRefused } from '../command_refused.ts'
import type { Database } from '../db/database.ts'
import {
  listReserveArrivals,
  listUnclaimed,
  type ReserveArrival,
  type Unclaimed,
} from '../db/house_deposits.ts'
import { type Note, readNotesAbout } from '../db/operator_acts.ts'
import { listClosed, type OperatorWord } from '../db/operator_words.ts'
import { assets } from '../domain/catalog/assets.ts'
import { show } from '../engine/books/audit_order.ts'
import { whyInDoubt, whyNotYet } from '../engine/books/close_unclaimed.ts'
import { type OrderCommandWorld, withDatabase } from './command_world.ts'
import { limitOption, type Paged, readPage } from './page.ts'
import { showTime, table } from './table.ts'

export function registerUnclaimed(order: Command, world: OrderCommandWorld): void {
  order
    .command('unclaimed')
    .option('--reserve', 'what came to a reserve instead: top-ups, and money that was sent back')
    .option('--closed', 'what was closed instead, with when and why')
    .option(...limitOption)
    .option('--json', 'machine-readable output')
    .description('money that reached us and that no order could use, the newest first')
    .action((options: Paged & { reserve?: boolean; closed?: boolean }) =>
      withDatabase(world, async (db) => {
        const page = readPage(world, options)
        if (options.closed && options.reserve) throw new CommandRefused('Either --closed or --reserve.')
        if (options.closed) return page.print(await readClosed(db, page.ask), describeClosed)
        if (!options.reserve) return page.print(await listUnclaimed(db, page.ask), describeUnclaimed)
        const leasts = assets.map(({ id, minCredit }) => ({ asset: id, units: minCredit }))
        page.print(await listReserveArrivals(db, leasts, page.ask), describeReserve)
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

type Closed = OperatorWord & { readonly notes: readonly Note[] }

/** With what was noted since: by which transaction it went back, say. */
async function readClosed(db: Database, limit: number): Promise<Closed[]> {
  const words = await listClosed(db, limit)
  const notes = await readNotesAbout(
    db,
    words.map(({ about }) => about),
  )
  return words.map((word) => ({ ...word, notes: notes.filter(({ subject }) => subject === word.about) }))
}

function describeClosed(found: readonly Closed[]): string {
  if (found.length === 0) return 'Nothing was closed.'
  const rows = found.map(({ about, asset, units, at_ms, because, notes }) => [
    about,
    show(asset, units),
    showTime(at_ms),
    because,
    notes.map((note) => `${showTime(note.at_ms)} ${note.because}`).join('; ') || '-',
  ])
  return table(['DEPOSIT', 'AMOUNT', 'AT', 'BECAUSE', 'NOTED'], rows)
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

function mayBeGivenBack(one: Unclaimed): string {
  const reasons = whyNotYet(one)
  if (reasons.length > 0) return `not yet: ${reasons.join(', and ')}`
  const doubt = whyInDoubt(one)
  return doubt === null ? 'yes' : `no: ${doubt}`
}
