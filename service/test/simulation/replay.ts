import { openGround } from './ground.ts'
import { runSchedule } from './schedule.ts'
import { startScratchPostgres } from './scratch_postgres.ts'

/** `npx node service/test/simulation/replay.ts 4711` does everything of that schedule again and prints it. */
const seed = Number(process.argv[2])
const server = await startScratchPostgres()
try {
  const ground = await openGround(server.url, 'replay')
  const { digest, problems } = await runSchedule(ground, seed, { print: console.log })
  await ground.close()
  console.log(digest, problems.length === 0 ? 'and nothing is wrong' : problems.join('\n'))
} finally {
  await server.stop()
}
