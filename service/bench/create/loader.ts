import { createSecretKey } from 'node:crypto'
import { bytesOf, type Line, openLine } from './raw_client.ts'
import { createRequest } from './requests.ts'

/** A process of its own, so that making and sending requests is not counted as the service's time. */
export type Load = {
  readonly url: string
  readonly keyId: string
  readonly secret: string
  readonly connections: number
  readonly seconds: number
  /** Asks so many a second whatever comes back; without it, each connection asks as soon as it is answered. */
  readonly perSecond?: number
}

export type Loaded = {
  readonly count: number
  readonly seconds: number
  /** Milliseconds from when it was to be asked to its whole answer, sorted. */
  readonly latenciesMs: readonly number[]
}

/** More than any machine creates in a second. */
const PER_SECOND_MAX = 12_000

async function run(load: Load): Promise<Loaded> {
  const caller = { keyId: load.keyId, secret: createSecretKey(Buffer.from(load.secret)) }
  const count = Math.ceil((load.perSecond ?? PER_SECOND_MAX) * load.seconds)
  const requests = Array.from({ length: count }, (_, number) => bytesOf(createRequest(caller, number)))
  const lines = await Promise.all(Array.from({ length: load.connections }, () => openLine(load.url)))
  const latenciesMs: number[] = []
  const startedMs = performance.now()
  const endMs = startedMs + load.seconds * 1_000
  let next = 0
  const work = async (line: Line) => {
    for (;;) {
      const number = next
      next += 1
      const request = requests[number]
      const dueMs =
        load.perSecond === undefined ? performance.now() : startedMs + (number * 1_000) / load.perSecond
      if (request === undefined || dueMs >= endMs) return
      await until(dueMs)
      await line.ask(request)
      latenciesMs.push(performance.now() - dueMs)
    }
  }
  await Promise.all(lines.map(work))
  const seconds = (performance.now() - startedMs) / 1_000
  for (const line of lines) line.end()
  return { count: latenciesMs.length, seconds, latenciesMs: latenciesMs.sort((a, b) => a - b) }
}

async function until(dueMs: number): Promise<void> {
  const leftMs = dueMs - performance.now()
  if (leftMs > 0) await new Promise((resolve) => setTimeout(resolve, leftMs))
}

process.on('message', (load) => {
  run(load as Load).then(
    (loaded) => process.send?.(loaded),
    (error: unknown) => {
      console.error(error)
      process.exit(1)
    },
  )
})
process.on('disconnect', () => process.exit(0))
process.send?.('ready')
