import { expect, test } from 'vitest'
import { type ChainId, chainIds } from '../domain/catalog/networks.ts'
import { openAlarms } from './alarms.ts'
import { defaultPolicy } from './default_policy.ts'
import { startEngine } from './run.ts'
import { paperChain } from './testing/paper_chain.ts'
import { willingSigner } from './testing/willing_signer.ts'
import type { SigningWorld } from './world.ts'

/**
 * What: an engine has the loops that its chains give something to do, and sweeps only where deposits lie on addresses of their own.
 * How: chains on paper, and a database that is away: only the names of the loops are looked at.
 */
const away = async () => {
  throw new Error('the database is away')
}

const chains = chainIds.map((id) => [id, paperChain(id)] as const)

const world = {
  db: { query: away, transaction: away },
  clock: { wallMs: () => 0, nowMs: () => 0, sleep: async () => {} },
  log: { info: () => {}, warn: () => {}, error: () => {} },
  alarms: openAlarms(),
  policy: defaultPolicy,
  chains: new Map(chains),
  signer: willingSigner(),
  seal: () => 'seal',
} as unknown as SigningWorld

async function loopNames(): Promise<readonly string[]> {
  const loops = startEngine(world, 'the engine')
  await Promise.all(loops.map((loop) => loop.stop()))
  return loops.map(({ name }) => name)
}

test('every chain is paid on and compared, and swept where deposits lie on addresses of their own', async () => {
  const swept: readonly ChainId[] = ['ETH', 'BNB', 'TRX', 'SOL']
  expect((await loopNames()).toSorted()).toEqual(
    [
      ...['keystore', 'expire', 'exchange', 'pool', 'housekeeping', 'due payouts'],
      ...chainIds.flatMap((id) => [`payouts ${id}`, `reconcile ${id}`]),
      ...swept.flatMap((id) => [`sweep plans ${id}`, `sweeps ${id}`]),
    ].toSorted(),
  )
})
