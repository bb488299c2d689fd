import { createHash, timingSafeEqual } from 'node:crypto'
import { CutLine, type Endpoint, type HttpReply, type HttpRequest } from '../simulated/server.ts'
import { chainCommands } from './chain_commands.ts'
import { miningCommands } from './mining_commands.ts'
import type { BitcoinNode, Command, Params } from './node.ts'
import { codes, NodeError } from './node_error.ts'
import { transactionCommands } from './transaction_commands.ts'
import { walletCommands } from './wallet_commands.ts'

const nodeCommands: Readonly<Record<string, Command>> = {
  ...chainCommands,
  ...transactionCommands,
  ...miningCommands,
}

/** JSON-RPC as bitcoind speaks it, to whoever has the password. */
export function bitcoinEndpoint(node: BitcoinNode, credentials: string): Endpoint {
  const expected = `Basic ${Buffer.from(credentials).toString('base64')}`
  return {
    http: async (request) => {
      if (request.method !== 'POST') return page(405, 'JSONRPC server handles only POST requests')
      if (!isSame(request.headers.authorization ?? '', expected)) return page(401, '')
      const [, wallet] = /^\/(?:wallet\/([^/]*))?$/.exec(request.url.pathname) ?? []
      if (request.url.pathname !== '/' && wallet === undefined) return page(404, '')
      return answer(node, request, wallet)
    },
  }
}

/** One call, without a line that troubles could cut. Throws NodeError. */
export function call(node: BitcoinNode, method: string, params: Params, wallet?: string): unknown {
  const command = commandOf(nodeCommands, method)
  if (command !== undefined) return command(node, params)
  const ofWallet = commandOf(walletCommands, method)
  if (ofWallet === undefined) throw new NodeError(codes.unknownMethod, 'Method not found')
  if (wallet !== undefined && wallet !== 'miner')
    throw new NodeError(codes.noWallet, 'Requested wallet does not exist or is not loaded')
  return ofWallet(node, params)
}

function commandOf(commands: Readonly<Record<string, Command>>, method: string): Command | undefined {
  return Object.hasOwn(commands, method) ? commands[method] : undefined
}

type Reply = { readonly body: object; readonly status: number }

function answer(node: BitcoinNode, { body }: HttpRequest, wallet: string | undefined): HttpReply {
  let asked: unknown
  try {
    asked = JSON.parse(body)
  } catch {
    return json(500, legacyError(new NodeError(codes.parse, 'Parse error'), null))
  }
  if (Array.isArray(asked)) {
    return json(
      200,
      asked.map((one) => replyTo(node, one, wallet).body),
    )
  }
  const reply = replyTo(node, asked, wallet)
  return json(reply.status, reply.body)
}

function replyTo(node: BitcoinNode, asked: unknown, wallet: string | undefined): Reply {
  const isObject = typeof asked === 'object' && asked !== null
  const { id = null, jsonrpc, method, params = [] } = (isObject ? asked : {}) as Record<string, unknown>
  const isModern = jsonrpc === '2.0'
  try {
    if (!isObject) throw new NodeError(codes.invalidRequest, 'Invalid Request object')
    if (method === undefined) throw new NodeError(codes.invalidRequest, 'Missing method')
    if (typeof method !== 'string') throw new NodeError(codes.invalidRequest, 'Method must be a string')
    // The real node also takes them by name.
    if (!Array.isArray(params)) throw new NodeError(codes.invalidRequest, 'Params must be an array')
    const result = call(node, method, params, wallet) ?? null
    return { status: 200, body: isModern ? { jsonrpc, result, id } : { result, error: null, id } }
  } catch (error) {
    if (error instanceof CutLine) throw error
    const problem = error instanceof NodeError ? error : new NodeError(codes.misc, String(error))
    const { code, message } = problem
    if (isModern) return { status: 200, body: { jsonrpc, error: { code, message }, id } }
    const statuses: Record<number, number> = { [codes.invalidRequest]: 400, [codes.unknownMethod]: 404 }
    return { status: statuses[code] ?? 500, body: legacyError(problem, id) }
  }
}

function legacyError({ code, message }: NodeError, id: unknown): object {
  return { result: null, error: { code, message }, id }
}

function json(status: number, body: unknown): HttpReply {
  return { status, type: 'application/json', body: `${JSON.stringify(body)}\n` }
}

function page(status: number, body: string): HttpReply {
  return { status, type: 'text/html; charset=ISO-8859-1', body }
}

function isSame(given: string, expected: string): boolean {
  const digest = (text: string) => createHash('sha256').update(text).digest()
  return timingSafeEqual(digest(given), digest(expected))
}
