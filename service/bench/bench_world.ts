import { createHash, createHmac, createSecretKey, randomBytes, randomInt } from 'node:crypto'
import { systemClock } from '../src/clock.ts'
import type { Database } from '../src/db/database.ts'
import { signedTransactions } from '../src/db/signed_transactions.ts'
import { openAlarms } from '../src/engine/alarms.ts'
import { defaultPolicy } from '../src/engine/default_policy.ts'
import { marketBoard } from '../src/engine/market.ts'
import type { Policy } from '../src/engine/policy.ts'
import { makeSeal } from '../src/engine/seal.ts'
import type { Chains, DeskWorld, SigningWorld, World } from '../src/engine/world.ts'
import { sandboxPrices } from '../src/prices/index.ts'
import { localSigner } from '../src/signer/local_signer.ts'
import type { Signer } from '../src/signer/signer.ts'
import { simulatedSignerSettings } from '../test/simulation/chains/signer_settings.ts'
import { simulatedTokens } from '../test/simulation/chains/simulated_chains.ts'

/** The service's world on these chains, at the sandbox's prices and by the default policy. Of each trouble the first is printed. */
export function benchWorld(db: Database, chains: Chains, policy: Policy = defaultPolicy): World {
  const clock = systemClock()
  const prices = sandboxPrices()
  const assets = new Set([...chains.values()].flatMap((chain) => chain.assets))
  const printed = new Set<string>()
  const print = (facts: object, message: string) => {
    if (!printed.has(message)) console.error(message, facts)
    printed.add(message)
  }
  return {
    db,
    clock,
    chains,
    prices,
    market: marketBoard({ db, clock, prices, policy, assets }),
    policy,
    log: { info: () => {}, warn: print, error: print },
    alarms: openAlarms(),
    ...simulatedTokens,
  }
}

const secret = (name: string) => createSecretKey(createHash('sha256').update(name).digest())

export function deskWorld(world: World): DeskWorld {
  return {
    ...world,
    seal: (terms, whose) => makeSeal(secret('seal'), terms, whose),
    tokenOf: (orderId) => createHmac('sha256', secret('token')).update(orderId).digest('base64url'),
    randomDigits: (count) => Array.from({ length: count }, () => randomInt(10)).join(''),
    randomId: () => randomBytes(16).toString('base64url'),
  }
}

/** With a real signer whose record is in the same database. */
export function signingWorld(world: World): SigningWorld {
  const signer = benchSigner(world.db)
  return { ...world, seal: (terms, whose) => makeSeal(secret('seal'), terms, whose), signer }
}

/** Always of the same keystore. */
export function benchSigner(db: Database): Signer {
  return localSigner({
    seed: createHash('sha512').update('bench').digest(),
    store: signedTransactions(db),
    sealKey: secret('seal'),
    settings: simulatedSignerSettings,
    clock: { nowMs: systemClock().wallMs },
  })
}
