import { systemClock } from '../../../src/clock.ts'
import { untilStopped } from '../../../src/commands/until_stopped.ts'
import { readServeConfig } from '../../../src/config/serve_config.ts'
import { currencyCodes } from '../../../src/domain/catalog/currencies.ts'
import { createLogger } from '../../../src/log.ts'
import { isVenueId, priceSources } from '../../../src/prices/index.ts'
import { serve } from '../../../src/serve.ts'

/**
 * `cambist serve --roles …` as it is, except that prices are read from venues on this machine, whose origins the second
 * argument names, and that stopping may take as many seconds as the third says. Production has no such switches.
 */
const [roles, origins = '{}', stopSeconds] = process.argv.slice(2)
const config = readServeConfig(process.env, roles)
const sources = priceSources.ccxt({
  venues: config.prices.venues.filter(isVenueId),
  currencies: currencyCodes,
  clock: systemClock(),
  timeoutMs: 5_000,
  httpOverrides: JSON.parse(origins),
})
const service = await serve(config, createLogger(config.logLevel), sources)
await untilStopped(service.stop, Number(stopSeconds))
process.exit()
