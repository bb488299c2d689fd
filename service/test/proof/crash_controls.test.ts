import { afterAll, beforeAll, expect } from 'vitest'
import { chanceFrom } from '../harness/chance.ts'
import { type Control, controls } from './crash/controls.ts'
import { aimedReaper } from './crash/reaper.ts'
import { runTrade } from './crash/run.ts'
import { type Ground, startGround, startStage } from './crash/stage.ts'
import { prove } from './prove.ts'

/**
 * What: the crash test would notice; each way of being wrong that it is there for is caught by its checks.
 * How: the same customers and checks, with services that are known to be bad, and with deaths at the moment where that
 * hurts. The long form also does the same to the service as it is, and has nothing to complain about.
 */
let ground: Ground

beforeAll(async () => {
  ground = await startGround()
})

afterAll(() => ground?.stop())

prove('a service that is known to be bad is caught by the same checks', async ({ seed, size, figure }) => {
  for (const control of controls) {
    const problems = await play(control, seed)
    const shown = problems.find((problem) => control.shows.test(problem))
    expect(shown, `${control.name} is not caught: the test has a hole\n${problems.join('\n')}`).toBeDefined()
    figure(control.name, String(shown))
    if (size === 'short') continue
    // It is the missing part that is caught: with it, the same customers and the same deaths are served well.
    expect(await play({ ...control, patches: [], sql: [] }, seed), control.name).toEqual([])
  }
})

async function play(control: Control, seed: number): Promise<readonly string[]> {
  const prepared = await control.prepare?.(ground)
  const reaper = aimedReaper(control.aims, ground.postgres)
  const stage = await startStage(ground, {
    roles: ['api', 'watcher', 'engine', 'signer'],
    patches: control.patches,
    sql: control.sql,
    reaper,
    ...prepared?.options,
  })
  reaper.begin(async () => control.onDeath?.(ground, stage))
  try {
    const { problems } = await runTrade(ground, stage, {
      chance: chanceFrom(seed),
      next: (number) => control.wishes[number] ?? null,
      takeReorgWish: () => false,
      calm: () => {},
      // Whoever is to die may come to it after what is wrong without him is seen.
      get isHasty() {
        return reaper.left().length === 0
      },
      patienceMs: 60_000,
    })
    expect(reaper.left(), `nobody came to where it hurts: ${control.name}`).toEqual([])
    return problems
  } finally {
    await stage.stop()
    await prepared?.stop()
  }
}
