/** Nobody can say what Horizon did with the request: no answer, half an answer, or not an answer of a Horizon. */
export class NoAnswer extends Error {
  constructor(what: string, reason: string) {
    super(`Horizon gave no answer to ${what}: ${reason}`)
    this.name = 'NoAnswer'
  }
}

export type Fields = Readonly<Record<string, unknown>>

export type Horizon = {
  /** What is at `path`, or null when Horizon itself says that there is no such thing. Rejects with NoAnswer. */
  get(path: string): Promise<Fields | null>
  /** Hands on an envelope in base64, and tells at once what became of it; whatever the status, if it is JSON. */
  submit(envelope: string): Promise<Fields>
}

const NOT_FOUND = 'https://stellar.org/horizon-errors/not_found'

/**
 * The few resources that are needed, over HTTP. Messages of errors never carry the address, which may have a password in
 * it.
 */
export function connect(horizonUrl: string, timeoutMs: number): Horizon {
  const base = new URL(horizonUrl)
  const credentials = `${decodeURIComponent(base.username)}:${decodeURIComponent(base.password)}`
  const authorization = `Basic ${Buffer.from(credentials).toString('base64')}`
  const headers = { accept: 'application/json', ...(base.username !== '' && { authorization }) }
  base.username = ''
  base.password = ''
  const root = base.href.replace(/\/$/, '')

  return {
    get: async (path) => {
      const { status, body } = await ask(`${root}${path}`, { headers }, timeoutMs, path)
      if (status === 200) return body
      // A gateway may say 404 as well, and means itself.
      if (status === 404 && body.type === NOT_FOUND) return null
      throw new NoAnswer(path, `HTTP ${status} (${String(body.title ?? 'without a title')})`)
    },
    submit: async (envelope) => {
      const request = { method: 'POST', headers, body: new URLSearchParams({ tx: envelope }) }
      return (await ask(`${root}/transactions_async`, request, timeoutMs, 'transactions_async')).body
    },
  }
}

async function ask(
  url: string,
  request: RequestInit,
  timeoutMs: number,
  what: string,
): Promise<{ readonly status: number; readonly body: Fields }> {
  let status = 0
  let body: unknown
  try {
    const response = await fetch(url, {
      ...request,
      redirect: 'error',
      signal: AbortSignal.timeout(timeoutMs),
    })
    status = response.status
    body = JSON.parse(await response.text())
  } catch (error) {
    const isNoJson = error instanceof SyntaxError
    throw new NoAnswer(what, isNoJson ? `HTTP ${status} without JSON` : reasonOf(error))
  }
  if (!isObject(body)) throw new NoAnswer(what, 'the reply is no object')
  return { status, body }
}

export function isObject(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return 'unknown failure'
  const cause = error.cause instanceof Error ? ` (${error.cause.message})` : ''
  return `${error.name}: ${error.message}${cause}`
}
