import type { Command } from 'commander'
import { readBalances } from '../db/books.ts'
import { isAssetId } from '../domain/catalog/assets.ts'
import { amountOf, exactAmount } from '../domain/money/amount.ts'
import type { Balance } from '../engine/books/audit_books.ts'
import { show } from '../engine/books/audit_order.ts'
import { type DatabaseWorld, type Json, withDatabase } from './command_world.ts'
import { readTime, TIME_FORM } from './read_time.ts'
import { table, toJson } from './table.ts'

type Options = Json & { readonly at?: string }

/** Registers `balances` below `ledger`: what every account comes to, now or at a time past. */
export function registerLedgerBalances(ledger: Command, world: DatabaseWorld): void {
  ledger
    .command('balances')
    .option('--at <time>', `of all that was booked before this time, such as ${TIME_FORM}`)
    .option('--json', 'machine-readable output')
    .description('what every account comes to in every asset')
    .action((options: Options) => tellBalances(world, options))
}

async function tellBalances(world: DatabaseWorld, { at, json }: Options): Promise<void> {
  const beforeMs = at === undefined ? null : readTime('--at', at)
  await withDatabase(world, async (db) => {
    const balances = await readBalances(db, beforeMs ?? undefined)
    const before = beforeMs === null ? null : new Date(beforeMs).toISOString()
    world.print(
      json
        ? toJson({ before, times: TIMES, balances: balances.map(withAmount) })
        : describe(balances, before),
    )
  })
}

const TIMES = 'by the clocks of the machines that wrote the entries'

function withAmount(balance: Balance) {
  const { asset, units } = balance
  return { ...balance, amount: isAssetId(asset) ? exactAmount(amountOf(asset, units)) : null }
}

function describe(balances: readonly Balance[], before: string | null): string {
  const rows = balances.map(({ asset, account, units }) => [
    asset,
    account,
    units >= 0n ? show(asset, units) : '',
    units < 0n ? show(asset, -units) : '',
  ])
  const when =
    before === null ? 'Of all that is booked.' : `Of all that was booked before ${before}, ${TIMES}.`
  return `${table(['ASSET', 'ACCOUNT', 'DEBIT', 'CREDIT'], rows)}\n\n${when}`
}
