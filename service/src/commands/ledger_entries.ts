import type { Command } from 'commander'
import { type JournalLine, tellJournalLines } from '../db/journal_lines.ts'
import { isAssetId } from '../domain/catalog/assets.ts'
import { amountOf, exactAmount } from '../domain/money/amount.ts'
import { show } from '../engine/books/audit_order.ts'
import { type DatabaseWorld, withDatabase } from './command_world.ts'
import { csvLine } from './csv.ts'
import { readTime, TIME_FORM } from './read_time.ts'
import { showTime, table } from './table.ts'

/** `write` puts text out as it is, adds nothing, and answers when it is taken: whether there is still somebody who takes more. */
export type EntriesWorld = DatabaseWorld & { write(text: string): Promise<boolean> }

type Options = { readonly from?: string; readonly to?: string; readonly csv?: boolean }

/** Registers `entries` below `ledger`: the lines of the journal, for whoever adds them up himself. */
export function registerLedgerEntries(ledger: Command, world: EntriesWorld): void {
  ledger
    .command('entries')
    .option('--from <time>', `booked at this time or later, such as ${TIME_FORM}`)
    .option('--to <time>', 'booked before this time')
    .option('--csv', 'as CSV (RFC 4180), with times to the millisecond')
    .description(
      'what was booked, the oldest first; times are those of the clocks of the machines that wrote it',
    )
    .action((options: Options) => tellEntries(world, options))
}

async function tellEntries(world: EntriesWorld, { from, to, csv }: Options): Promise<void> {
  const period = {
    fromMs: from === undefined ? 0 : readTime('--from', from),
    beforeMs: to === undefined ? Number.MAX_SAFE_INTEGER : readTime('--to', to),
  }
  await withDatabase(world, async (db) => {
    if (csv) {
      await world.write(csvLine(['time', 'owner', 'entry', 'line', 'asset', 'debit', 'credit', 'amount']))
      await tellJournalLines(db, period, (page) => world.write(page.map(toCsv).join('')))
      return
    }
    const count = await tellJournalLines(db, period, (page) => world.write(`${describe(page)}\n\n`))
    world.print(
      `${count} line${count === 1 ? '' : 's'}, in UTC, by the clocks of the machines that wrote them.`,
    )
  })
}

function toCsv({ at_ms, owner, entry_key, line, asset, debit, credit, units }: JournalLine): string {
  // Of an asset that this release does not know nobody here can say how many decimals it has.
  const amount = isAssetId(asset) ? exactAmount(amountOf(asset, units)) : `${units} units`
  const time = new Date(at_ms).toISOString()
  return csvLine([time, owner, entry_key, String(line), asset, debit, credit, amount])
}

function describe(page: readonly JournalLine[]): string {
  return table(
    ['BOOKED', 'OWNER', 'ENTRY', 'LINE', 'DEBIT', 'CREDIT', 'AMOUNT'],
    page.map(({ at_ms, owner, entry_key, line, asset, debit, credit, units }) => [
      showTime(at_ms),
      owner,
      entry_key,
      String(line),
      debit,
      credit,
      show(asset, units),
    ]),
  )
}
