import { createSecretKey } from 'node:crypto'
import type { Logger } from 'pino'
import { systemClock } from './clock.ts'
import type { ServeConfig } from './config/serve_config.ts'
import type { AssetLimits } from './config/signer_settings.ts'
import { currencyCodes } from './domain/catalog/currencies.ts'
import { HOUR_MS } from './domain/time.ts'
import { defaultPolicy } from './engine/default_policy.ts'
import { defaultLimits } from './http/parts.ts'
import { type RunningPrices, type Service, type SignerChoice, startService } from './main.ts'
import { defaultPriceRules, isVenueId, priceBook, priceSources } from './prices/index.ts'
import { openKeystore } from './signer/keystore.ts'
import type { SignerSettings } from './signer/settings.ts'

/** A process of the real service, as its configuration says. */
export async function serve(config: ServeConfig, logger: Logger): Promise<Service> {
  const clock = systemClock()
  return startService({
    roles: config.roles,
    databaseUrl: config.databaseUrl,
    chains: config.chains,
    prices: openPrices(config, logger),
    policy: { ...defaultPolicy, ...config.trading },
    keys: {
      account: config.keys.account,
      orderSeal: config.keys.orderSeal ?? unused(),
      orderToken: config.keys.orderToken ?? unused(),
    },
    signer: await chooseSigner(config),
    http: {
      port: config.port,
      host: config.host,
      baseUrl: config.baseUrl,
      limits: {
        ...defaultLimits,
        ...config.rateLimits,
        trustedProxies: config.trustedProxies,
        metricsAllow: config.metricsAllow,
      },
    },
    clock,
    logger,
  })
}

/** A role that needs a key has it (config); what another role would do with it cannot happen here. */
function unused() {
  return createSecretKey(Buffer.alloc(32))
}

function openPrices(config: ServeConfig, logger: Logger): RunningPrices {
  const { venues, ...rules } = config.prices
  const unknown = venues.filter((venue) => !isVenueId(venue))
  if (unknown.length > 0)
    throw new Error(`CAMBIST_PRICE_VENUES: no prices are read from ${unknown.join(', ')}`)
  const clock = systemClock()
  const book = priceBook({
    sources: priceSources.ccxt({
      venues: venues.filter(isVenueId),
      currencies: currencyCodes,
      clock,
      timeoutMs: defaultPriceRules.readTimeoutMs,
    }),
    clock,
    rules,
    log: logger,
  })
  return book
}

async function chooseSigner(config: ServeConfig): Promise<SignerChoice> {
  if (config.signer === null) {
    return config.signerSocket === null || !config.roles.includes('engine')
      ? { kind: 'none' }
      : { kind: 'socket', path: config.signerSocket }
  }
  const { keystoreFile, passphrase, databaseUrl } = config.signer
  const keystore = await openKeystore({
    path: keystoreFile,
    passphrase: passphrase.export().toString('utf8'),
    environment: config.isMainnet ? 'production' : 'sandbox',
  })
  if (!keystore.ok) throw new Error(`CAMBIST_KEYSTORE_FILE: ${keystore.rejection.message}`)
  return {
    kind: 'local',
    seed: keystore.value.seed,
    settings: signerSettings(config, config.signer.spendLimits),
    databaseUrl,
    serveAt: config.roles.includes('engine') ? null : config.signerSocket,
  }
}

function signerSettings({ chains }: ServeConfig, limits: readonly AssetLimits[]): SignerSettings {
  const { BTC, ETH, BNB } = chains
  const evm = ({ evmChainId, gasLimitMax, maxFeePerGasWeiMax }: typeof ETH) => ({
    chainId: evmChainId,
    gasLimitMax,
    feePerGasWeiMax: maxFeePerGasWeiMax,
  })
  return {
    bitcoin: {
      network: BTC.network,
      feeRateSatPerVbMax: BTC.milliSatPerVbMax / 1_000n,
      feeSatoshiMax: BTC.feeSatoshiMax,
    },
    evm: { ETH: evm(ETH), BNB: evm(BNB) },
    contracts: { ...ETH.tokens, ...BNB.tokens },
    payoutUnitsMax: Object.fromEntries(limits.map(({ asset, perPayoutUnits }) => [asset, perPayoutUnits])),
    limits: limits.flatMap(({ asset, perHourUnits, perDayUnits }) => [
      { asset, windowMs: HOUR_MS, unitsMax: perHourUnits },
      { asset, windowMs: 24 * HOUR_MS, unitsMax: perDayUnits },
    ]),
  }
}
