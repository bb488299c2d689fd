import { type FlawName, flaws } from './flaws.ts'
import { openGround } from './ground.ts'
import { runSchedule } from './schedule.ts'
import { startScratchPostgres } from './scratch_postgres.ts'

/**
 * `npm run simulate -- 4711` does everything of that schedule again and prints it, statement by statement; with the name
 * of a flaw behind it, by an engine that has it.
 */
const [seed, name] = process.argv.slice(2)
if (seed === undefined || !/^\d+$/.test(seed) || (name !== undefined && !(name in flaws)))
  throw new Error(`a seed, and maybe one of ${Object.keys(flaws).join(', ')}`)
const flaw = name === undefined ? {} : flaws[name as FlawName]()
const server = await startScratchPostgres()
try {
  const ground = await openGround(server.url)
  const { digest, problems } = await runSchedule(ground, Number(seed), { flaw, print: console.log })
  await ground.close()
  console.log(digest, problems.length === 0 ? 'and nothing is wrong' : `\n${problems.join('\n')}`)
} finally {
  await server.stop()
}
