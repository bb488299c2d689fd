import type { ChainId } from '../domain/catalog/networks.ts'
import { HOUR_MS, MINUTE_MS, SECOND_MS } from '../domain/time.ts'
import type { Policy } from './policy.ts'

/**
 * What the sandbox and tests go by, and a service where its configuration says nothing. Of what can be configured,
 * `config/variables.ts` has the defaults again, as text; `serve.test.ts` compares them. What clients notice of it stands in
 * docs/api.md as well.
 */
export const defaultPolicy: Policy = {
  fees: { fixed: 100n, float: 50n },
  slippage: 200n,
  tolerance: 0n,
  lockMs: 15 * MINUTE_MS,
  lockLeastLeftMs: 60 * SECOND_MS,
  lockMemoryMs: HOUR_MS,
  floatOpenMs: 15 * MINUTE_MS,
  largeDeposits: { BTC: '1' },
  stallMs: 30 * MINUTE_MS,
  // Several blocks of every chain on which a payee can be refused, but for Ethereum, of which it is two.
  payeeRefusedMs: 30 * SECOND_MS,
  bumpAfterMs: {
    BTC: 30 * MINUTE_MS,
    ETH: 3 * MINUTE_MS,
    BNB: MINUTE_MS,
    XRP: 45 * SECOND_MS,
    XLM: 60 * SECOND_MS,
  },
  chainTroubleMs: MINUTE_MS,
  paused: [],
  // Blocks of Bitcoin come by chance: one in a hundred years takes three hours. The others keep time.
  standstillMs: {
    BTC: 3 * HOUR_MS,
    ETH: 3 * MINUTE_MS,
    BNB: MINUTE_MS,
    XRP: MINUTE_MS,
    XLM: MINUTE_MS,
    TRX: MINUTE_MS,
    EOS: MINUTE_MS,
    SOL: MINUTE_MS,
  } satisfies Record<ChainId, number>,
  poolSize: 200,
  retrySlotMs: 24 * HOUR_MS,
  sweepCostMultiple: 10n,
  sweepRestMs: 10 * MINUTE_MS,
  atOnce: 4,
  restMs: 200,
}
