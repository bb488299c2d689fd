import { startPostgres } from '../src/index.ts'

/** A process of its own that starts the server and then waits to be killed. */
const { url, pid, adopted } = await startPostgres({ dataDir: process.argv[2] ?? '' })
console.log(JSON.stringify({ url, pid, adopted }))
setInterval(() => {}, 1_000)
