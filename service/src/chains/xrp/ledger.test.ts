import { expect, test } from 'vitest'
import { head, readLedger } from './ledger.ts'
import { lookup } from './lookup.ts'
import { NoAnswer, NodeRefusal } from './rpc.ts'
import { accountAt, refusing, scriptedRpc } from './testing/scripted_rpc.ts'

const hashOf = (height: number) => height.toString(16).toUpperCase().padStart(64, '0')
const ledgerOf = (height: number) => ({
  validated: true,
  ledger: {
    ledger_index: String(height),
    ledger_hash: hashOf(height),
    parent_hash: hashOf(height - 1),
    close_time: 1_000,
  },
})
/** Has the ledgers `from` to `to`, as a node that forgets the old ones. */
const nodeWith = (from: number, to: number) =>
  scriptedRpc({
    ledger: ({ ledger_index: index }) => {
      const height = index === 'validated' ? to : Number(index)
      return height < from || height > to ? refusing('lgrNotFound')() : ledgerOf(height)
    },
  })

test('a ledger says its hash, its parent and its time since 2000', async () => {
  expect(await readLedger(nodeWith(1, 10), 9)).toEqual({
    height: 9,
    hash: hashOf(9),
    parentHash: hashOf(8),
    timeMs: Date.UTC(2000, 0, 1) + 1_000_000,
    transactions: [],
  })
  expect(await head(nodeWith(1, 10))).toEqual({ height: 10, hash: hashOf(10) })
})

test('a ledger yet to come is null, and one that the node forgot is no answer', async () => {
  expect(await readLedger(nodeWith(5, 10), 11)).toBeNull()
  await expect(readLedger(nodeWith(5, 10), 4)).rejects.toThrow(NoAnswer)
})

test.each([false, undefined])(
  'a ledger is yet to come while a node calls it validated: %s',
  async (validated) => {
    const open = scriptedRpc({
      ledger: ({ ledger_index: index }) =>
        index === 'validated' ? ledgerOf(10) : { ...ledgerOf(11), validated },
    })
    expect(await readLedger(open, 11)).toBeNull()
  },
)

test('another ledger than the one asked for, or half of one, is no answer', async () => {
  await expect(readLedger(scriptedRpc({ ledger: () => ledgerOf(7) }), 8)).rejects.toThrow(NoAnswer)
  const half = scriptedRpc({ ledger: () => ({ validated: true, ledger: { ledger_index: 8 } }) })
  await expect(readLedger(half, 8)).rejects.toThrow(NoAnswer)
  const bare = scriptedRpc({ ledger: () => ledgerOf(8) })
  await expect(readLedger(bare, 8, { transactions: true })).rejects.toThrow(NoAnswer)
  await expect(readLedger(scriptedRpc({ ledger: refusing('noNetwork') }), 8)).rejects.toThrow(NodeRefusal)
})

const at = (TransactionIndex: number) => ({ metaData: { TransactionIndex } })

test.each([
  ['none, where there were some', [], 'AB'.repeat(32)],
  ['some, where there were none', [at(0)], '0'.repeat(64)],
  ['one that is not there between two others', [at(0), at(2)], 'AB'.repeat(32)],
  ['all but the first', [at(2), at(1)], 'AB'.repeat(32)],
  ['one twice', [at(0), at(0)], 'AB'.repeat(32)],
  ['one that does not say which it is', [{ metaData: {} }], 'AB'.repeat(32)],
  ['no word of how many', [at(0)], undefined],
])('a ledger with %s of its transactions is no answer', async (_, transactions, transaction_hash) => {
  const { ledger, ...others } = ledgerOf(8)
  const cut = scriptedRpc({
    ledger: () => ({ ...others, ledger: { ...ledger, transactions, transaction_hash } }),
  })
  await expect(readLedger(cut, 8, { transactions: true })).rejects.toThrow(NoAnswer)
})

test('a ledger tells its transactions in any order', async () => {
  const { ledger, ...others } = ledgerOf(8)
  const told = (transactions: readonly unknown[], transaction_hash: string) =>
    scriptedRpc({ ledger: () => ({ ...others, ledger: { ...ledger, transactions, transaction_hash } }) })
  const all = await readLedger(told([at(2), at(0), at(1)], 'AB'.repeat(32)), 8, { transactions: true })
  expect(all?.transactions).toHaveLength(3)
  const none = await readLedger(told([], '0'.repeat(64)), 8, { transactions: true })
  expect(none?.transactions).toEqual([])
})

const txHash = 'AB'.repeat(32)
const validated = {
  hash: txHash,
  validated: true,
  ledger_index: 9,
  Fee: '12',
  meta: { TransactionResult: 'tesSUCCESS' },
}
const lookAt = (tx: () => unknown) => lookup(scriptedRpc({ tx, ledger: () => ledgerOf(9) }), txHash)

test('a transaction is nowhere, or is in a ledger and took its fee', async () => {
  expect(await lookAt(refusing('txnNotFound'))).toEqual({ where: 'absent' })
  const block = { height: 9, hash: hashOf(9) }
  const cost = { asset: 'XRP:XRP', units: 12n }
  expect(await lookAt(() => validated)).toEqual({ where: 'block', block, succeeded: true, cost })
  const failed = { ...validated, meta: { TransactionResult: 'tecNO_DST' } }
  expect(await lookAt(() => failed)).toEqual({ where: 'block', block, succeeded: false, cost })
})

/** Of sequence 7, and in no ledger after 20. A node remembers it for as long as somebody asks, whatever has become of it. */
const remembered = {
  ...{ hash: txHash, validated: false, Account: 'rPT1Sjq2YGrBMTttX4GZHjKu9dyfzbpAYe' },
  ...{ Sequence: 7, LastLedgerSequence: 20 },
}

test.each([
  ['is in the open ledger', 'mempool', accountAt(10, 7, 8)],
  ['is in the open ledger, and others after it', 'mempool', accountAt(19, 7, 12)],
  ['is in the queue', 'mempool', accountAt(10, 6, 6, [6, 7])],
  ['was refused', 'absent', accountAt(10, 7, 7)],
  ['waits for an earlier one, and is to be sent again', 'absent', accountAt(10, 6, 6, [8])],
  ['is too late for every ledger', 'absent', accountAt(20, 7, 7)],
  ['is too late, with another one of its sequence on its way', 'absent', accountAt(20, 7, 8)],
  ['has lost its sequence to another one', 'absent', accountAt(10, 8, 8)],
  ['is of an account that is not there', 'absent', refusing('actNotFound')],
])('what a node remembers without a ledger: it %s', async (_, where, account_info) => {
  const rpc = scriptedRpc({ tx: () => remembered, account_info, ledger: () => ledgerOf(9) })
  expect(await lookup(rpc, txHash)).toEqual({ where })
})

test('one that gets into its ledger while its account is asked for is there', async () => {
  let isIn = false
  const rpc = scriptedRpc({
    tx: () => (isIn ? validated : remembered),
    account_info: (asked) => {
      isIn = true
      return accountAt(10, 8, 8)(asked)
    },
    ledger: () => ledgerOf(9),
  })
  expect(await lookup(rpc, txHash)).toMatchObject({ where: 'block', succeeded: true })
})

test.each([
  ['the reserve has less than it pays', 'tecUNFUNDED_PAYMENT', 'ours'],
  ['the reserve has less than the fee', 'tecINSUFF_FEE', 'ours'],
  ['nobody is there', 'tecNO_DST', undefined],
  ['a tag is missing', 'tecDST_TAG_NEEDED', undefined],
])('a payment that fails because %s', async (_, TransactionResult, fault) => {
  const status = await lookAt(() => ({ ...validated, meta: { TransactionResult } }))
  expect(status).toMatchObject({ succeeded: false })
  expect(status.where === 'block' && status.fault).toBe(fault)
})

test('another transaction, or a node that cannot tell, is no answer', async () => {
  await expect(lookAt(() => ({ ...validated, hash: 'CD'.repeat(32) }))).rejects.toThrow(NoAnswer)
  await expect(lookAt(refusing('noNetwork'))).rejects.toThrow(NodeRefusal)
})
