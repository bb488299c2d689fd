import { type Conformity, conformity } from '../../src/http/testing/conformity.ts'
import type { Answer } from '../../src/http/testing/harness.ts'

export type ConformingFetch = {
  /** As `fetch`, but an answer that is not what the served document promises throws. */
  readonly fetch: typeof fetch
  /** How many answers were held against the document. */
  checked(): number
}

/** Holds every answer against the /openapi.json that the service itself serves; asked for at the first call. */
export function conformingFetch(baseUrl: string): ConformingFetch {
  let conforms: Promise<Conformity> | undefined
  let checked = 0
  return {
    checked: () => checked,
    fetch: async (input, init) => {
      const url = input instanceof Request ? new URL(input.url) : new URL(input)
      const response = await fetch(url, init)
      const answer = await readAnswer(response.clone())
      conforms ??= readDocument(baseUrl).then(conformity)
      const check = await conforms
      check(init?.method ?? 'GET', url.pathname + url.search, answer)
      checked += 1
      return response
    },
  }
}

export async function readDocument(baseUrl: string): Promise<Readonly<Record<string, unknown>>> {
  return (await (await fetch(`${baseUrl}/openapi.json`)).json()) as Readonly<Record<string, unknown>>
}

export async function readAnswer(response: Response): Promise<Answer> {
  const bytes = Buffer.from(await response.arrayBuffer())
  const text = bytes.toString()
  const isJson = response.headers.get('content-type')?.startsWith('application/json') && text !== ''
  return {
    status: response.status,
    headers: response.headers,
    bytes,
    text,
    json: isJson ? JSON.parse(text) : undefined,
  }
}
