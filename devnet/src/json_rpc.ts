/** One call to a node. Parameters and results are the node's own; see its documentation. */
export type Rpc = <T = unknown>(method: string, params?: readonly unknown[]) => Promise<T>

export class RpcError extends Error {
  readonly code: number
  constructor(method: string, code: number, message: string) {
    super(`${method}: ${message}`)
    this.code = code
  }
}

/** `rpcUrl` may carry credentials, which `fetch` refuses in a URL and takes in a header. */
export function connectRpc(rpcUrl: string): Rpc {
  const url = new URL(rpcUrl)
  const headers: Record<string, string> = { 'content-type': 'application/json' }
  if (url.username !== '') {
    const plain = `${decodeURIComponent(url.username)}:${decodeURIComponent(url.password)}`
    headers.authorization = `Basic ${Buffer.from(plain).toString('base64')}`
  }
  url.username = ''
  url.password = ''
  return async <T>(method: string, params: readonly unknown[] = []) => {
    const response = await fetch(url, {
      method: 'POST',
      headers,
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
      signal: AbortSignal.timeout(60_000),
    })
    const text = await response.text()
    if (text === '') throw new RpcError(method, response.status, `HTTP ${response.status}`)
    const answer = JSON.parse(text) as { result?: T; error?: { code: number; message: string } | null }
    if (answer.error) throw new RpcError(method, answer.error.code, answer.error.message)
    return answer.result as T
  }
}
