import { extractBaseAddress } from '@stellar/stellar-sdk/base'
import type { View } from '../simulated/chain.ts'
import { type Found, type Json, ledgerJson, orderOf, transactionJson } from './answers.ts'
import { decode } from './decode_transaction.ts'
import { accountsIn, isPayment, operationJson, operationsOf, orderOfOperation } from './operation_answers.ts'
import { badRequest } from './problem.ts'
import type { Ledger, Stellar } from './rules.ts'

/** https://developers.stellar.org/docs/data/apis/horizon/api-reference/structure/pagination */
export type Wanted = {
  readonly what: 'ledgers' | 'transactions' | 'operations' | 'payments'
  readonly account?: string
  readonly height?: number
  readonly transaction?: string
  /** Everything after it, in the order that is asked for. */
  readonly cursor: bigint
  readonly order: 'asc' | 'desc'
  readonly limit: number
  readonly isJoined: boolean
  readonly withFailed: boolean
}

type Item = { readonly order: bigint; json(base: string): Json }

const LIMIT_DEFAULT = 10
const LIMIT_MAX = 200

export function readWanted(query: URLSearchParams, view: View<Stellar>): Omit<Wanted, 'what'> {
  const order = query.get('order') || 'asc'
  if (order !== 'asc' && order !== 'desc') throw badRequest('order', 'order must be asc or desc')
  const limit = Number(query.get('limit') || LIMIT_DEFAULT)
  if (!Number.isInteger(limit) || limit < 1 || limit > LIMIT_MAX)
    throw badRequest('limit', `limit must be between 1 and ${LIMIT_MAX}`)
  return {
    cursor: readCursor(query.get('cursor') ?? '', order, view),
    order,
    limit,
    isJoined: query.get('join') === 'transactions',
    withFailed: query.get('include_failed') === 'true',
  }
}

function readCursor(cursor: string, order: 'asc' | 'desc', { head }: View<Stellar>): bigint {
  const beyond = orderOf(head.height + 1)
  if (cursor === '') return order === 'asc' ? 0n : beyond
  if (cursor === 'now') return beyond - 1n
  if (!/^\d{1,19}$/.test(cursor)) throw badRequest('cursor', 'cursor must contain exactly one number')
  return BigInt(cursor)
}

/** At most `limit`, and none that a later ledger holds. */
export function* find(view: View<Stellar>, wanted: Wanted): Generator<Item> {
  let left = wanted.limit
  for (const ledger of ledgersOf(view, wanted)) {
    const items = itemsOf(ledger, wanted)
    for (const item of wanted.order === 'asc' ? items : items.reverse()) {
      const isBeyond = wanted.order === 'asc' ? item.order > wanted.cursor : item.order < wanted.cursor
      if (!isBeyond) continue
      if (left === 0) return
      left -= 1
      yield item
    }
  }
}

function* ledgersOf(view: View<Stellar>, { cursor, order, height, transaction }: Wanted): Generator<Ledger> {
  const only = transaction === undefined ? height : view.find(transaction)?.block.height
  const isAscending = order === 'asc'
  const at = Number(cursor >> 32n)
  const start = isAscending ? Math.max(1, at) : Math.min(at, view.head.height)
  for (let next = only ?? start; ; next += isAscending ? 1 : -1) {
    const ledger = view.block(next)
    if (ledger === undefined) return
    yield ledger
    if (only !== undefined) return
  }
}

/** Oldest first. */
function itemsOf(ledger: Ledger, wanted: Wanted): Item[] {
  const { what, account, transaction, withFailed, isJoined } = wanted
  if (what === 'ledgers') return [{ order: orderOf(ledger.height), json: (base) => ledgerJson(ledger, base) }]
  const found = ledger.included
    .map((item, index): Found => ({ ledger, item, index }))
    .filter(({ item }) => transaction === undefined || item.tx.id === transaction)
    // Who names a transaction wants it whatever became of it.
    .filter(({ item }) => withFailed || transaction !== undefined || item.result.isSuccessful)
  if (what === 'transactions')
    return found
      .filter((each) => account === undefined || isAbout(each, account))
      .map((each) => ({
        order: orderOf(ledger.height, each.index + 1),
        json: (base) => transactionJson(each, base),
      }))
  return found
    .flatMap(operationsOf)
    .filter((each) => what === 'operations' || isPayment(each))
    .filter((each) => account === undefined || accountsIn(each).includes(account))
    .map((each) => ({
      order: orderOfOperation(each),
      json: (base) => operationJson(each, base, isJoined),
    }))
}

function isAbout(found: Found, account: string): boolean {
  const { transaction } = decode(found.item.tx)
  return (
    extractBaseAddress(transaction.source) === account ||
    operationsOf(found).some((each) => accountsIn(each).includes(account))
  )
}
