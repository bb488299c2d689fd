import type { Command } from 'commander'
import { createAccount, listAccounts } from '../accounts/accounts.ts'
import { scopes } from '../accounts/api_key.ts'
import { type EmailPlace, setEmail } from '../accounts/email.ts'
import {
  createKey,
  type KeySummary,
  type KeysPlace,
  listKeys,
  OVERLAP_MS_DEFAULT,
  revokeKey,
  rotateKey,
  type ToldSecret,
} from '../accounts/keys.ts'
import { rotateWebhookSecret } from '../accounts/webhook_secrets.ts'
import { CommandRefused } from '../command_refused.ts'
import { within } from '../db/within.ts'
import type { Outcome } from '../domain/outcome.ts'
import { DAY_MS, HOUR_MS, type InstantMs, MINUTE_MS } from '../domain/time.ts'
import { refuseUnknownAccount } from './known_account.ts'
import { operatorHere } from './operator_here.ts'
import { table, toJson } from './table.ts'

type CommandPlace = KeysPlace & EmailPlace

/** What the commands need of the world; `open` connects, and `close` is called however the command ends. */
export type KeysCommandWorld = {
  open(): Promise<{ readonly place: CommandPlace; close(): Promise<void> }>
  print(text: string): void
}

type Json = { readonly json?: boolean }

/** Registers `create`, `list`, `rotate`, `revoke`, `accounts`, `email` and `webhook-secret` below `keys`. */
export function registerKeysCommands(keys: Command, world: KeysCommandWorld): void {
  keys.description('API keys and webhook secrets of the accounts')
  registerCreate(keys, world)
  registerList(keys, world)
  registerRotate(keys, world)
  registerRevoke(keys, world)
  registerAccounts(keys, world)
  registerEmail(keys, world)
  registerWebhookSecret(keys, world)
}

function registerCreate(keys: Command, world: KeysCommandWorld): void {
  type Options = Json & { account?: string; email?: string; label: string; scopes: string; ip: string[] }
  keys
    .command('create')
    .argument('[name]', 'name of a new account; or give --account')
    .option('--account <id>', 'an account that exists already')
    .option('--email <address>', 'of a new account: where its mails go, and with what its owner signs in')
    .option('--label <text>', 'what the key is for', '')
    .option(
      '--scopes <list>',
      'comma-separated: read (look at orders), trade (create, act)',
      scopes.join(','),
    )
    .option('--ip <address-or-range>', 'only from here, such as 203.0.113.0/24; repeatable', collect, [])
    .option('--json', 'machine-readable output')
    .description('make an account and a key for it; shows the secret once')
    .action((name: string | undefined, options: Options) =>
      withPlace(world, async (place) => {
        // A refusal of the key undoes the account: who corrects the command and gives it again would find its address taken.
        const { accountId, told } = await place.db.transaction(async (tx) => {
          const inside = { ...place, db: within(tx) }
          const accountId = await chooseAccount(inside, name, options.account, options.email)
          const wanted = {
            label: options.label,
            scopes: split(options.scopes),
            ipAllow: options.ip.flatMap(splitAddresses),
          }
          return {
            accountId,
            told: orRefuse(await createKey(inside, operatorHere(), { accountId, ...wanted })),
          }
        })
        world.print(
          options.json ? toJson({ accountId, ...told }) : describeSecret(told, [['Account', accountId]]),
        )
      }),
    )
}

function registerList(keys: Command, world: KeysCommandWorld): void {
  keys
    .command('list')
    .option('--account <id>', 'of one account')
    .option('--json', 'machine-readable output')
    .description('show keys, never secrets')
    .action((options: Json & { account?: string }) =>
      withPlace(world, async (place) => {
        const { account } = options
        // An empty list proves that somebody's keys are gone, and one of a mistyped account is as empty.
        if (account !== undefined) await refuseUnknownAccount(place.db, account)
        const found = await listKeys(place, account ?? null)
        world.print(options.json ? toJson(found) : describeKeys(found))
      }),
    )
}

function registerRotate(keys: Command, world: KeysCommandWorld): void {
  keys
    .command('rotate')
    .argument('<key-id>')
    .option('--overlap <duration>', 'how long the old secret lives on: 0, 30m, 24h, 7d (default 24h)')
    .option('--replace-newest', 'while two secrets live: the newest was lost, replace it')
    .option('--json', 'machine-readable output')
    .description('make a new secret; the old one lives on for a while')
    .action((keyId: string, options: Json & Rotation) =>
      withPlace(world, async (place) => {
        const named = { keyId, accountId: null }
        const rotated = orRefuse(await rotateKey(place, operatorHere(), named, readRotation(options)))
        const until = showMinute(rotated.oldSecretUntilMs)
        world.print(options.json ? toJson(rotated) : describeSecret(rotated, [['Old secret until', until]]))
      }),
    )
}

function registerRevoke(keys: Command, world: KeysCommandWorld): void {
  keys
    .command('revoke')
    .argument('<key-id>')
    .option('--json', 'machine-readable output')
    .description('end a key for good, within two seconds everywhere')
    .action((keyId: string, options: Json) =>
      withPlace(world, async (place) => {
        orRefuse(await revokeKey(place, operatorHere(), { keyId, accountId: null }))
        world.print(options.json ? toJson({ keyId, revoked: true }) : `${keyId} is revoked.`)
      }),
    )
}

function registerAccounts(keys: Command, world: KeysCommandWorld): void {
  keys
    .command('accounts')
    .option('--json', 'machine-readable output')
    .description('show accounts and their email addresses')
    .action((options: Json) =>
      withPlace(world, async (place) => {
        const found = await listAccounts(place)
        const rows = found.map(({ accountId, name, email, createdAtMs }) => [
          accountId,
          name,
          email ?? '-',
          showMinute(createdAtMs),
        ])
        world.print(options.json ? toJson(found) : table(['ACCOUNT', 'NAME', 'EMAIL', 'CREATED'], rows))
      }),
    )
}

function registerEmail(keys: Command, world: KeysCommandWorld): void {
  keys
    .command('email')
    .argument('<account-id>')
    .argument('[address]', 'the new address; or give --none')
    .option('--none', 'take the address away: nobody can sign in any more')
    .option('--json', 'machine-readable output')
    .description('say where the mails of an account go, and with what its owner signs in; ends its sessions')
    .action((accountId: string, address: string | undefined, options: Json & { none?: boolean }) =>
      withPlace(world, async (place) => {
        if ((address === undefined) !== (options.none === true)) {
          throw new CommandRefused('give either an address or --none')
        }
        const email = orRefuse(await setEmail(place, operatorHere(), accountId, address ?? null))
        const told = email === null ? `${accountId} has no email.` : `${accountId} has the email ${email}.`
        world.print(options.json ? toJson({ accountId, email }) : told)
      }),
    )
}

function registerWebhookSecret(keys: Command, world: KeysCommandWorld): void {
  keys
    .command('webhook-secret')
    .argument('<account-id>')
    .option('--overlap <duration>', 'how long the old secret signs as well: 0, 30m, 24h, 7d (default 24h)')
    .option('--replace-newest', 'while two secrets live: the newest was lost, replace it')
    .option('--json', 'machine-readable output')
    .description('make a new secret that webhooks of the account are signed with; shows it once')
    .action((accountId: string, options: Json & Rotation) =>
      withPlace(world, async (place) => {
        const rotation = readRotation(options)
        const told = orRefuse(await rotateWebhookSecret(place, operatorHere(), accountId, rotation))
        const until = told.oldSecretUntilMs === null ? 'none' : showMinute(told.oldSecretUntilMs)
        const lines = [`  Webhook secret   ${told.secret}`, `  Old secret until ${until}`]
        const note = '  The secret is shown this once and cannot be read again.'
        world.print(options.json ? toJson(told) : [...lines, '', note].join('\n'))
      }),
    )
}

async function withPlace(
  world: KeysCommandWorld,
  work: (place: CommandPlace) => Promise<void>,
): Promise<void> {
  const { place, close } = await world.open()
  try {
    await work(place)
  } finally {
    await close()
  }
}

async function chooseAccount(
  place: KeysPlace,
  name: string | undefined,
  accountId: string | undefined,
  email: string | undefined,
): Promise<string> {
  if ((name === undefined) === (accountId === undefined)) {
    throw new CommandRefused('give either the name of a new account or --account with an existing one')
  }
  if (accountId !== undefined && email !== undefined) {
    throw new CommandRefused('--email is for a new account; to give one to an existing account: keys email')
  }
  if (accountId !== undefined) return accountId
  return orRefuse(await createAccount(place, operatorHere(), { name: name ?? '', email: email ?? null }))
    .accountId
}

function orRefuse<Value>(outcome: Outcome<Value>): Value {
  if (outcome.ok) return outcome.value
  throw new CommandRefused(outcome.rejection.message)
}

function collect(value: string, earlier: readonly string[]): readonly string[] {
  return [...earlier, value]
}

function split(text: string): readonly string[] {
  return text
    .split(',')
    .map((part) => part.trim())
    .filter((part) => part !== '')
}

/** Without one it is more often a variable that was not set than a key that may be used from anywhere. */
function splitAddresses(text: string): readonly string[] {
  const addresses = split(text)
  if (addresses.length > 0) return addresses
  throw new CommandRefused('--ip names no address; leave it out for a key that may be used from anywhere')
}

type Rotation = { readonly overlap?: string; readonly replaceNewest?: boolean }

/** Beside an older secret that lives there is nothing to say of its time, and who says 0 wants it ended. */
function readRotation({ overlap, replaceNewest = false }: Rotation) {
  if (replaceNewest && overlap !== undefined) {
    throw new CommandRefused(
      'Either --overlap or --replace-newest: while two secrets live the older one keeps the time that it has.',
    )
  }
  const overlapMs = overlap === undefined ? OVERLAP_MS_DEFAULT : parseDuration(overlap)
  return { overlapMs, replacesNewest: replaceNewest }
}

const unitsMs = { m: MINUTE_MS, h: HOUR_MS, d: DAY_MS } as const

function parseDuration(text: string): number {
  if (text === '0') return 0
  const [, count, unit] = /^(\d{1,5})([mhd])$/.exec(text) ?? []
  if (count === undefined || unit === undefined) {
    throw new CommandRefused(`${text} is not a duration such as 0, 30m, 24h or 7d`)
  }
  return Number(count) * unitsMs[unit as keyof typeof unitsMs]
}

function describeSecret(told: ToldSecret, more: readonly (readonly [string, string])[]): string {
  const rows = [...more, ['API key', told.keyId], ['API secret', told.secret]] as const
  const lines = rows.map(([name, value]) => `  ${name.padEnd(17)}${value}`)
  return [...lines, '', '  The secret is shown this once and cannot be read again.'].join('\n')
}

function describeKeys(found: readonly KeySummary[]): string {
  if (found.length === 0) return 'There are no keys. Make one with: cambist keys create "My shop"'
  const rows = found.map((key) => [
    key.keyId,
    `${key.accountName} (${key.accountId})`,
    key.label === '' ? '-' : key.label,
    key.scopes.join('+'),
    key.ipAllow.length === 0 ? 'anywhere' : key.ipAllow.join(' '),
    key.lastUsedAtMs === null ? 'never' : showMinute(key.lastUsedAtMs),
    describeState(key),
  ])
  return table(['KEY', 'ACCOUNT', 'LABEL', 'SCOPES', 'FROM', 'LAST USED', 'STATE'], rows)
}

function describeState(key: KeySummary): string {
  if (key.revokedAtMs !== null) return `revoked ${showMinute(key.revokedAtMs)}`
  if (key.oldSecretUntilMs !== null) return `rotating until ${showMinute(key.oldSecretUntilMs)}`
  return 'live'
}

/** To the minute, UTC: `2026-01-31 12:00 UTC`. */
function showMinute(atMs: InstantMs): string {
  return `${new Date(atMs).toISOString().slice(0, 16).replace('T', ' ')} UTC`
}
