import { CambistError } from './cambist_error.ts'
import { isOrderEvent, STATUS_CHANGED } from './order_event.ts'
import { pause } from './pause.ts'
import { mayPass, type Transport } from './transport.ts'
import type { OrderEvent } from './types.ts'

export type FollowOptions = {
  /** The last event that you have; unless told, all are given, from the first on. */
  readonly after?: number
  /** For whoever holds the order's token and has no API key. */
  readonly token?: string
  readonly signal?: AbortSignal
}

/** At the latest, at first: a restart of the service cuts all lines at once, and all would come back at once. */
const RETURN_MS = 2_000
const RETURN_MS_MAX = 8_000
/** Asked to wait longer, we come back all the same. */
const ASKED_MS_MAX = 60_000
/** The service says something every 15 s. A line that died without a word looks like an order to which nothing happens. */
const SILENCE_MS_MAX = 45_000

/**
 * Reads the stream of an order's events, and comes back for the rest whenever it breaks off, however long the service is
 * away, and whatever answers in its place. Only before the first one began, that is told, when the client's repetitions are used up.
 * Events of types that it does not know are passed over.
 */
export async function* followOrder(
  open: Transport['open'],
  path: string,
  { after = 0, token, signal }: FollowOptions,
): AsyncGenerator<OrderEvent, void, undefined> {
  let last = after
  const ask = async () => {
    const response = await open({
      method: 'GET',
      path,
      isSigned: token === undefined,
      headers: {
        Accept: 'text/event-stream',
        'Last-Event-ID': String(last),
        ...(token !== undefined && { 'X-ORDER-TOKEN': token }),
      },
      signal,
    })
    if (response.status === 204 || isStream(response)) return response
    response.body?.cancel().catch(() => {})
    throw unreadable(response.status)
  }
  for (let response = await ask(); ; response = await comeBack(ask, signal)) {
    if (response.status === 204 || response.body === null) return
    for await (const { id, type, data } of readMessages(response.body)) {
      // Of what is passed over too: it need not come again.
      last = id ?? last
      const event = type === STATUS_CHANGED && data !== '' ? parseEvent(data, response.status) : null
      if (!isOrderEvent(event)) continue
      yield event
      if (event.data.status === 'DONE' || event.data.status === 'REFUNDED') return
    }
  }
}

/** After what we are asked to wait, at random between a quarter of `latestMs` and all of it. */
async function comeBack(ask: () => Promise<Response>, signal: AbortSignal | undefined): Promise<Response> {
  let askedMs = 0
  for (let latestMs = RETURN_MS; ; latestMs = Math.min(latestMs * 2, RETURN_MS_MAX)) {
    await pause(askedMs + latestMs * (1 + 3 * Math.random()) * 0.25, signal)
    try {
      return await ask()
    } catch (error) {
      if (!(error instanceof CambistError) || !isAway(error)) throw error
      askedMs = Math.min(error.retryAfterMs ?? 0, ASKED_MS_MAX)
    }
  }
}

/** What answers in place of the service, such as a proxy while it is being replaced, says nothing of the order; unless it refuses us. */
function isAway(error: CambistError): boolean {
  const isRefused = error.status === 401 || error.status === 403
  return mayPass(error) || (error.code === 'UNEXPECTED_ANSWER' && !isRefused)
}

/** A page that comes with 200 would otherwise look like an order to which nothing happens. */
function isStream({ headers }: Response): boolean {
  return headers.get('content-type')?.startsWith('text/event-stream') === true
}

type Message = { readonly id: number | null; readonly type: string; readonly data: string }

/** https://html.spec.whatwg.org/multipage/server-sent-events.html#parsing-an-event-stream, as far as Cambist uses it. */
async function* readMessages(body: ReadableStream<Uint8Array>): AsyncGenerator<Message> {
  const decoder = new TextDecoder()
  let rest = ''
  for await (const chunk of chunksOf(body)) {
    rest += decoder.decode(chunk, { stream: true })
    for (let end = rest.indexOf('\n\n'); end !== -1; end = rest.indexOf('\n\n')) {
      yield readMessage(rest.slice(0, end).split('\n'))
      rest = rest.slice(end + 2)
    }
  }
}

function readMessage(lines: readonly string[]): Message {
  const valuesOf = (field: string) =>
    lines.flatMap((line) => (line.startsWith(`${field}: `) ? [line.slice(field.length + 2)] : []))
  const id = valuesOf('id').at(-1) ?? ''
  return {
    // The service takes no other one back.
    id: /^\d{1,9}$/.test(id) ? Number(id) : null,
    type: valuesOf('event').at(-1) ?? 'message',
    data: valuesOf('data').join('\n'),
  }
}

/** One that cannot be read would come again for ever. */
function parseEvent(data: string, status: number): unknown {
  try {
    return JSON.parse(data)
  } catch (error) {
    throw unreadable(status, error)
  }
}

/**
 * Ends when the line breaks, or nothing comes for too long: who reads on finds what was lost. However it is left, the line is
 * let go.
 */
async function* chunksOf(body: ReadableStream<Uint8Array>): AsyncGenerator<Uint8Array> {
  const reader = body.getReader()
  try {
    for (;;) {
      const { done, value } = await soonEnough(reader.read()).catch(() => over)
      if (done) return
      yield value
    }
  } finally {
    // Not waited for: what has broken says so again, and what is silent says nothing.
    reader.cancel().catch(() => {})
  }
}

const over = { done: true, value: undefined } as const

function soonEnough<Value>(reading: Promise<Value>): Promise<Value> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error('the stream has gone silent')), SILENCE_MS_MAX)
    reading.then(resolve, reject).finally(() => clearTimeout(timer))
  })
}

function unreadable(status: number, cause?: unknown): CambistError {
  const message = 'the answer carries something else than events'
  return new CambistError({ code: 'UNEXPECTED_ANSWER', status, message, cause })
}
