import type { Command } from 'commander'
import type { Chain } from '../chains/chain.ts'
import type { Clock } from '../clock.ts'
import { CommandRefused } from '../command_refused.ts'
import type { Database } from '../db/database.ts'
import { type AssetId, assetOf, isAssetId } from '../domain/catalog/assets.ts'
import { type ChainId, isChainId } from '../domain/catalog/networks.ts'
import { auditBooks, type BooksAudit } from '../engine/books/audit_books.ts'
import { auditChain, type ChainAudit } from '../engine/books/audit_chain.ts'
import { type Problem, show } from '../engine/books/audit_order.ts'
import { type BookOptions, book } from './book.ts'
import { table, toJson } from './table.ts'

/** `open` connects, and `close` is called however the command ends. */
export type LedgerCommandWorld = {
  open(): Promise<{
    readonly db: Database
    readonly chains: ReadonlyMap<ChainId, Chain>
    readonly clock: Clock
    close(): Promise<void>
  }>
  print(text: string): void
}

type Options = { readonly json?: boolean; readonly chain?: string; readonly chains?: boolean }

/** Registers `audit` and `book` below `ledger`. */
export function registerLedgerCommands(ledger: Command, world: LedgerCommandWorld): void {
  ledger.description('the books')
  ledger
    .command('audit')
    .option('--json', 'machine-readable output')
    .option('--chain <name>', 'compare with this chain only')
    .option('--no-chains', 'compare the books only with themselves')
    .description(
      'check every order and every account, and compare with the chains; exits with 1 on any problem',
    )
    .action((options: Options) => audit(world, options))
  ledger
    .command('book')
    .argument('<asset>', 'as `ledger audit` names it, such as USDT:ERC20')
    .argument('<amount>', 'chain less books, such as -1.5; the whole difference and nothing else')
    .requiredOption(
      '--because <why>',
      'goes into the audit log, such as "taken out to the cold wallet, tx 0x…"',
    )
    .option('--json', 'machine-readable output')
    .description(
      'book against capital what left or came without the books being told, so that outflows go on',
    )
    .action((asset: string, amount: string, options: BookOptions) => book(world, asset, amount, options))
}

async function audit(world: LedgerCommandWorld, options: Options): Promise<void> {
  const { db, chains, clock, close } = await world.open()
  try {
    // A name that is none is told at once: all books take their time.
    const asked = chosen(chains, options)
    const books = await auditBooks(db)
    const compared: ChainAudit[] = []
    for (const chain of asked) compared.push(await auditChain(db, chain, clock))
    const problems = [
      ...books.problems,
      ...compared.flatMap((one) => one.problems),
      ...findUnasked(books, chains, options),
    ]
    world.print(
      options.json ? toJson({ ...books, chains: compared, problems }) : describe(books, compared, problems),
    )
    if (problems.length > 0) throw new CommandRefused(`The audit found ${count(problems.length, 'problem')}.`)
  } finally {
    await close()
  }
}

function chosen(chains: ReadonlyMap<ChainId, Chain>, options: Options): readonly Chain[] {
  if (options.chains === false) return []
  if (options.chain === undefined) return [...chains.values()]
  const chain = isChainId(options.chain) ? chains.get(options.chain) : undefined
  if (chain === undefined) {
    throw new CommandRefused(`${options.chain} is not one of ${[...chains.keys()].join(', ')}`)
  }
  return [chain]
}

/** What the books hold where nobody was asked, because this command was given no node of the chain. */
function findUnasked(
  { balances }: BooksAudit,
  chains: ReadonlyMap<ChainId, Chain>,
  options: Options,
): readonly Problem[] {
  if (options.chains === false || options.chain !== undefined) return []
  const isAsked = (asset: AssetId) => chains.get(assetOf(asset).chain)?.assets.includes(asset) === true
  return balances.flatMap(({ asset, account, units }) =>
    account !== 'wallet' || units === 0n || !isAssetId(asset) || isAsked(asset)
      ? []
      : [
          {
            subject: asset,
            check: 'chain' as const,
            message: `was not compared: ${NO_NODE} (${show(asset, units)})`,
          },
        ],
  )
}

const NO_NODE = 'the books hold it, and no node that tells of it is configured here'

function describe(books: BooksAudit, compared: readonly ChainAudit[], problems: readonly Problem[]): string {
  const open = books.balances.filter(({ units }) => units !== 0n)
  const balances = open.map(({ asset, account, units }) => [
    asset,
    account,
    units > 0n ? show(asset, units) : '',
    units < 0n ? show(asset, -units) : '',
  ])
  const rows = compared.flatMap(({ comparisons }) =>
    comparisons.map(({ asset, height, ledgerUnits, inFlight, chainUnits, difference }) => [
      asset,
      String(height),
      show(asset, ledgerUnits),
      show(asset, inFlight),
      show(asset, chainUnits),
      difference === 0n ? 'none' : show(asset, difference),
    ]),
  )
  const found = problems.map(({ subject, check, message }) => [subject, check, message])
  return [
    table(['ASSET', 'ACCOUNT', 'DEBIT', 'CREDIT'], balances),
    ...(compared.length === 0
      ? []
      : [table(['ASSET', 'BLOCK', 'LEDGER', 'OF IT IN FLIGHT', 'CHAIN', 'DIFFERENCE'], rows)]),
    problems.length === 0
      ? `No problems: ${count(books.orderCount, 'order')}, ${count(compared.length, 'chain')}.`
      : table(['SUBJECT', 'CHECK', 'PROBLEM'], found),
  ].join('\n\n')
}

function count(number: number, what: string): string {
  return `${number} ${what}${number === 1 ? '' : 's'}`
}
