import { createServer } from 'node:http'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { getHeapSpaceStatistics, setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

/**
 * Loaded before a process of the service (`--import`), to tell from inside how its event loop and its memory are, over
 * the Unix socket that PROBE_SOCKET names. The service does not know of it.
 */
export type Reading = {
  /** The longest that the loop was away, as a clock on the wall sees it. */
  readonly wallStallMs: number
  /** The longest by the processor time of its thread, which a machine with too much to do cannot lengthen. */
  readonly ownStallMs: number
  /** What is left after the garbage was collected: objects, without what V8 compiles and throws away as it likes. */
  readonly heapBytes: number
}

const TICK_MS = 10

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as () => void
const { PROBE_SOCKET } = process.env
// Whatever this process starts has loops of its own.
delete process.env.NODE_OPTIONS
delete process.env.PROBE_SOCKET

const delays = monitorEventLoopDelay({ resolution: TICK_MS })
let last = now()
let wallStallMs = 0
let ownStallMs = 0
const ticking = setInterval(() => {
  const tick = now()
  // A turn costs at most the time that it took: what was spent between shorter turns is none of it.
  ownStallMs = Math.max(ownStallMs, Math.min(tick.cpuMs - last.cpuMs, tick.wallMs - last.wallMs - TICK_MS))
  last = tick
}, TICK_MS)

function now() {
  const { user, system } = process.threadCpuUsage()
  return { wallMs: performance.now(), cpuMs: (user + system) / 1_000 }
}

function begin(): void {
  goOn({ wallStallMs: 0, ownStallMs: 0 })
  delays.enable()
}

function goOn(stalls: Omit<Reading, 'heapBytes'>): void {
  delays.reset()
  last = now()
  wallStallMs = stalls.wallStallMs
  ownStallMs = stalls.ownStallMs
}

/** The collections stop the loop as well: what they cost is not counted. */
async function read(): Promise<Reading> {
  const stalls = { wallStallMs: Math.max(wallStallMs, delays.max / 1e6), ownStallMs }
  for (let round = 0; round < 3; round += 1) {
    collect()
    await new Promise(setImmediate)
  }
  const heapBytes = objectBytes()
  goOn(stalls)
  return { ...stalls, heapBytes }
}

/** Machine code and byte code (`code_space`, `trusted_space`) grow with what has been run often, not with what was asked. */
function objectBytes(): number {
  const ofObjects = getHeapSpaceStatistics().filter(({ space_name: name }) => !/code|trusted/.test(name))
  return ofObjects.reduce((sum, { space_used_size: bytes }) => sum + bytes, 0)
}

const hoarded: unknown[] = []

const questions: Readonly<Record<string, () => unknown>> = {
  '/begin': begin,
  '/read': read,
  /** For the control: half a second of work in one turn. */
  '/stall': () => {
    for (const untilMs = now().cpuMs + 500; now().cpuMs < untilMs; );
  },
  /** For the control: memory that is never given back. */
  '/hoard': () => hoarded.push(Array.from({ length: 400_000 }, (_, at) => ({ at }))),
}

const server = createServer(async (request, response) => {
  const answer = await questions[request.url ?? '']?.()
  response.end(JSON.stringify(answer ?? null))
})
server.listen(PROBE_SOCKET)
server.unref()
ticking.unref()
