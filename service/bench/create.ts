import { fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { findPgbench } from '@cambist/devnet'
import { deriveKeys, type KeyedFamily } from '../src/signer/derivation.ts'
import { type Ground, onGround } from './create/ground.ts'
import type { Load, Loaded } from './create/loader.ts'
import { runPgbench } from './create/pgbench.ts'
import { endedChildrenMicroseconds } from './create/processor_time.ts'
import { tell } from './figure.ts'
import { inTurns, microsecondsEach, type Work } from './in_turns.ts'
import { type ServerProcess, startServerProcess } from './server_process.ts'

/**
 * What creating an order costs, the whole path: signature, validation, quote, address, seal, PostgreSQL with fsync on.
 * Against pgbench, which runs the equivalent SQL for one order as a prepared statement on the same server, in turns:
 * so the service does everything else besides and still has to be faster. The role api is a process of its own, as in
 * production; what watcher and signer would have written stands in the database, a well-filled address pool included.
 */
const CONNECTIONS = [4, 8, 16]
/** So many clients keep the service busy; batches grow with them, statements at a time do not. */
const CLIENTS = 128
const SECONDS = 2
const ROUNDS = 4
const LATENCY_SECONDS = 10

/** Chains that are configured and never asked: creating an order needs no node. */
const nobody = { rpcUrl: 'http://127.0.0.1:1' }
const tokens = Object.fromEntries(
  ['USDT', 'USDC'].map((symbol, index) => [symbol, { address: `0x${String(index + 1).repeat(40)}` }]),
)
const networks = {
  BTC: nobody,
  ETH: { ...nobody, chainId: 1, tokens },
  BNB: { ...nobody, chainId: 56, tokens },
}

type Ask = (load: Pick<Load, 'connections' | 'seconds' | 'perSecond'>) => Promise<Loaded>

const nothing: Work = { count: 0, cpuMicroseconds: 0, seconds: 1 }
/** Orders that were answered so far. */
let created = 0

const found = await findPgbench(console.log)
if (!found.ok) {
  console.error(`no pgbench: ${found.why}`)
  process.exit(1)
}
const pgbench = found.command
await onGround(async (ground) => {
  const server = await startServerProcess('api_server.ts', [ground.serviceUrl, JSON.stringify(networks)])
  const loader = await startLoader()
  const { api_key: keyId, api_secret: secret } = ground.account
  const ask: Ask = (load) => loader.run({ url: server.url, keyId, secret, ...load })
  try {
    await compare(ground, server, ask)
  } finally {
    loader.end()
    await server.stop()
  }
})
process.exit(0)

async function compare(ground: Ground, server: ServerProcess, ask: Ask): Promise<void> {
  const contenders: Record<string, () => Promise<Work>> = {}
  for (const connections of CONNECTIONS) {
    contenders[`pgbench ${connections}`] = () => slicePgbench(ground, connections)
    contenders[`service ${connections}`] = () => sliceService(ground, server, ask, connections)
  }
  contenders[`service ${CLIENTS}`] = () => sliceService(ground, server, ask, CLIENTS)
  const work = await inTurns(contenders, ROUNDS)
  for (const connections of CONNECTIONS) tellRatio(work, CLIENTS, connections, { atLeast: 1.5 })
  for (const connections of CONNECTIONS) tellRatio(work, connections, connections)
  await ground.settle()
  const { count, seconds } = work[`service ${CLIENTS}`] ?? nothing
  const perSecond = count / seconds / 2
  const { latenciesMs } = await ask({ connections: CLIENTS, seconds: LATENCY_SECONDS, perSecond })
  tellLatency(latenciesMs, perSecond)
  for (const family of ['bitcoin', 'evm'] as const) tellRefill(family)
}

async function slicePgbench(ground: Ground, connections: number): Promise<Work> {
  await ground.settle()
  const before = ground.postgresMicroseconds() + endedChildrenMicroseconds()
  const done = await runPgbench(pgbench, ground.pgbenchUrl, { connections, seconds: SECONDS })
  const cpuMicroseconds = ground.postgresMicroseconds() + endedChildrenMicroseconds() - before
  return { ...done, cpuMicroseconds }
}

async function sliceService(
  ground: Ground,
  server: ServerProcess,
  ask: Ask,
  connections: number,
): Promise<Work> {
  await ground.settle()
  const used = async () => (await server.cpuMicroseconds()) + ground.postgresMicroseconds()
  const before = await used()
  const { count, seconds } = await ask({ connections, seconds: SECONDS })
  const cpuMicroseconds = (await used()) - before
  created += count
  await refuseWhatIsNotThere(ground, created)
  return { count, cpuMicroseconds, seconds }
}

/** Fast is only what is also there: each order that was answered, with everything that belongs to it. */
async function refuseWhatIsNotThere(ground: Ground, answered: number): Promise<void> {
  const [whole] = await ground.rows<{ count: string }>(
    `SELECT count(*) FROM orders o JOIN events USING (bucket, order_id) JOIN facts USING (bucket, order_id)
     JOIN retry_slots USING (order_id) JOIN addresses a ON a.order_id = o.order_id AND a.address = o.deposit_address`,
  )
  if (Number(whole?.count) !== answered)
    throw new Error(`${answered} were answered, ${whole?.count} are there`)
}

function tellRatio(
  work: Readonly<Record<string, Work>>,
  clients: number,
  connections: number,
  limit?: { readonly atLeast: number },
): void {
  const ours = work[`service ${clients}`] ?? nothing
  const theirs = work[`pgbench ${connections}`] ?? nothing
  const [perSecond, baseline] = [ours.count / ours.seconds, theirs.count / theirs.seconds]
  const name = `POST /v1/order/create, ${clients} clients, against pgbench on ${connections} connections`
  tell({
    name,
    value: perSecond / baseline,
    unit: 'times the orders a second',
    ...(limit && { limit }),
    detail: `${Math.round(perSecond)} a second, pgbench ${Math.round(baseline)}, while the service's clients want the same processors`,
  })
  tell({
    name,
    value: microsecondsEach(theirs) / microsecondsEach(ours),
    unit: 'times the orders for the same processor time',
    ...(limit && { limit }),
    detail: `${Math.round(microsecondsEach(ours))} µs an order (api and PostgreSQL), pgbench ${Math.round(microsecondsEach(theirs))} µs (pgbench and PostgreSQL)`,
  })
}

/** What the pool was filled with beforehand costs too: the signer's time, in another process and ahead of need. */
function tellRefill(family: KeyedFamily): void {
  const keys = deriveKeys(Buffer.alloc(64, 1), { bitcoin: 'regtest', xrpNetworkId: 1 })
  const addresses = 500
  const derive = (from: number) => {
    for (let index = from; index < from + addresses; index += 1)
      keys.address(family, { purpose: 'deposit', index })
  }
  derive(0)
  const before = process.cpuUsage()
  derive(addresses)
  const { user, system } = process.cpuUsage(before)
  const microseconds = (user + system) / addresses
  tell({
    name: `Deriving a ${family} address for the pool`,
    value: microseconds,
    unit: 'µs of processor',
    detail: `${Math.round(1_000_000 / microseconds)} a second on one core`,
  })
}

function tellLatency(latenciesMs: readonly number[], perSecond: number): void {
  const at = (share: number) => latenciesMs[Math.floor((latenciesMs.length - 1) * share)] ?? Number.NaN
  tell({
    name: 'POST /v1/order/create, 99 of 100 are answered within, at half of that load',
    value: at(0.99),
    unit: 'ms',
    detail: `at ${Math.round(perSecond)} a second: half within ${at(0.5).toFixed(1)} ms, the slowest ${at(1).toFixed(1)} ms`,
  })
}

async function startLoader() {
  const child = fork(fileURLToPath(new URL('create/loader.ts', import.meta.url)))
  const answer = () =>
    new Promise<unknown>((resolve, reject) => {
      const died = (code: number | null) => reject(new Error(`the loader ended with ${code}`))
      child.once('exit', died)
      child.once('message', (message) => {
        child.off('exit', died)
        resolve(message)
      })
    })
  await answer()
  return {
    run: async (load: Load): Promise<Loaded> => {
      child.send(load)
      return (await answer()) as Loaded
    },
    end: () => child.disconnect(),
  }
}
