import { CambistError } from './cambist_error.ts'
import { pause } from './pause.ts'
import type { Transport } from './transport.ts'
import type { OrderEvent } from './types.ts'

export type FollowOptions = {
  /** The last event that you have; unless told, all are given, from the first on. */
  readonly after?: number
  /** For whoever holds the order's token and has no API key. */
  readonly token?: string
  readonly signal?: AbortSignal
}

const RETURN_MS = 1_000

/** Reads the stream of an order's events, and comes back for the rest whenever it breaks off. */
export async function* followOrder(
  open: Transport['open'],
  path: string,
  { after = 0, token, signal }: FollowOptions,
): AsyncGenerator<OrderEvent, void, undefined> {
  for (let last = after; ; ) {
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
    if (response.status === 204 || response.body === null) return
    try {
      for await (const event of readEvents(response.body)) {
        last = event.data.sequence
        yield event
        if (event.data.status === 'DONE' || event.data.status === 'REFUNDED') return
      }
    } catch (error) {
      signal?.throwIfAborted()
      // Who reads on finds what was lost; a message that cannot be read would come again for ever.
      if (error instanceof SyntaxError) throw unreadable(error)
    }
    await pause(RETURN_MS, signal)
  }
}

/** https://html.spec.whatwg.org/multipage/server-sent-events.html#parsing-an-event-stream, as far as Cambist uses it. */
async function* readEvents(body: ReadableStream<Uint8Array>): AsyncGenerator<OrderEvent> {
  const decoder = new TextDecoder()
  let rest = ''
  for await (const chunk of body) {
    rest += decoder.decode(chunk, { stream: true })
    for (let end = rest.indexOf('\n\n'); end !== -1; end = rest.indexOf('\n\n')) {
      const data = rest
        .slice(0, end)
        .split('\n')
        .flatMap((line) => (line.startsWith('data: ') ? [line.slice('data: '.length)] : []))
      rest = rest.slice(end + 2)
      if (data.length > 0) yield JSON.parse(data.join('\n')) as OrderEvent
    }
  }
}

function unreadable(cause: SyntaxError): CambistError {
  const message = 'the stream carries something else than events'
  return new CambistError({ code: 'UNEXPECTED_ANSWER', status: 200, message, cause })
}
