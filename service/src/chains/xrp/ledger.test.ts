import { expect, test } from 'vitest'
import { head, readLedger } from './ledger.ts'
import { lookup } from './lookup.ts'
import { NoAnswer, NodeRefusal } from './rpc.ts'
import { refusing, scriptedRpc } from './testing/scripted_rpc.ts'

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

test('a ledger that is not validated is yet to come', async () => {
  const open = scriptedRpc({
    ledger: ({ ledger_index: index }) => ({
      ...ledgerOf(index === 'validated' ? 10 : 11),
      validated: index === 'validated',
    }),
  })
  expect(await readLedger(open, 11)).toBeNull()
})

test('another ledger than the one asked for, or half of one, is no answer', async () => {
  await expect(readLedger(scriptedRpc({ ledger: () => ledgerOf(7) }), 8)).rejects.toThrow(NoAnswer)
  const half = scriptedRpc({ ledger: () => ({ validated: true, ledger: { ledger_index: 8 } }) })
  await expect(readLedger(half, 8)).rejects.toThrow(NoAnswer)
  const bare = scriptedRpc({ ledger: () => ledgerOf(8) })
  await expect(readLedger(bare, 8, { transactions: true })).rejects.toThrow(NoAnswer)
  await expect(readLedger(scriptedRpc({ ledger: refusing('noNetwork') }), 8)).rejects.toThrow(NodeRefusal)
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

test('a transaction is nowhere, waits, or is in a ledger and took its fee', async () => {
  expect(await lookAt(refusing('txnNotFound'))).toEqual({ where: 'absent' })
  expect(await lookAt(() => ({ ...validated, validated: false }))).toEqual({ where: 'mempool' })
  const block = { height: 9, hash: hashOf(9) }
  const cost = { asset: 'XRP:XRP', units: 12n }
  expect(await lookAt(() => validated)).toEqual({ where: 'block', block, succeeded: true, cost })
  const failed = { ...validated, meta: { TransactionResult: 'tecNO_DST' } }
  expect(await lookAt(() => failed)).toEqual({ where: 'block', block, succeeded: false, cost })
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
