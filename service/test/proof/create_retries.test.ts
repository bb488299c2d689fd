import { randomUUID } from 'node:crypto'
import { request as openRequest } from 'node:http'
import { setTimeout as pause } from 'node:timers/promises'
import type { CreatedOrder } from '@cambist/sdk'
import { expect } from 'vitest'
import { type Chance, chanceFrom } from '../harness/chance.ts'
import { quickPair } from '../harness/orders.ts'
import type { TestSandbox } from '../harness/test_sandbox.ts'
import { openWire, type Wire } from '../harness/wire.ts'
import { type Cut, type CutLine, openCutLine } from './cut_line.ts'
import { inSandbox } from './in_sandbox.ts'
import { prove } from './prove.ts'

/**
 * What: however often a client has to send the same creation again because its line broke, it is one order, and the
 * client gets the answer that it would have got at once.
 * How: two processes of the real service behind lines over TCP that are cut after any byte of a request or an answer;
 * some clients repeat under an Idempotency-Key, the others send the same signed bytes again. Some lines hold.
 */
prove('a creation that is cut off anywhere and sent again is one order', async ({ seed, sized, figure }) => {
  const count = sized({ short: 300, long: 10_000 })
  const chance = chanceFrom(seed)
  await inSandbox({ policy: { poolSize: 400 } }, async (sandbox) => {
    const other = await sandbox.startAnother(['api'])
    const cutNext = () => (chance.happens(CUT_SHARE) ? someCut(chance) : null)
    const lines = [await openCutLine(sandbox.baseUrl, cutNext), await openCutLine(other.origin, cutNext)]
    try {
      const stage: Stage = {
        sandbox,
        wire: await openWire(sandbox),
        lines,
        chance,
        tries: 0,
        waits: 0,
        ended: [],
      }
      await Promise.all(Array.from({ length: AT_ONCE }, () => keepCreating(stage, count)))
      await expectOneOrderEach(stage, count)
      tell(stage, figure)
    } finally {
      for (const line of lines) await line.stop()
      await other.stop()
    }
  })
})

const AT_ONCE = 16
/** More than half, so that most need several tries. */
const CUT_SHARE = 0.6
/** A little longer than a request, and an answer, is. */
const REQUEST_BYTES = 900
const ANSWER_BYTES = 1_800

function someCut(chance: Chance): Cut {
  const side = chance.happens(0.5) ? 'request' : 'answer'
  const longest = side === 'request' ? REQUEST_BYTES : ANSWER_BYTES
  return { side, afterBytes: chance.below(longest), isHard: chance.happens(0.5) }
}

type Answer = { readonly status: number; readonly text: string; readonly isReplay: boolean }
type Creation = { readonly body: string; readonly key: string | null; readonly signedAt: string }
type Ended = { readonly creation: Creation; readonly answer: Answer; readonly order: CreatedOrder }

type Stage = {
  readonly sandbox: TestSandbox
  readonly wire: Wire
  readonly lines: readonly CutLine[]
  readonly chance: Chance
  readonly ended: Ended[]
  tries: number
  /** Answers that no address is ready: true, and to be asked again. */
  waits: number
  begun?: number
}

async function keepCreating(stage: Stage, count: number): Promise<void> {
  while ((stage.begun ?? 0) < count) {
    stage.begun = (stage.begun ?? 0) + 1
    const creation = await newCreation(stage)
    const answer = await createSomehow(stage, creation)
    if (answer.status !== 200) throw new Error(`a creation was refused: ${answer.text}`)
    const order = (JSON.parse(answer.text) as { data: CreatedOrder }).data
    if (stage.ended.length < TOKENS_WATCHED) stage.sandbox.addSecret(order.token)
    stage.ended.push({ creation, answer, order })
  }
}

/** The log is searched for each of them. */
const TOKENS_WATCHED = 20

async function newCreation({ sandbox, chance }: Stage): Promise<Creation> {
  const destination = await sandbox.devnet.freshAddress('BNB')
  const body = JSON.stringify({ ...quickPair, amount: 432.1, rate_type: 'float', destination })
  const key = chance.happens(0.5) ? randomUUID() : null
  return { body, key, signedAt: String(Math.floor(Date.now() / 1_000)) }
}

/** Again and again, until an answer has come through whole. */
async function createSomehow(stage: Stage, creation: Creation): Promise<Answer> {
  for (;;) {
    stage.tries += 1
    const line = stage.lines[stage.chance.below(stage.lines.length)]
    const answer = await send(stage, line?.url ?? '', creation)
    if (answer?.status === 503) {
      stage.waits += 1
      await pause(50)
    } else if (answer !== null) return answer
  }
}

/** Null: the line broke before the end of the answer. Under a key it is signed anew; without one the bytes are the same. */
function send({ wire }: Stage, origin: string, { body, key, signedAt }: Creation): Promise<Answer | null> {
  const target = '/v1/order/create'
  const given = key === null ? { timestamp: signedAt } : { headers: { 'Idempotency-Key': key } }
  const headers = {
    ...wire.headersFor('POST', target, body, given),
    'Content-Length': Buffer.byteLength(body),
  }
  return new Promise((resolve) => {
    const broken = () => resolve(null)
    const request = openRequest(origin + target, { method: 'POST', headers, agent: false }, (response) => {
      const chunks: Buffer[] = []
      response.on('data', (chunk: Buffer) => chunks.push(chunk))
      response.on('error', broken)
      response.on('end', () => {
        if (!response.complete) return broken()
        resolve({
          status: response.statusCode ?? 0,
          // Each process of a sandbox goes by its own port; an operator gives them one name.
          text: Buffer.concat(chunks)
            .toString()
            .replace(/http:\/\/127\.0\.0\.1:\d+/, 'https://one.name'),
          isReplay: response.headers['idempotent-replayed'] === 'true',
        })
      })
    })
    request.on('error', broken)
    request.end(body)
  })
}

async function expectOneOrderEach(stage: Stage, count: number): Promise<void> {
  const { sandbox, ended } = stage
  expect(new Set(ended.map(({ order }) => order.order_id)).size, 'every client has an order of its own').toBe(
    count,
  )
  for (const { creation, answer, order } of ended) {
    expect(order.destination).toBe((JSON.parse(creation.body) as { destination: string }).destination)
    const again = await send(stage, sandbox.baseUrl, creation)
    expect(again, order.order_id).toEqual({ ...answer, isReplay: true })
  }
  const [made] = await sandbox.rows(
    `SELECT (SELECT count(*) FROM orders) AS orders, (SELECT count(*) FROM retry_slots) AS slots,
       (SELECT count(*) FROM addresses WHERE order_id IS NOT NULL) AS addresses`,
  )
  expect(made).toEqual({ orders: count, slots: count, addresses: count })
}

function tell(
  { ended, lines, tries, waits }: Stage,
  figure: (what: string, value: number | string) => void,
): void {
  const total = (cuts: (line: CutLine) => number) => lines.reduce((sum, line) => sum + cuts(line), 0)
  figure('creations', ended.length)
  figure('orders', new Set(ended.map(({ order }) => order.order_id)).size)
  figure('tries', tries)
  figure(
    'cut within the request',
    total(({ cuts }) => cuts.inRequest),
  )
  figure(
    'cut between request and answer',
    total(({ cuts }) => cuts.beforeAnswer),
  )
  figure(
    'cut within the answer',
    total(({ cuts }) => cuts.inAnswer),
  )
  const lost = ended.filter(({ answer }) => answer.isReplay).length
  figure('whose first answer was lost', lost)
  figure('told to wait for an address', waits)
  expect(lost).toBeGreaterThan(0)
}
