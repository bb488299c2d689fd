import autocannon from 'autocannon'
import { inTurns, microsecondsEach, type Work } from './in_turns.ts'
import { type ServerProcess, startServerProcess } from './server_process.ts'

export type BenchRequest = {
  readonly method?: 'GET' | 'POST'
  readonly path: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
}

/** What is asked, shared out among the connections. Made anew for every round: signatures grow old. */
export type Requests = () => readonly BenchRequest[] | Promise<readonly BenchRequest[]>

const CONNECTIONS = 20
const ROUND_SECONDS = 2
/** After so many V8 has compiled what a request runs through; a service that has run for a minute is past that. */
const WARM_UP_REQUESTS = 50_000

/** The connections ask for two seconds, each one thing after the other. A single refusal makes it void. */
export async function load(
  server: ServerProcess,
  requests: Requests,
  connections = CONNECTIONS,
): Promise<Work> {
  const shares = shareOut(await requests(), connections)
  const before = await server.cpuMicroseconds()
  const result = await autocannon({
    url: server.url,
    connections,
    duration: ROUND_SECONDS,
    setupClient: (client) => client.setRequests(shares.next().value ?? []),
  })
  if (result.non2xx > 0 || result.errors > 0) {
    throw new Error(`${result.non2xx} refusals and ${result.errors} errors: nothing was measured`)
  }
  return {
    count: result.requests.total,
    cpuMicroseconds: (await server.cpuMicroseconds()) - before,
    seconds: result.duration,
  }
}

/** Without end: every connection gets its own part, or all the same one request. */
function* shareOut(
  requests: readonly BenchRequest[],
  connections: number,
): Generator<readonly BenchRequest[], never> {
  const size = Math.max(1, Math.floor(requests.length / connections))
  for (let first = 0; ; first = (first + size) % requests.length) {
    yield requests.slice(first, first + size)
  }
}

/** The requests of each name, loaded in turns with a bare server that is asked the same and sends as many bytes. */
export async function compareWithBare<Name extends string>(
  server: ServerProcess,
  subjects: Readonly<Record<Name, Requests>>,
  connections = CONNECTIONS,
): Promise<Readonly<Record<Name, AgainstBare>>> {
  const names = Object.keys(subjects) as Name[]
  const bares: ServerProcess[] = []
  const contenders: Record<string, () => Promise<Work>> = {}
  try {
    for (const name of names) {
      const bare = await startServerProcess('bare_server.ts', [await answerTo(server, subjects[name])])
      bares.push(bare)
      contenders[`${name}, bare`] = () => load(bare, subjects[name], connections)
      contenders[name] = () => load(server, subjects[name], connections)
    }
    for (const contender of Object.values(contenders)) await warmUp(contender)
    const work = await inTurns(contenders)
    const compared = names.map((name) => [name, against(work[name], work[`${name}, bare`])])
    return Object.fromEntries(compared)
  } finally {
    for (const bare of bares) await bare.stop()
  }
}

async function warmUp(contender: () => Promise<Work>): Promise<void> {
  for (let asked = 0; asked < WARM_UP_REQUESTS; ) asked += (await contender()).count
}

export type AgainstBare = {
  /** 1 would be free; the higher the better. */
  readonly ratio: number
  readonly microseconds: number
  /** The microseconds of both, and how many requests a second went through. */
  readonly detail: string
}

function against(ours: Work | undefined, bare: Work | undefined): AgainstBare {
  if (ours === undefined || bare === undefined) throw new Error('nothing was measured')
  const [microseconds, bareMicroseconds] = [microsecondsEach(ours), microsecondsEach(bare)]
  const perSecond = Math.round(ours.count / ours.seconds)
  return {
    ratio: bareMicroseconds / microseconds,
    microseconds,
    detail: `${microseconds.toFixed(1)} µs of processor a request, bare ${bareMicroseconds.toFixed(1)} µs; ${perSecond} requests a second`,
  }
}

async function answerTo(server: ServerProcess, requests: Requests): Promise<string> {
  const [first] = await requests()
  if (first === undefined) throw new Error('there is nothing to ask')
  const { path, ...init } = first
  const response = await fetch(server.url + path, init)
  const body = await response.text()
  if (response.status !== 200) throw new Error(`${path} answered ${response.status}: ${body}`)
  return body
}
