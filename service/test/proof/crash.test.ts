import { afterAll, beforeAll, expect, inject, onTestFailed } from 'vitest'
import { chanceFrom } from '../harness/chance.ts'
import { wishByChance } from './crash/customers.ts'
import { seldomAsking } from './crash/patches.ts'
import { killsOf, randomReaper, type Tally } from './crash/reaper.ts'
import { runTrade } from './crash/run.ts'
import { type Ground, startGround, startStage } from './crash/stage.ts'
import { prove } from './prove.ts'

/**
 * What: whatever dies in the middle of whatever, every order ends, nothing is paid twice, and nothing is lost.
 * How: real nodes, a real PostgreSQL, and api, watcher, two engines and signer in processes of their own. Customers come
 * and go while processes kill themselves, or the server that their data is in, at every named moment of an order's life,
 * and again while they take up what the dead left. Then the chains are asked who got what.
 * `crash_controls.test.ts` shows that these checks catch a service that is known to be bad.
 */
let ground: Ground

/** More of them cost every process that starts their libraries, and hundreds start. */
const NETWORKS = {
  short: ['BTC', 'ETH', 'XRP'],
  long: ['BTC', 'ETH', 'XRP', 'XLM', 'TRX', 'EOS', 'SOL'],
} as const

beforeAll(async () => {
  ground = await startGround(NETWORKS[inject('proof').size])
})

afterAll(() => ground?.stop())

prove(
  'orders survive the death of everything at every named moment',
  async ({ seed, size, sized, share, figure }) => {
    const numbers = share([...Array(sized({ short: 300, long: 10_000 })).keys()])
    const ordersMin = numbers.length
    const killsMin = share([...Array(sized({ short: 100, long: 2_000 })).keys()]).length
    // Each part makes choices of its own.
    const chance = chanceFrom(seed, numbers[0])
    const reaper = randomReaper(chance, ground.postgres, NETWORKS[size])
    const stage = await startStage(ground, {
      roles: ['api', 'watcher', 'engine', 'engine', 'signer'],
      reaper,
      patches: [seldomAsking],
    })
    onTestFailed(() => console.error(stage.fleet.logs()))
    try {
      // Deaths keep pace with orders, so that there is always work that somebody dies of.
      let started = 0
      reaper.begin(() => KILLS_AHEAD + (killsMin * started) / ordersMin)
      const { customers, settled, problems } = await runTrade(ground, stage, {
        chance,
        next: (number) => {
          started = number
          return number < ordersMin || !isEnough(reaper.tally(), killsMin)
            ? wishByChance(number, chance, ground.devnet)
            : null
        },
        takeReorgWish: reaper.takeReorgWish,
        calm: reaper.calm,
        isHasty: false,
        patienceMs: 120_000,
      })
      const { hits, kills, again } = reaper.tally()
      figure('orders', customers.length)
      figure('kills', killsOf(reaper.tally()))
      for (const [victim, count] of Object.entries(kills)) figure(`of ${victim}`, count)
      figure('moments', `${[...hits.values()].filter((count) => count > 0).length} of ${hits.size}`)
      figure('killed again while recovering', again)
      figure('payouts', settled.payouts)
      figure('refunds', settled.refunds)
      figure('paid twice', settled.paidTwice)
      figure('lost', settled.lost)

      expect(problems).toEqual([])
      expect([...hits].filter(([, count]) => count === 0)).toEqual([])
      expect(killsOf(reaper.tally())).toBeGreaterThanOrEqual(killsMin)
      expect(again).toBeGreaterThan(0)
    } finally {
      await stage.stop()
    }
  },
)

const KILLS_AHEAD = 10

function isEnough(tally: Tally, killsMin: number): boolean {
  return killsOf(tally) >= killsMin && tally.again > 0 && [...tally.hits.values()].every((count) => count > 0)
}
