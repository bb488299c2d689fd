import { StrKey } from '@stellar/stellar-sdk/base'
import type { View } from '../simulated/chain.ts'
import type { Endpoint, HttpReply, HttpRequest, Line } from '../simulated/server.ts'
import {
  accountJson,
  feeStatsJson,
  findTransaction,
  type Json,
  ledgerJson,
  rootJson,
  transactionJson,
} from './answers.ts'
import { find, readWanted, type Wanted } from './collections.ts'
import { readAccount } from './entries.ts'
import type { StellarNode } from './node.ts'
import { badRequest, notFound, Problem } from './problem.ts'
import type { Stellar } from './rules.ts'
import { submit, submitAsync } from './submit.ts'

/** Horizon over HTTP: https://developers.stellar.org/docs/data/apis/horizon/api-reference */
export function stellarEndpoint(node: StellarNode): Endpoint {
  return {
    http: async (request) => {
      try {
        return await answer(node, request)
      } catch (error) {
        if (error instanceof Problem) return error.reply
        throw error
      }
    },
  }
}

function hal(json: Json, status = 200): HttpReply {
  return { status, type: 'application/hal+json; charset=utf-8', body: JSON.stringify(json) }
}

async function answer(node: StellarNode, request: HttpRequest): Promise<HttpReply> {
  const { method, url, body } = request
  const path = url.pathname.split('/').filter((part) => part !== '')
  if (method === 'POST') {
    if (url.pathname === '/transactions') return hal(await submit(node, body, url.origin))
    if (url.pathname !== '/transactions_async') throw notFound()
    const { status, json } = submitAsync(node, body)
    return { ...hal(json, status), type: 'application/json; charset=utf-8' }
  }
  const wanted = readPath(node, path, url)
  if (wanted === undefined) return hal(one(node, path, url.origin))
  if (request.headers.accept?.includes('text/event-stream')) return stream(node, wanted, request)
  return hal(page(node, wanted, url))
}

function one(node: StellarNode, [what, id, sub, name]: readonly string[], base: string): Json {
  const view = node.told()
  if (what === undefined) return rootJson(view, node.passphrase(), base)
  if (what === 'fee_stats') return feeStatsJson(view)
  if (id === undefined) throw notFound()
  if (what === 'accounts') {
    const account = readAccount(view.state, checkAccount(id))
    if (account === undefined) throw notFound()
    const json = accountJson(account, view, base)
    if (sub === undefined) return json
    const value = (json.data as Record<string, string>)[decodeURIComponent(name ?? '')]
    if (sub !== 'data' || value === undefined) throw notFound()
    return { value }
  }
  const ledger = what === 'ledgers' && sub === undefined ? view.block(Number(id)) : undefined
  if (ledger !== undefined) return ledgerJson(ledger, base)
  const found = what === 'transactions' && sub === undefined ? findTransaction(view, id) : undefined
  if (found !== undefined) return transactionJson(found, base, id)
  const operation =
    what === 'operations' && sub === undefined && /^\d{1,19}$/.test(id) ? BigInt(id) : undefined
  if (operation === undefined) throw notFound()
  const search = new URLSearchParams({ cursor: String(operation - 1n), limit: '1', include_failed: 'true' })
  const [item] = find(view, { ...readWanted(search, view), what: 'operations' })
  if (item?.order !== operation) throw notFound()
  return item.json(base)
}

function checkAccount(id: string): string {
  if (StrKey.isValidEd25519PublicKey(id)) return id
  throw badRequest('account_id', 'Account ID must start with `G` and contain 56 alphanum characters')
}

/** One that was merged has a history all the same. */
function checkHeardOf(view: View<Stellar>, account: string): string {
  if (readAccount(view.state, account) !== undefined) return account
  const everything = readWanted(new URLSearchParams({ limit: '1', include_failed: 'true' }), view)
  if (find(view, { ...everything, what: 'operations', account }).next().done) throw notFound()
  return account
}

/** undefined: not a collection. */
function readPath(node: StellarNode, path: readonly string[], url: URL): Wanted | undefined {
  const view = node.told()
  const [scope, id, sub] = path
  const what = path.length === 1 ? scope : path.length === 3 ? sub : undefined
  const isScope = path.length === 1 || ['accounts', 'ledgers', 'transactions'].includes(scope ?? '')
  if (!isScope || !isCollection(what)) return undefined
  const wanted = { ...readWanted(url.searchParams, view), what }
  if (path.length === 1 || id === undefined) return wanted
  if (scope === 'accounts') return { ...wanted, account: checkHeardOf(view, checkAccount(id)) }
  if (scope === 'ledgers' && view.block(Number(id)) !== undefined) return { ...wanted, height: Number(id) }
  const found = scope === 'transactions' ? findTransaction(view, id) : undefined
  if (found !== undefined) return { ...wanted, transaction: found.item.tx.id }
  throw notFound()
}

function isCollection(what: string | undefined): what is Wanted['what'] {
  return ['ledgers', 'transactions', 'operations', 'payments'].includes(what ?? '')
}

function page(node: StellarNode, wanted: Wanted, url: URL): Json {
  const items = [...find(node.told(), wanted)]
  const { order } = wanted
  const link = (cursor: string, direction: string) => {
    const href = new URL(url)
    for (const [key, value] of Object.entries({ cursor, limit: String(wanted.limit), order: direction }))
      href.searchParams.set(key, value)
    return { href: href.href }
  }
  const [first, last] = [items[0], items.at(-1)].map((item) => String(item?.order ?? wanted.cursor))
  return {
    _links: {
      self: link(url.searchParams.get('cursor') ?? '', order),
      next: link(last ?? '', order),
      prev: link(first ?? '', order === 'asc' ? 'desc' : 'asc'),
    },
    _embedded: { records: items.map((item) => item.json(url.origin)) },
  }
}

/** https://developers.stellar.org/docs/data/apis/horizon/api-reference/structure/streaming */
function stream(node: StellarNode, wanted: Wanted, { url, headers }: HttpRequest): HttpReply {
  const resumed = headers['last-event-id']
  let { cursor } = wanted
  if (typeof resumed === 'string' && /^\d{1,19}$/.test(resumed)) cursor = BigInt(resumed)
  const news = () => {
    let text = ''
    for (const item of find(node.told(), {
      ...wanted,
      order: 'asc',
      cursor,
      limit: Number.POSITIVE_INFINITY,
    })) {
      text += `id: ${item.order}\ndata: ${JSON.stringify(item.json(url.origin))}\n\n`
      cursor = item.order
    }
    return text
  }
  const goOn = (line: Line) => {
    const tell = () => {
      // Who hangs now says it later: nothing is left out of a stream.
      const text = node.troubles.now.hangs ? '' : news()
      if (text !== '') line.send(text)
    }
    line.onClose(node.chain.onBlock(tell))
    tell()
  }
  const body = `retry: 1000\nevent: open\ndata: "hello"\n\n${news()}`
  return { status: 200, type: 'text/event-stream; charset=utf-8', body, goOn }
}
