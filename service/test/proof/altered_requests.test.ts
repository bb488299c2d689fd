import type { CreatedOrder, Order } from '@cambist/sdk'
import { beforeAll, expect, test } from 'vitest'
import type { ToldSecret } from '../../src/accounts/keys.ts'
import type { Answer } from '../../src/http/testing/answer.ts'
import { type Chance, chanceFrom } from '../harness/chance.ts'
import { createOrder, createUnderpaid, quickPair, statusesOf } from '../harness/orders.ts'
import { openRawLine, sayRaw } from '../harness/raw_line.ts'
import { useTestSandbox } from '../harness/test_sandbox.ts'
import { makeKey } from '../harness/wire.ts'
import { prove } from './prove.ts'
import {
  type Altered,
  alter,
  type SignedRequest,
  signRequest,
  toSendable,
  type Ways,
} from './requests/alterations.ts'
import { bytesOf, shellLine } from './requests/sendable.ts'
import { onlyWrittenDifferently, smuggled, type Told } from './requests/smuggled_requests.ts'

/**
 * What: a request that is not exactly what was signed, now and by whom it says, is never acted upon; nor is one that
 * two readers of HTTP could take for two different ones.
 * How: right requests are altered in one place and said as raw bytes to the real service. Whether it knew the caller is
 * read in its log, which names the key of every request that was proven; and the tables stay as they were.
 */
const given = useTestSandbox()
let port: number
let owner: ToldSecret
let attacker: ToldSecret
let untouched: CreatedOrder
let rescued: Order

beforeAll(async () => {
  const { baseUrl, account } = given()
  port = Number(new URL(baseUrl).port)
  owner = { keyId: account.api_key, secret: account.api_secret }
  attacker = await makeKey(given())
  untouched = await createOrder(given(), quickPair)
  const refund_address = await given().remote.freshAddress(quickPair.from_network)
  rescued = await createUnderpaid(given(), quickPair, '500', { refund_address })
})

type Parts = Pick<SignedRequest, 'method' | 'target' | 'body'>

const nothing = Buffer.alloc(0)

/** One of each kind that is worth altering. The third is refused, but by its owner: so it is known who asks. */
function rightParts(): readonly Parts[] {
  const wanted = { ...quickPair, amount: 1_234.5, rate_type: 'float', destination: untouched.destination }
  const order = `/v1/order/${untouched.order_id}`
  const rescue = `/v1/order/${rescued.order_id}/emergency`
  return [
    { method: 'POST', target: '/v1/order/create', body: Buffer.from(JSON.stringify(wanted)) },
    { method: 'GET', target: order, body: nothing },
    { method: 'GET', target: `${order}?b=x%20y&a=1+2`, body: nothing },
    { method: 'POST', target: rescue, body: Buffer.from('{"action":"continue","refund_address":null}') },
  ]
}

/** The keys that requests were proven with, by the id of the request, as the service has logged them. */
async function provenKeys(lastId: string): Promise<ReadonlyMap<string, string>> {
  return given().eventually('the log is written', () => {
    const lines = given()
      .logLines(0)
      .filter(({ msg }) => msg === 'request')
      .map(({ text }) => JSON.parse(text) as { request_id: string; key_id: string | null })
    if (!lines.some(({ request_id }) => request_id === lastId)) throw new Error('the last one is not there')
    return new Map(lines.flatMap(({ request_id: id, key_id: key }) => (key === null ? [] : [[id, key]])))
  })
}

/** What could have been changed by a request that was taken for a signed one. */
async function effects(): Promise<object> {
  const [counts] = await given().rows<object>(
    `SELECT (SELECT count(*) FROM orders) AS orders, (SELECT count(*) FROM events) AS events,
            (SELECT count(*) FROM facts) AS facts, (SELECT count(*) FROM retry_slots) AS slots`,
  )
  return counts ?? {}
}

/** More than the longest that a line waits: what was not answered is told in its own words. */
const PATIENCE_MS = 90_000

/** Says it, then asks for something that everybody may see and that ends the connection: so that it has an end. */
async function smuggle({ bytes }: Told): Promise<{ answers: readonly Answer[]; known: number }> {
  const [createParts, lookParts] = rightParts()
  if (createParts === undefined || lookParts === undefined) throw new Error('there are right requests')
  const captured = { create: signRequest(owner, createParts), look: signRequest(owner, lookParts) }
  const end = 'GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n'
  const answers = await sayRaw(port, Buffer.from(bytes(captured) + end, 'latin1'))
  const proven = await provenKeys(await askLast())
  return {
    answers: answers.filter(({ json }) => json?.data?.status !== 'ok'),
    known: answers.filter((answer) => isAccepted({ answer }, proven)).length,
  }
}

test.each(smuggled)('nobody is known by $what', { timeout: PATIENCE_MS }, async (told) => {
  const before = await effects()
  const { answers, known } = await smuggle(told)
  const statuses = answers.map(({ status }) => status)
  expect(known, statuses.join()).toBe(0)
  expect(statuses.filter((status) => status < 400 || status >= 500)).toEqual([])
  expect(await effects()).toEqual(before)
})

test.each(onlyWrittenDifferently)(
  'it is the signed request: $what',
  { timeout: PATIENCE_MS },
  async (told) => {
    const { answers, known } = await smuggle(told)
    expect([answers.map(({ status }) => status), known]).toEqual([[200], 1])
  },
)

type Said = Altered & { readonly number: number; readonly answer: Answer }

prove('no altered request is taken for a signed one', async ({ seed, sized, figure }) => {
  const count = sized({ short: 3_000, long: 50_000 })
  const before = await effects()
  const said: Said[] = []
  let number = 0
  await Promise.all(
    Array.from({ length: 16 }, async () => {
      const line = openRawLine(port)
      while (number < count) {
        number += 1
        said.push(await sayAltered(number, chanceFrom(seed, number)))
      }
      line.close()

      async function sayAltered(number: number, chance: Chance): Promise<Said> {
        const { right, ways } = chooseRight(chance)
        const altered = alter(right, chance, ways)
        const bytes = bytesOf(toSendable(altered.request))
        const isHead = altered.request.method === 'HEAD'
        const answer = await line.ask(bytes, { isHead }).catch((error) => {
          throw new Error(`${number}: ${altered.what}\n${shellLine(bytes, port)}`, { cause: error })
        })
        return { ...altered, number, answer }
      }
    }),
  )
  const proven = await provenKeys(await askLast())
  const accepted = said.filter((one) => isAccepted(one, proven))
  figure('altered requests', said.length)
  figure('kinds of alterations', new Set(said.map(({ what }) => what)).size)
  figure('accepted', accepted.length)
  expect(accepted.map(show)).toEqual([])
  expect(said.filter(({ answer }) => answer.status < 400 || answer.status >= 500).map(show)).toEqual([])
  expect(await effects()).toEqual(before)
})

function chooseRight(chance: Chance): { readonly right: SignedRequest; readonly ways: Ways } {
  const requests = rightParts().map((parts) => signRequest(owner, parts))
  const right = chance.pick(requests)
  return { right, ways: { owner, attacker, others: requests.filter((each) => each !== right) } }
}

/** The id of a request that comes after all others. */
async function askLast(): Promise<string> {
  const line = openRawLine(port)
  const { headers } = await line.ask(Buffer.from('GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n'))
  line.close()
  return headers.get('x-request-id') ?? ''
}

/** Who signed rightly at another time is known and still refused; to be known is too much for all others. */
function isAccepted({ answer }: { readonly answer: Answer }, proven: ReadonlyMap<string, string>): boolean {
  const isKnown = proven.has(answer.headers.get('x-request-id') ?? '')
  return isKnown && answer.json?.error_code !== 'TIMESTAMP_EXPIRED'
}

function show({ number, what, request, answer }: Said): string {
  const told = `${answer.status} ${answer.text.slice(0, 200)}`
  return `${number}: ${what}: ${told}\n${shellLine(bytesOf(toSendable(request)), port)}`
}

test('the order that all this was about is still to be rescued, and its owner can', async () => {
  expect((await statusesOf(given(), rescued.order_id)).at(-1)).toBe('EMERGENCY')
  const [, , , parts] = rightParts()
  if (parts === undefined) throw new Error('there are right requests')
  const line = openRawLine(port)
  const answer = await line.ask(bytesOf(toSendable(signRequest(owner, parts))))
  line.close()
  expect([answer.status, answer.json.data.order_id]).toEqual([200, rescued.order_id])
})
