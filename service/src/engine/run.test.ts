import { expect, test, vi } from 'vitest'
import { type ChainId, chainIds } from '../domain/catalog/networks.ts'
import { openAlarms } from './alarms.ts'
import { defaultPolicy } from './default_policy.ts'
import { startEngine, startWatching } from './run.ts'
import { paperChain } from './testing/paper_chain.ts'
import { willingSigner } from './testing/willing_signer.ts'
import type { SigningWorld } from './world.ts'

/**
 * What: an engine has the loops that its chains give something to do, and sweeps only where deposits lie on addresses of their own.
 * How: chains on paper, and a database that is away: only the names of the loops are looked at. One
 * has a lease, and fails at the looks that it needs no database for.
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

test('whose node it is is asked every five seconds, also by a clock that is set back', async () => {
  let wallMs = 1_800_000_000_000
  let looks = 0
  let checks = 0
  const chain = {
    ...paperChain('ETH'),
    checkIdentity: async () => {
      checks += 1
    },
    head: async () => {
      looks += 1
      throw new Error('the node is away')
    },
  }
  const loops = startWatching(
    {
      ...world,
      db: { ...world.db, query: async () => [{ fence: 1 }] } as unknown as SigningWorld['db'],
      clock: {
        ...world.clock,
        wallMs: () => wallMs,
        sleep: () => new Promise((resolve) => setImmediate(resolve)),
      },
      chains: new Map([['ETH', chain]]),
    },
    'the watcher',
  )
  const lookTwice = async () => {
    const before = looks
    await vi.waitFor(() => expect(looks).toBeGreaterThan(before + 1), { interval: 1 })
    return checks
  }
  expect(await lookTwice()).toBe(1)
  wallMs += 4_999
  expect(await lookTwice()).toBe(1)
  wallMs += 1
  expect(await lookTwice()).toBe(2)
  wallMs -= 3_600_000
  expect(await lookTwice(), 'set back by an hour').toBe(3)
  expect(await lookTwice()).toBe(3)
  await Promise.all(loops.map((loop) => loop.stop()))
})
