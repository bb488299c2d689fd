import { readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { afterAll, beforeAll, beforeEach, expect, onTestFailed, test } from 'vitest'
import { LOOKS_REMEMBERED_MAX } from '../../src/engine/desks/order_looks.ts'
import { conformity } from '../../src/http/testing/conformity.ts'
import { sandboxRemote } from '../../src/sandbox/remote.ts'
import { readDocument } from '../harness/conforming_fetch.ts'
import { eventually } from '../harness/eventually.ts'
import { type ProbedSandbox, startProbedSandbox } from '../harness/probed_sandbox.ts'
import { prove } from './prove.ts'
import { makeCrowd, tellAddresses } from './requests/crowd.ts'
import { type KnownExchange, learnExchange } from './requests/known_exchange.ts'
import { readOperations } from './requests/operations.ts'
import { onlyRefused } from './requests/owner_requests.ts'
import { startRequestRun } from './requests/request_run.ts'
import { type Leak, openSearch } from './secrets/secret_search.ts'

/**
 * What: whatever is asked, right or wrong or made of random bytes, the service answers as its OpenAPI document says and
 * never with a failure of its own, does not stop for it, and forgets it.
 * How: `npm start` in a process of its own. Requests are generated from the document that it serves, spoiled in one
 * place or not at all, signed when they are complete, and said as raw bytes over several lines at once; every answer is
 * held against the document. A probe inside that process tells of its event loop and of its heap. What the service
 * remembers of orders and addresses up to a bound is full before a long run begins, so that only what has no bound can
 * grow.
 */
let sandbox: ProbedSandbox

beforeAll(async () => {
  sandbox = await startProbedSandbox()
  // Loading stops the loop and fills the heap, once, and right after the start.
  await eventually('everything is loaded', () => {
    expect(logged(INFO).join('\n')).toContain('what signing needs is loaded')
  })
})

afterAll(() => sandbox?.stop())

beforeEach(() => {
  onTestFailed(() => console.error(logged(WARNING).slice(-40).join('\n')))
})

const STALL_MS_MAX = 200
const GROWTH_BYTES_MAX = 8 * 2 ** 20
/** By viem. */
const ADDRESSES_REMEMBERED_MAX = 8_192
/** The last of the requests come while prices, time and chains are driven to their ends. */
const WILD_SHARE = 0.04

prove('every generated request is answered as the OpenAPI document says', async ({ seed, sized, figure }) => {
  const known = await learn()
  const document = await readDocument(sandbox.file.base_url)
  const setting = { port: sandbox.port, seed, operations: readOperations(document), known }
  const crowd = sized({ short: 0, long: LOOKS_REMEMBERED_MAX })
  await makeCrowd(crowd, setting)
  await tellAddresses(sized({ short: 0, long: ADDRESSES_REMEMBERED_MAX + 500 }), setting)
  const run = startRequestRun({ ...setting, conforms: conformity(document) })
  const count = sized({ short: 5_000, long: 100_000 })
  await sandbox.begin()
  await run.say(count * 0.2)
  const early = { heap: await leastHeap(), chains: chainBytes() }
  await run.say(count * (0.8 - WILD_SHARE))
  const late = { heap: await leastHeap(), chains: chainBytes() }
  await run.say(count * WILD_SHARE, 'wild')
  const { ownStallMs, wallStallMs } = await sandbox.read()

  const counts = [...run.counts]
  figure('orders looked at before', crowd)
  figure('requests', count)
  figure('operations', counts.length)
  figure(
    'done',
    counts.reduce((sum, [, { done }]) => sum + done, 0),
  )
  figure(
    'refused',
    counts.reduce((sum, [, { refused }]) => sum + refused, 0),
  )
  figure('longest stall of the event loop', `${Math.round(ownStallMs)} ms`)
  figure('with waiting for a processor', `${Math.round(wallStallMs)} ms`)
  figure('heap after a fifth and at the end', `${inMb(early.heap)} and ${inMb(late.heap)} MB`)
  figure('of that the simulated chains', `${inMb(early.chains)} and ${inMb(late.chains)} MB`)
  expect([...run.faults.values()].slice(0, 40).join('\n\n'), `${run.faults.size} kinds of faults`).toBe('')
  const isBoth = ([id, { done, refused }]: (typeof counts)[number]) =>
    (done > 0 || onlyRefused.includes(id)) && refused > 0
  expect(counts.filter((each) => !isBoth(each))).toEqual([])
  expect(ownStallMs).toBeLessThan(STALL_MS_MAX)
  expect(late.heap - late.chains - (early.heap - early.chains)).toBeLessThan(GROWTH_BYTES_MAX)
  expect(logged(ERROR)).toEqual([])
  expect(secretsLogged(known)).toEqual([])
})

const LOOKS = 5

/** Two looks in a row differ by more than a megabyte, though nothing happens between them: what is left is the least of some. */
async function leastHeap(): Promise<number> {
  let least = Number.POSITIVE_INFINITY
  for (let look = 0; look < LOOKS; look += 1) {
    least = Math.min(least, (await sandbox.read()).heapBytes)
    await pause(200)
  }
  return least
}

/**
 * Networks that are simulated are simulated in the same process, and keep every block that they have made, as real nodes
 * do. What they write of it to their files (as JSON, somewhat shorter than in memory) is theirs, not the service's.
 */
function chainBytes(): number {
  const files = Object.keys(sandbox.file.networks).map((network) =>
    statSync(join(sandbox.dataDir, 'devnet', network.toLowerCase(), 'chain.jsonl'), {
      throwIfNoEntry: false,
    }),
  )
  return files.reduce((sum, file) => sum + (file?.size ?? 0), 0)
}

async function learn(): Promise<KnownExchange> {
  const { api_key: keyId, api_secret: secret, base_url: baseUrl } = sandbox.file
  // A block is reorganised now and then, and that should not be the one that the reserves came in.
  for (const network of ['BTC', 'ETH', 'BNB', 'TRX']) await sandboxRemote(baseUrl).mine(network, 3)
  return learnExchange(baseUrl, { own: { keyId, secret }, other: await sandbox.makeKey('Another') })
}

function secretsLogged({ keys, orders }: KnownExchange): Leak[] {
  const tokens = orders.map(({ token }) => token)
  const secrets = [sandbox.file.webhook_secret, keys.own.secret, keys.other.secret, ...tokens]
  return openSearch(secrets)(logged(0).join('\n'))
}

const INFO = 30
const WARNING = 40
const ERROR = 50

function logged(levelMin: number): string[] {
  const lines = readFileSync(join(sandbox.dataDir, 'service.log'), 'utf8').split('\n')
  return lines.filter((line) => Number(/^\{"level":(\d+),/.exec(line)?.[1] ?? 0) >= levelMin)
}

function inMb(bytes: number): string {
  return (bytes / 2 ** 20).toFixed(1)
}

test('a stalled loop and hoarded memory are seen', async () => {
  const before = await sandbox.read()
  await sandbox.spoil('stall')
  await sandbox.spoil('hoard')
  const after = await sandbox.read()
  expect(after.ownStallMs).toBeGreaterThan(STALL_MS_MAX)
  expect(after.heapBytes - before.heapBytes).toBeGreaterThan(GROWTH_BYTES_MAX)
})
