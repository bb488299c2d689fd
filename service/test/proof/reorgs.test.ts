import { expect } from 'vitest'
import { HOUR_MS } from '../../src/domain/time.ts'
import { defaultPolicy } from '../../src/engine/default_policy.ts'
import { chanceFrom } from '../harness/chance.ts'
import { checkAllEnded, inSandbox } from './in_sandbox.ts'
import { prove } from './prove.ts'
import { forkingChains } from './reorgs/chain_diary.ts'
import { type Scene, scenes } from './reorgs/scenes.ts'
import { openStorm, type Storm } from './reorgs/storm.ts'
import { calmDown, replacements, type Strike, strikeOnce } from './reorgs/strikes.ts'
import { findSignedAnew, judge } from './reorgs/verdict.ts'

/**
 * What: whatever chains take back, nothing is credited from an orphan, payouts that lost their block go out again as the
 * same bytes (on TRON: until their time is over), and every order ends as what is finally on the chains says.
 * How: real bitcoind and anvils and the simulated TRON under two processes of the service; orders of all pairs come, are
 * paid in all manners and decided about, while blocks are reorganised at every depth up to one more than any order waits
 * for (on TRON: up to the solid block), and deposits are replaced. The test keeps a diary of the chains of its own and
 * judges every order by it.
 */

/** One more than the larger number of confirmations that an order may ask for. */
const REACH = { BTC: 7, ETH: 13, BNB: 13 } as const
const CHAINS = Object.keys(REACH) as (keyof typeof REACH)[]
/** A block of TRON is solid, and stays, when 19 are built on it; then it has the confirmations that an order waits for. */
const TRON_REACH = 19

prove('reorganisations and replaced deposits leave every order right', async ({ seed, sized, figure }) => {
  const chance = chanceFrom(seed)
  const strikes = chance.shuffled([
    ...reorgs(sized({ short: 33, long: 500 })),
    ...reorgsOfTron(sized({ short: 4, long: 150 })),
    ...replaced(sized({ short: 15, long: 200 })),
  ])
  await inSandbox({ policy: UNHURRIED, networks: forkingChains }, async (sandbox) => {
    sandbox.expectError('a deposit lost its block, and what was paid for it may have left')
    const other = await sandbox.startAnother(['watcher', 'engine', 'signer'])
    try {
      const storm = await openStorm(sandbox, chance)
      for (const strike of strikes) {
        sandbox.log(JSON.stringify(strike))
        await strikeOnce(storm, strike)
      }
      const inTrouble = await calmDown(storm)
      await checkAllEnded(sandbox)
      tell(storm, strikes, figure)
      figure('outflows still in trouble after twenty rounds of calm', inTrouble)
      await expectAllRight(storm, figure)
    } finally {
      await other.stop()
    }
  })
})

/** A payout that waits long would be raised, and then it is right to sign again. */
const UNHURRIED = {
  bumpAfterMs: { ...defaultPolicy.bumpAfterMs, BTC: 24 * HOUR_MS, ETH: 24 * HOUR_MS, BNB: 24 * HOUR_MS },
}

/** Every depth of every chain in turn; the deepest, which no order expects, meet one scene after the other. */
function reorgs(count: number): Strike[] {
  const all = CHAINS.flatMap((chain) =>
    Array.from({ length: REACH[chain] }, (_, index) => ({ chain, depth: index + 1 })),
  )
  const turns = Object.fromEntries(CHAINS.map((chain, turn) => [chain, turn]))
  return Array.from({ length: count }, (_, index) => {
    const { chain, depth } = all[index % all.length] ?? { chain: 'BTC', depth: 1 }
    if (depth < REACH[chain]) return { kind: 'reorg', chain, depth, scene: null }
    const turn = turns[chain] ?? 0
    turns[chain] = turn + 1
    const fitting = scenes.filter((scene) => isPossible(scene, chain))
    return { kind: 'reorg', chain, depth, scene: fitting[turn % fitting.length] ?? null }
  })
}

/** The deepest every other time, to which what is nearly final goes back; between them every depth in turn. */
function reorgsOfTron(count: number): Strike[] {
  const nearly = ['a deposit is nearly final', 'a payout is nearly final'] as const
  return Array.from({ length: count }, (_, index) => {
    const round = Math.floor(index / 2)
    return index % 2 === 0
      ? { kind: 'reorg', chain: 'TRX', depth: TRON_REACH, scene: nearly[round % nearly.length] ?? null }
      : { kind: 'reorg', chain: 'TRX', depth: 1 + ((round * 7) % TRON_REACH), scene: null }
  })
}

/** Only Bitcoin waits longer for more; and it does not wait long enough for a deposit to survive what makes careful. */
function isPossible(scene: Scene, chain: keyof typeof REACH): boolean {
  if (scene === 'a deposit is nearly final' || scene === 'a payout is nearly final') return false
  if (scene === 'a large payout was sent') return chain === 'BTC'
  return scene !== 'an exchange waits' || chain !== 'BTC'
}

function replaced(count: number): Strike[] {
  return Array.from({ length: count }, (_, index) => ({
    kind: 'replacement',
    chain: index % 2 === 0 ? 'ETH' : 'BNB',
    how: replacements[index % replacements.length] ?? 'another amount',
    scene: index % EXCHANGES_SELDOM === 0 ? 'an exchange waits' : null,
  }))
}

const EXCHANGES_SELDOM = 6

type Figure = (what: string, value: number | string) => void

function tell({ orders, struck, orphanedPayouts }: Storm, strikes: readonly Strike[], figure: Figure): void {
  for (const kind of ['reorg', 'replacement'] as const) {
    figure(`${kind}s`, strikes.filter((strike) => strike.kind === kind).length)
    const met = Object.entries(struck[kind]).map(([stage, count]) => `${count} ${stage}`)
    figure(`orders struck by a ${kind}`, met.join(', '))
  }
  const orphaned = forkingChains.map((chain) => `${orphanedPayouts[chain]} ${chain}`)
  figure('payouts taken out of their block', orphaned.join(', '))
  expect(orphanedPayouts.TRX, 'payouts taken out of a block of TRON').toBeGreaterThan(0)
  figure('orders', orders.length)
  for (const stage of STRUCK.reorg) expect(struck.reorg[stage], stage).toBeGreaterThan(0)
  for (const stage of STRUCK.replacement) expect(struck.replacement[stage], stage).toBeGreaterThan(0)
}

/** Where orders have to have been when they were struck; the figures tell of every other stage as well. */
const STRUCK = {
  reorg: ['PENDING', 'payout sent', 'payout mined', 'DONE'],
  replacement: ['NEW', 'PENDING', 'EXCHANGE', 'payout sent', 'payout mined'],
} as const

async function expectAllRight(storm: Storm, figure: Figure): Promise<void> {
  const verdicts = []
  for (const order of storm.orders) verdicts.push(await judge(storm, order))
  expect(verdicts.flatMap(({ wrong }) => wrong)).toEqual([])
  expect(await findSignedAnew(storm)).toEqual([])
  const ends = Map.groupBy(verdicts, ({ status }) => status)
  figure('ends', [...ends].map(([status, all]) => `${all.length} ${status}`).join(', '))
  figure(
    'orders whose deposit was lost after they were paid',
    verdicts.filter((one) => one.lostUnits > 0n).length,
  )
}
