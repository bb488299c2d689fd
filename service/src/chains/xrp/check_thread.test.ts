import { expect, test } from 'vitest'
import type { Fields } from '../replies.ts'
import { checkThread } from './check_thread.ts'
import { NoAnswer, NodeRefusal } from './rpc.ts'
import { refusing, scriptedRpc } from './testing/scripted_rpc.ts'

/** The account and the index of its entry are those of https://xrpl.org/docs/references/protocol/ledger-data/ledger-entry-types/accountroot */
const account = 'rf1BiGeXwwQoi8Z2ueFYTEXSwuJYfV2Jpn'
const entry = '13F1A95D7AAB7108D5CE7EEAF504B2894B8C674E6D68499076441C4837282BF8'
const HEIGHT = 9
const LEDGER_HASH = 'EE'.repeat(32)
const hashOf = (name: string) => Buffer.from(name).toString('hex').toUpperCase().padStart(64, '0')

const namedLast = (name: string, PreviousTxnLgrSeq = HEIGHT) => ({
  PreviousTxnID: hashOf(name),
  PreviousTxnLgrSeq,
})
const modified = (LedgerIndex: string, previous: Fields) => ({
  ModifiedNode: { LedgerEntryType: 'AccountRoot', LedgerIndex, ...previous },
})
const stranger = modified('AB'.repeat(32), namedLast('of a stranger', 3))
const transaction = (name: string, ...nodes: readonly Fields[]) => ({
  hash: hashOf(name),
  metaData: { AffectedNodes: [stranger, ...nodes] },
})

/** Three that changed the account one after another, and one that did not. */
const first = transaction('first', modified(entry, namedLast('earlier', HEIGHT - 2)))
const second = transaction('second', modified(entry, namedLast('first')))
const third = transaction('third', modified(entry, namedLast('second')))
const other = transaction('other')

type Told = () => unknown
const lastIs =
  (previous: Fields): Told =>
  () => ({ account_data: { Account: account, ...previous } })

function check(transactions: readonly unknown[], account_info: Told = lastIs(namedLast('third'))) {
  const rpc = scriptedRpc({
    account_info: (asked) => {
      expect(asked).toEqual({ account, ledger_hash: LEDGER_HASH })
      return account_info()
    },
  })
  const block = { height: HEIGHT, hash: LEDGER_HASH, parentHash: 'DD'.repeat(32), timeMs: 0 }
  return checkThread(rpc, account, { ...block, transactions })
}

test('a ledger with all that changed the account is whole, in any order and in either form', async () => {
  await check([other, third, first, second])
  const newer = [third, first, second].map(({ hash, metaData: meta }) => ({ hash, meta }))
  await check(newer)
})

test.each([
  ['all but the last', [first, second, other]],
  ['all but the first', [second, third, other]],
  ['all but one between two others', [first, third, other]],
  ['the last alone', [third]],
  ['none, and a stranger’s', [other]],
])('a ledger that tells of what changed the account %s is no answer', async (_, transactions) => {
  await expect(check(transactions)).rejects.toThrow(NoAnswer)
})

test('what changed the account before this ledger is not looked for', async () => {
  await check([other], lastIs(namedLast('earlier', HEIGHT - 1)))
})

test('what made the account is the first of all', async () => {
  const made = transaction('first', { CreatedNode: { LedgerEntryType: 'AccountRoot', LedgerIndex: entry } })
  await check([made, second, third])
  await expect(check([second, third])).rejects.toThrow(NoAnswer)
})

test('before there is an account, nothing has come to it', async () => {
  await check([other], refusing('actNotFound'))
})

test('of a ledger of no transactions nobody is asked', async () => {
  await check([], refusing('noNetwork'))
})

test.each([
  ['of a later ledger', [third, second, first], lastIs(namedLast('later', HEIGHT + 1))],
  ['that names no last transaction', [third, second, first], lastIs({})],
  ['whose thread goes round', [transaction('third', modified(entry, namedLast('third')))], undefined],
  ['whose last transaction did not change it', [transaction('third')], undefined],
  ['whose last transaction names none before it', [transaction('third', modified(entry, {}))], undefined],
])('an account %s is no answer', async (_, transactions, told) => {
  await expect(check(transactions, told)).rejects.toThrow(NoAnswer)
})

test('a node that cannot tell of the account is no answer', async () => {
  await expect(check([first, second, third], refusing('lgrNotFound'))).rejects.toThrow(NodeRefusal)
})
