/** The node understood and said no, in the words of java-tron. */
export class NodeRefusal extends Error {
  constructor(path: string, reason: string) {
    super(`the TRON node refused ${path}: ${reason}`)
    this.name = 'NodeRefusal'
  }
}

/** Nobody can say what the node did with the request: no answer, half an answer, or not an answer of a node. */
export class NoAnswer extends Error {
  constructor(path: string, reason: string) {
    super(`the TRON node gave no answer to ${path}: ${reason}`)
    this.name = 'NoAnswer'
  }
}

export function isNodeTrouble(error: unknown): error is Error {
  return error instanceof NodeRefusal || error instanceof NoAnswer
}

export type Fields = Readonly<Record<string, unknown>>

export type Rpc = {
  /** What the node tells, of its newest block (`wallet/…`) or of what is solid (`walletsolidity/…`). */
  get(path: string, query?: Readonly<Record<string, string>>): Promise<unknown>
  post(path: string, body: Fields): Promise<unknown>
}

/**
 * https://developers.tron.network/reference: one question, one answer. Answers carry nothing of the question, so whoever
 * asks has to look whether they fit. Messages of errors never carry the address, which may have a password in it.
 */
export function connect(rpcUrl: string, timeoutMs: number): Rpc {
  const base = new URL(rpcUrl)
  const credentials = `${decodeURIComponent(base.username)}:${decodeURIComponent(base.password)}`
  const headers = {
    'content-type': 'application/json',
    ...(base.username !== '' && { authorization: `Basic ${Buffer.from(credentials).toString('base64')}` }),
  }
  base.username = ''
  base.password = ''
  const urlOf = (path: string) => new URL(`${base.pathname.replace(/\/$/, '')}/${path}`, base)
  return {
    get: (path, query = {}) => {
      const url = urlOf(path)
      for (const [name, value] of Object.entries(query)) url.searchParams.set(name, value)
      return ask(url, { method: 'GET', headers }, timeoutMs, path)
    },
    post: (path, body) =>
      ask(urlOf(path), { method: 'POST', headers, body: JSON.stringify(body) }, timeoutMs, path),
  }
}

async function ask(url: URL, request: RequestInit, timeoutMs: number, path: string): Promise<unknown> {
  let status = 0
  let answer: unknown
  try {
    const response = await fetch(url, {
      ...request,
      redirect: 'error',
      signal: AbortSignal.timeout(timeoutMs),
    })
    status = response.status
    answer = JSON.parse(await response.text())
  } catch (error) {
    throw new NoAnswer(path, error instanceof SyntaxError ? `HTTP ${status} without JSON` : reasonOf(error))
  }
  if (status !== 200) throw new NoAnswer(path, `HTTP ${status}`)
  if (isObject(answer) && typeof answer.Error === 'string') throw new NodeRefusal(path, answer.Error)
  return answer
}

export function isObject(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return 'unknown failure'
  const cause = error.cause instanceof Error ? ` (${error.cause.message})` : ''
  return `${error.name}: ${error.message}${cause}`
}
