import type { KeyObject } from 'node:crypto'
import type { Logger } from 'pino'
import { systemClock } from './clock.ts'
import { CommandRefused } from './command_refused.ts'
import type { Role, ServeConfig } from './config/serve_config.ts'
import type { AssetLimits, KeystoreSettings } from './config/signer_settings.ts'
import { readMarker } from './db/database_use.ts'
import { onSignerDatabase } from './db/signer_database.ts'
import { assert } from './domain/assert.ts'
import { assets } from './domain/catalog/assets.ts'
import { currencyCodes } from './domain/catalog/currencies.ts'
import { DAY_MS, HOUR_MS } from './domain/time.ts'
import { defaultPolicy } from './engine/default_policy.ts'
import { defaultLimits } from './http/parts.ts'
import { startService } from './main.ts'
import { defaultPriceRules, isVenueId, priceBook, priceSources, venueIds } from './prices/index.ts'
import type { PriceSource } from './prices/price_source.ts'
import type { SignerSettings } from './signer/settings.ts'
import type { ApiRole, EngineRole, NotifierRole, RunningPrices, Service, SignerRole } from './wiring/roles.ts'
import { signerCaps } from './wiring/signer_caps.ts'
import { toldCurrencies } from './wiring/told_currencies.ts'

/** A process of the real service, as its configuration says. `sources` are the venues on the internet, unless given. */
export async function serve(
  config: ServeConfig,
  logger: Logger,
  sources: readonly PriceSource[] = venuesOf(config),
): Promise<Service> {
  await refuseSandboxDatabases(config)
  for (const file of config.exposedFiles) {
    logger.warn({ file }, 'everybody on this machine may read a file with a secret: chmod 600')
  }
  const has = (role: Role) => config.roles.includes(role)
  return startService({
    roles: {
      api: has('api') ? apiRole(config) : null,
      watcher: has('watcher'),
      engine: has('engine') ? engineRole(config) : null,
      notifier: has('notifier') ? notifierRole(config) : null,
      signer: has('signer') ? await signerRole(config) : null,
    },
    databaseUrl: config.databaseUrl,
    databaseConnections: config.databaseConnections,
    chains: config.chains,
    prices: pricesOf(config, sources, logger),
    policy: { ...defaultPolicy, ...config.trading },
    http: {
      port: config.port,
      host: config.host,
      limits: {
        ...defaultLimits,
        ...config.rateLimits,
        ...config.mailLimits,
        trustedProxies: config.trustedProxies,
        metricsAllow: config.metricsAllow,
      },
    },
    clock: systemClock(),
    logger,
  })
}

/** The demo account's key is written down where the sandbox ran, and what it booked was never money. */
async function refuseSandboxDatabases({ isMainnet, databaseUrl, signer }: ServeConfig): Promise<void> {
  if (!isMainnet) return
  refuseMarked('DATABASE_URL', await readMarker(databaseUrl))
  if (signer === null || signer.databaseUrl === databaseUrl) return
  refuseMarked('SIGNER_DATABASE_URL', await onSignerDatabase(() => readMarker(signer.databaseUrl)))
}

function refuseMarked(variable: string, marker: string | null): void {
  if (marker === null) return
  throw new CommandRefused(`${variable} names the database of a sandbox. On a main network use another.`)
}

function apiRole({ keys, baseUrl }: ServeConfig): ApiRole {
  const { account, orderSeal, orderToken } = keys
  return { accountKeys: account, orderSeal: given(orderSeal), orderToken: given(orderToken), baseUrl }
}

function engineRole({ keys, roles, signerSocket }: ServeConfig): EngineRole {
  const isSignerHere = roles.includes('signer')
  return { orderSeal: given(keys.orderSeal), signerSocket: isSignerHere ? null : signerSocket }
}

function notifierRole({ keys, mail, baseUrl }: ServeConfig): NotifierRole {
  if (mail === null) return { accountKeys: keys.account, mail }
  const { fromName: sender, ...settings } = mail
  return {
    accountKeys: keys.account,
    mail: { ...settings, sender, note: null, orderToken: given(keys.orderToken), baseUrl },
  }
}

async function signerRole(config: ServeConfig): Promise<SignerRole> {
  const { signer, isMainnet } = config
  assert(signer !== null, 'the configuration has what the role signer needs')
  const { loadTronSigning } = await import('./signer/transactions/tron_transaction.ts')
  const seed = await openSeed(signer, isMainnet)
  if (config.chains.TRX.rpcUrl !== null) await loadTronSigning()
  return {
    orderSeal: given(config.keys.orderSeal),
    seed,
    settings: signerSettings(config, signer.spendLimits),
    databaseUrl: signer.databaseUrl,
    socket: config.signerSocket,
  }
}

/** The seed out of the keystore, which is refused where it is of the other kind of networks. */
export async function openSeed(
  { keystoreFile, passphrase }: KeystoreSettings,
  isMainnet: boolean,
): Promise<Uint8Array> {
  const { openKeystore } = await import('./signer/keystore.ts')
  const keystore = await openKeystore({
    path: keystoreFile,
    passphrase: passphrase.export().toString('utf8'),
    environment: isMainnet ? 'production' : 'sandbox',
  })
  if (!keystore.ok) throw new CommandRefused(`CAMBIST_KEYSTORE_FILE: ${keystore.rejection.message}`)
  return keystore.value.seed
}

/** The configuration is refused when a role lacks a key that it needs. */
function given(key: KeyObject | null): KeyObject {
  assert(key !== null, 'the configuration has the keys of its roles')
  return key
}

function venuesOf({ prices }: ServeConfig): readonly PriceSource[] {
  const unknown = prices.venues.filter((venue) => !isVenueId(venue))
  if (unknown.length > 0) {
    throw new CommandRefused(
      `CAMBIST_PRICE_VENUES: no prices can be read from ${unknown.join(', ')}; choose from ${venueIds.join(', ')}`,
    )
  }
  return priceSources.ccxt({
    venues: prices.venues.filter(isVenueId),
    currencies: currencyCodes,
    clock: systemClock(),
    timeoutMs: defaultPriceRules.readTimeoutMs,
  })
}

function pricesOf(
  { prices: { venues: _, ...rules }, chains }: ServeConfig,
  sources: readonly PriceSource[],
  log: Logger,
): RunningPrices {
  return priceBook({ sources, clock: systemClock(), rules, tells: toldCurrencies(chains), log })
}

/** Without a limit of its own an asset is not paid; on a test network it need not have one. */
const UNLIMITED = 2n ** 256n

export function signerSettings(
  { chains, isMainnet }: Pick<ServeConfig, 'chains' | 'isMainnet'>,
  limits: readonly AssetLimits[],
): SignerSettings {
  return {
    ...signerCaps(chains),
    payoutUnitsMax: {
      ...(!isMainnet && Object.fromEntries(assets.map(({ id }) => [id, UNLIMITED]))),
      ...Object.fromEntries(limits.map(({ asset, perPayoutUnits }) => [asset, perPayoutUnits])),
    },
    limits: limits.flatMap(({ asset, perHourUnits, perDayUnits }) => [
      { asset, windowMs: HOUR_MS, unitsMax: perHourUnits },
      { asset, windowMs: DAY_MS, unitsMax: perDayUnits },
    ]),
  }
}
