import { readFile } from 'node:fs/promises'
import type { Command } from 'commander'
import { findAccount } from '../accounts/accounts.ts'
import { verifyAudit } from '../accounts/verify_audit.ts'
import type { Clock } from '../clock.ts'
import { CommandRefused } from '../command_refused.ts'
import {
  type AuditHead,
  type AuditRow,
  appendAudit,
  findAuditHead,
  houseChain,
  readAuditBackwards,
  readAuditHeads,
} from '../db/audit_log.ts'
import type { Database } from '../db/database.ts'
import { closedNamesLike, isKnownName } from '../db/known_names.ts'
import { type DatabaseWorld, type Json, type ListingWorld, withDatabase } from './command_world.ts'
import { operatorHere } from './operator_here.ts'
import { printRows } from './page.ts'
import { readReason } from './read_reason.ts'
import { showTime, table, toJson } from './table.ts'

export type AuditCommandWorld = ListingWorld &
  DatabaseWorld<{
    readonly db: Database
    readonly clock: Pick<Clock, 'wallMs'>
  }>

const SHOWN_MAX = 100

/** Registers `verify`, `heads`, `show` and `note` below `audit`. */
export function registerAuditCommands(audit: Command, world: AuditCommandWorld): void {
  audit.description('the log of everything that matters to the safety of accounts')
  audit
    .command('verify')
    .option('--heads <file>', 'what `audit heads` printed earlier: these rows have to be there still')
    .option('--json', 'machine-readable output')
    .description('check that nothing was changed, deleted or inserted; exits with 1 and names the rows if so')
    .action((options: Json & { heads?: string }) => verify(world, options))
  audit
    .command('heads')
    .description('print where each chain ends, to be kept where the database cannot be reached from')
    .action(() => withDatabase(world, async (db) => world.print(toJson(await readAuditHeads(db)))))
  audit
    .command('show')
    .argument('<chain>', 'an account (acc_…), or house_0 to house_f for acts that belong to none')
    .option('--before <number>', 'the rows before this one instead of the newest')
    .option('--json', 'machine-readable output')
    .description(`print the newest ${SHOWN_MAX} rows of a chain`)
    .action((chain: string, options: Shown) => show(world, chain, options))
  audit
    .command('note')
    .argument(
      '<about>',
      'what was done by hand, such as "signer.signed_transactions", or the whole name of a deposit or payout',
    )
    .requiredOption('--because <why>', 'what was changed, and why')
    .description('write down what somebody did beside the commands, to the database itself, say')
    .action((about: string, options: { because: string }) => note(world, about, options.because))
}

async function verify(world: AuditCommandWorld, options: Json & { heads?: string }): Promise<void> {
  const noted = options.heads === undefined ? [] : await readHeads(options.heads)
  await withDatabase(world, async (db) => {
    const verdict = await verifyAudit(db, noted)
    const { chainCount, rowCount, problems } = verdict
    const found = problems.map(({ chain, sequence, message }) => [chain, String(sequence), message])
    world.print(
      options.json
        ? toJson(verdict)
        : problems.length === 0
          ? `No problems: ${count(rowCount, 'row')} in ${count(chainCount, 'chain')}.`
          : table(['CHAIN', 'ROW', 'PROBLEM'], found),
    )
    if (problems.length > 0) throw new CommandRefused('The audit log is not what was written.')
  })
}

function count(number: number, what: string): string {
  return `${number} ${what}${number === 1 ? '' : 's'}`
}

async function readHeads(path: string): Promise<readonly AuditHead[]> {
  const refusal = new CommandRefused(`${path} is not what \`cambist audit heads\` prints`)
  const text = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    throw new CommandRefused(`${path} cannot be read: ${error.code}`)
  })
  let heads: unknown
  try {
    heads = JSON.parse(text)
  } catch {
    throw refusal
  }
  if (!Array.isArray(heads) || !heads.every(isHead)) throw refusal
  return heads
}

function isHead(value: unknown): value is AuditHead {
  const { chain, sequence, hash } = (value ?? {}) as Record<string, unknown>
  return typeof chain === 'string' && Number.isSafeInteger(sequence) && typeof hash === 'string'
}

type Shown = Json & { readonly before?: string }

async function show(world: AuditCommandWorld, chain: string, { before, json }: Shown): Promise<void> {
  const sequence = before === undefined ? 2 ** 31 - 1 : readNumber(before)
  await withDatabase(world, async (db) => {
    const rows = await readAuditBackwards(db, chain, sequence, SHOWN_MAX)
    if (rows.length === 0) await refuseUnknownChain(db, chain)
    const oldest = rows.length === SHOWN_MAX ? (rows.at(-1)?.sequence ?? '1') : '1'
    const more = oldest === '1' ? null : `There are earlier ones: --before ${oldest} shows them.`
    printRows(world, json ? toJson(rows) : describe(rows), { json: json === true, more })
  })
}

/** One whose rows were deleted has a head still, and is none that never was: `audit verify` says what is wrong with it. */
async function refuseUnknownChain(db: Database, chain: string): Promise<void> {
  if (HOUSE_CHAIN.test(chain)) return
  if ((await findAccount({ db }, chain)) !== null || (await findAuditHead(db, chain)) !== null) return
  throw new CommandRefused(
    `There is no chain ${chain}: name an account (\`cambist keys accounts\` has them), or one of house_0 to house_f, as whatever booked or noted something has printed it.`,
  )
}

const HOUSE_CHAIN = /^house_[0-9a-f]$/

/** The number of a row, as the table of them has it. */
function readNumber(text: string): number {
  const number = /^\d{1,9}$/.test(text) ? Number.parseInt(text, 10) : 0
  if (number === 0) throw new CommandRefused(`--before: ${text} is not the number of a row`)
  return number
}

function describe(rows: readonly AuditRow[]): string {
  if (rows.length === 0) return 'There are no rows.'
  return table(
    ['ROW', 'AT', 'ACT', 'BY', 'TO', 'FROM', 'DETAIL'],
    rows.map(({ sequence, at_ms, act, actor, subject, address, detail }) => [
      sequence,
      showTime(Number(at_ms)),
      act,
      actor,
      subject ?? '-',
      address ?? '-',
      detail,
    ]),
  )
}

async function note(world: AuditCommandWorld, typed: string, because: string): Promise<void> {
  const about = typed.trim()
  if (about === '' || about.length > ABOUT_MAX) {
    throw new CommandRefused(`what it is about has 1 to ${ABOUT_MAX} characters`)
  }
  const chain = houseChain(about)
  const detail = { because: readReason(because) }
  await withDatabase(world, async (db, { clock }) => {
    await refuseMistyped(db, about)
    const entry = { chain, atMs: clock.wallMs(), act: 'noted', by: operatorHere(), subject: about } as const
    await db.transaction((tx) => appendAudit(tx, { ...entry, detail }))
    world.print(`It is in the audit log: cambist audit show ${chain}`)
  })
}

const ABOUT_MAX = 200

/** The lists that have notes look for the whole name: what stands there without a note was not sent, and is sent by whoever goes on. */
async function refuseMistyped(db: Database, about: string): Promise<void> {
  if (await isKnownName(db, about)) return
  const alike = about.length < TELLING_LENGTH ? [] : await closedNamesLike(db, about)
  if (!about.includes(':') && alike.length === 0) return
  const meant = alike.length === 0 ? '' : ` Is it ${alike.join(' or ')}?`
  throw new CommandRefused(
    `No deposit, payout or refund has the name ${about}, to the last letter.${meant} \`cambist order unclaimed\` and \`cambist order unclaimed --closed\` have names under DEPOSIT, \`cambist order show\` under DEPOSIT and OUTFLOW. For what the database does not know take a word without a colon, and name it in --because.`,
  )
}

/** Less of a name may be a word of its own. */
const TELLING_LENGTH = 16
