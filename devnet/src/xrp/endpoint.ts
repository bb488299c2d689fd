import type { Included } from '../simulated/chain.ts'
import { CutLine, type Endpoint, jsonReply, type Line } from '../simulated/server.ts'
import { type ApiVersion, accountsIn, accountTransactionJson } from './answers.ts'
import { type Answer, CommandError, type Params, type XrpNode } from './command.ts'
import { commands, completeLedgers } from './commands.ts'
import { BASE_FEE, RESERVE_BASE, RESERVE_INCREMENT } from './reserves.ts'
import type { Ledger, Xrp } from './rules.ts'
import { resultJson } from './submit.ts'

type Subscription = { streams: Set<string>; accounts: Set<string>; version: ApiVersion }

/** JSON-RPC over HTTP and commands over WebSocket, on one port. */
export function xrpEndpoint(node: XrpNode): Endpoint {
  const listeners = new Map<Line, Subscription>()
  node.chain.onBlock((ledger) => {
    // Who is behind has not heard of it.
    if (node.told().head.height !== ledger.height) return
    for (const [line, subscription] of listeners) tell(node, line, subscription, ledger)
  })
  return {
    http: async ({ body }) => {
      const { method, params, id } = parse(body)
      const [given = {}] = (Array.isArray(params) ? params : []) as Params[]
      const { status, ...said } = answerTo(node, String(method), given, versionOf(given, 1))
      if (status === 'success') return jsonReply({ result: { ...(said.result as Answer), status }, id })
      return jsonReply({ result: { ...said, status }, id })
    },
    socket: (line) => {
      const subscription: Subscription = { streams: new Set(), accounts: new Set(), version: 2 }
      line.onClose(() => listeners.delete(line))
      return async (message) => {
        const { id, command, ...params } = parse(message)
        const version = versionOf(params, 1)
        const isSubscribing = command === 'subscribe' || command === 'unsubscribe'
        if (isSubscribing) {
          listeners.set(line, subscription)
          subscribe(subscription, command, params, version)
        }
        const said = isSubscribing
          ? { status: 'success', result: command === 'subscribe' ? ledgerNews(node, node.told().head) : {} }
          : answerTo(node, String(command), params, version)
        return JSON.stringify({ id, type: 'response', api_version: version, ...said })
      }
    },
  }
}

function parse(text: string): Answer {
  try {
    return JSON.parse(text) as Answer
  } catch {
    return {}
  }
}

function versionOf({ api_version }: Params, otherwise: ApiVersion): ApiVersion {
  return api_version === 1 || api_version === 2 ? api_version : otherwise
}

function answerTo(node: XrpNode, command: string, params: Params, version: ApiVersion): Answer {
  const request = { command, ...params }
  try {
    const run = Object.hasOwn(commands, command) ? commands[command] : undefined
    if (run === undefined) throw new CommandError('unknownCmd', 32, 'Unknown method.')
    return { status: 'success', result: run(node, params, version) }
  } catch (error) {
    if (error instanceof CutLine) throw error
    const { error: name, code, message, more } = error instanceof CommandError ? error : internalError(error)
    const isInvalid = name === 'invalidTransaction'
    const said = isInvalid ? { error_exception: message } : { error_code: code, error_message: message }
    return { status: 'error', error: name, ...said, ...more, request }
  }
}

function internalError(error: unknown): CommandError {
  return new CommandError('internal', 73, error instanceof Error ? error.message : String(error))
}

function subscribe(
  subscription: Subscription,
  command: 'subscribe' | 'unsubscribe',
  params: Params,
  version: ApiVersion,
): void {
  const change = command === 'subscribe' ? 'add' : 'delete'
  for (const stream of (params.streams ?? []) as string[]) subscription.streams[change](stream)
  for (const account of (params.accounts ?? []) as string[]) subscription.accounts[change](account)
  subscription.version = version
}

function tell(node: XrpNode, line: Line, subscription: Subscription, ledger: Ledger): void {
  const { streams, accounts, version } = subscription
  if (streams.has('ledger')) {
    const txn_count = ledger.included.length
    line.send(JSON.stringify({ type: 'ledgerClosed', ...ledgerNews(node, ledger), txn_count }))
  }
  for (const item of ledger.included) {
    const isWanted = streams.has('transactions') || !accountsIn(item.result).isDisjointFrom(accounts)
    if (isWanted) line.send(JSON.stringify(transactionNews(item, ledger, version)))
  }
}

function ledgerNews(node: XrpNode, ledger: Ledger): Answer {
  return {
    fee_base: Number(BASE_FEE),
    ledger_hash: ledger.seal.hash,
    ledger_index: ledger.height,
    ledger_time: ledger.seal.close_time,
    network_id: node.networkId(),
    reserve_base: Number(RESERVE_BASE),
    reserve_inc: Number(RESERVE_INCREMENT),
    validated_ledgers: completeLedgers(ledger),
  }
}

function transactionNews(item: Included<Xrp>, ledger: Ledger, version: ApiVersion): Answer {
  const { tx, ...rest } = accountTransactionJson(item, ledger, version)
  const said = version === 1 ? { transaction: tx } : {}
  return {
    type: 'transaction',
    status: 'closed',
    ...resultJson(item.result.TransactionResult),
    ...said,
    ...rest,
  }
}
