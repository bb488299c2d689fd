import { createSecretKey, type KeyObject } from 'node:crypto'
import { accessSync, constants, existsSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { type Asset, type AssetId, assets } from '../domain/catalog/assets.ts'
import type { ChainId } from '../domain/catalog/networks.ts'
import { parseAmount } from '../domain/money/amount.ts'
import { activeChains, type ChainSettings } from './chain_settings.ts'
import { codeOf, type Environment, readDatabaseUrl, readFirstLine } from './environment.ts'
import { limitVariable } from './variables.ts'

/** The most that may leave, in ledger units. */
export type AssetLimits = {
  readonly asset: AssetId
  readonly perPayoutUnits: bigint
  readonly perHourUnits: bigint
  readonly perDayUnits: bigint
}

export type KeystoreSettings = {
  readonly keystoreFile: string
  /** A KeyObject, so that printing the configuration cannot show it; `export()` gives the UTF-8 bytes. */
  readonly passphrase: KeyObject
}

export type SignerSettings = KeystoreSettings & {
  readonly databaseUrl: string
  /** The chains to sign for. */
  readonly chains: readonly ChainId[]
  /** On mainnet every asset of those chains is here. */
  readonly spendLimits: readonly AssetLimits[]
}

export function readSigner(from: Environment, chains: ChainSettings, isMainnet: boolean): SignerSettings {
  const spendLimits = readSpendLimits(from)
  if (isMainnet) requireLimits(from, chains, spendLimits)
  return {
    databaseUrl: readDatabaseUrl(from, 'SIGNER_DATABASE_URL') ?? from.text('DATABASE_URL') ?? '',
    ...readKeystore(from, isMainnet, 'the role signer'),
    chains: activeChains(chains),
    spendLimits,
  }
}

/** `user`: who needs it, as its problems are told. */
export function readKeystore(from: Environment, isMainnet: boolean, user: string): KeystoreSettings {
  return { keystoreFile: readKeystoreFile(from, isMainnet, user), passphrase: readPassphrase(from, user) }
}

function readKeystoreFile(from: Environment, isMainnet: boolean, user: string): string {
  const path = from.required('CAMBIST_KEYSTORE_FILE', `by ${user}`)
  if (path === '') return path
  try {
    accessSync(path, constants.R_OK)
  } catch (error) {
    from.report(
      'CAMBIST_KEYSTORE_FILE',
      `cannot read ${path} (${codeOf(error)}); it must name a readable file`,
    )
  }
  if (isMainnet && existsSync(join(dirname(path), 'sandbox.json'))) {
    from.report(
      'CAMBIST_KEYSTORE_FILE',
      `${path} belongs to a sandbox, whose keys are no secret; make a new one`,
    )
  }
  return path
}

function readPassphrase(from: Environment, user: string): KeyObject {
  const file = 'CAMBIST_KEYSTORE_PASSPHRASE_FILE'
  const descriptor = 'CAMBIST_KEYSTORE_PASSPHRASE_FD'
  const nothing = createSecretKey(Buffer.from('-'))
  if (from.isSet(file) === from.isSet(descriptor)) {
    from.report(file, `${user} needs the passphrase: set either this or ${descriptor}, and not both`)
    return nothing
  }
  const name = from.isSet(file) ? file : descriptor
  const named = from.text(name) ?? ''
  if (name === descriptor && !/^\d{1,4}$/.test(named)) {
    from.report(name, 'must be the number of an open descriptor')
    return nothing
  }
  const source = name === descriptor || isLikeAPath(named) ? named : 'the file that it names'
  try {
    const passphrase = readFirstLine(name === file ? named : Number.parseInt(named, 10))
    if (passphrase === '')
      from.report(name, `the first line of ${source} is empty; write the passphrase there`)
    return passphrase === '' ? nothing : createSecretKey(Buffer.from(passphrase))
  } catch (error) {
    from.report(name, `cannot read ${source} (${codeOf(error)}); it names a file or descriptor`)
    return nothing
  }
}

/** Who mistakes it for the passphrase itself must not find that in a log; every other one in base64 has a slash. */
function isLikeAPath(named: string): boolean {
  const folder = dirname(named)
  return named.includes('/') && !/^\/+$/.test(folder) && existsSync(folder)
}

function readSpendLimits(from: Environment): readonly AssetLimits[] {
  return assets.flatMap((asset) => {
    const text = from.text(limitVariable(asset.id))
    if (text === null) return []
    const limits = parseLimits(asset, text)
    if (typeof limits !== 'string') return [limits]
    from.report(limitVariable(asset.id), limits)
    return []
  })
}

/** The limits, or what is wrong with the text. */
function parseLimits(asset: Asset, text: string): AssetLimits | string {
  const parts = text.split('/').map((part) => parseAmount(asset, part.trim()))
  const wrong = parts.find((part) => !part.ok)
  if (wrong !== undefined && !wrong.ok) return `each amount ${wrong.rejection.message}`
  const [payout, hour, day] = parts.map((part) => (part.ok ? part.value.units : 0n))
  if (payout === undefined || hour === undefined || day === undefined || parts.length > 3) {
    return "must be three amounts, one payout / an hour / a day, for example '2.5 / 10 / 40'"
  }
  if (payout === 0n || payout > hour || hour > day) return 'must grow: 0 < one payout ≤ an hour ≤ a day'
  return { asset: asset.id, perPayoutUnits: payout, perHourUnits: hour, perDayUnits: day }
}

function requireLimits(from: Environment, chains: ChainSettings, limits: readonly AssetLimits[]): void {
  const active = activeChains(chains)
  for (const asset of assets.filter(({ chain }) => active.includes(chain))) {
    // A limit that was given and is wrong has its own message.
    if (limits.some((limit) => limit.asset === asset.id) || from.isSet(limitVariable(asset.id))) continue
    from.report(
      limitVariable(asset.id),
      "a signer on mainnet needs a limit for every asset; set it to one payout / an hour / a day, for example '2.5 / 10 / 40'",
    )
  }
}
