import { xdr } from '@stellar/stellar-sdk/base'
import { expect, test } from 'vitest'
import { NoAnswer } from './horizon.ts'
import { head, readLedger } from './ledger.ts'
import { lookup } from './lookup.ts'
import { readAll } from './replies.ts'
import { hashOf, ledgerAt, pageOf, scriptedHorizon, selfOf } from './testing/scripted_horizon.ts'

/** Has the ledgers `from` to `to`, as a Horizon that forgets the old ones. */
function horizonWith(from: number, to: number) {
  const heights = [4, 8, 9, 10, 11]
  return scriptedHorizon({
    '/ledgers': pageOf(ledgerAt(to)),
    ...Object.fromEntries(
      heights.map((height) => [
        `/ledgers/${height}`,
        () => (height < from || height > to ? null : ledgerAt(height)),
      ]),
    ),
  })
}

test('a ledger says its hash, its parent and its time', async () => {
  const wanted = { height: 9, hash: hashOf(9), parentHash: hashOf(8), closedAtS: 1_009 }
  expect(await readLedger(horizonWith(1, 10), 9)).toMatchObject(wanted)
  expect(await head(horizonWith(1, 10))).toMatchObject({ height: 10, hash: hashOf(10) })
})

test('a ledger yet to come is null, and one that Horizon forgot is no answer', async () => {
  expect(await readLedger(horizonWith(5, 10), 11)).toBeNull()
  await expect(readLedger(horizonWith(5, 10), 4)).rejects.toThrow(NoAnswer)
})

test('another ledger than the one asked for, or half of one, is no answer', async () => {
  const other = scriptedHorizon({ '/ledgers/8': () => ledgerAt(7) })
  await expect(readLedger(other, 8)).rejects.toThrow(NoAnswer)
  const half = scriptedHorizon({ '/ledgers/8': () => ({ sequence: 8 }) })
  await expect(readLedger(half, 8)).rejects.toThrow(NoAnswer)
  await expect(head(scriptedHorizon({ '/ledgers': pageOf() }))).rejects.toThrow(NoAnswer)
})

test('a collection is read until a page is empty, and one that goes round in circles is no answer', async () => {
  const cut = scriptedHorizon({
    '/all': (path) => {
      const after = Number(/cursor=(\d+)/.exec(path)?.[1])
      const records = after < 5 ? [{ paging_token: String(after + 1) }] : []
      return { ...selfOf(path), _embedded: { records } }
    },
  })
  expect((await readAll(cut, '/all')).map(({ paging_token: token }) => token)).toEqual([
    '1',
    '2',
    '3',
    '4',
    '5',
  ])
  const circle = scriptedHorizon({
    '/all': (path) => ({ ...selfOf(path), _embedded: { records: [{ paging_token: '1' }] } }),
  })
  await expect(readAll(circle, '/all')).rejects.toThrow(NoAnswer)
  await expect(readAll(scriptedHorizon({ '/all': () => null }), '/all')).rejects.toThrow(NoAnswer)
})

test('a page of something else is no answer, also when it is empty', async () => {
  const other = (path: string) => scriptedHorizon({ '/all': () => pageOf()(path) })
  await expect(readAll(other('/other?cursor=0'), '/all')).rejects.toThrow(NoAnswer)
  await expect(readAll(other('/all?cursor=7'), '/all')).rejects.toThrow(NoAnswer)
  expect(await readAll(other('/all?cursor=0'), '/all')).toEqual([])
})

const txHash = 'ab'.repeat(32)
const resultOf = (result: xdr.TransactionResultResult) =>
  new xdr.TransactionResult({ feeCharged: 100n, result, ext: xdr.TransactionResultExt.v0() }).toXdr('base64')
const didNot = (operation: xdr.OperationResult) => resultOf(xdr.TransactionResultResult.txFailed([operation]))
const did = (inner: xdr.OperationResultTr) => didNot(xdr.OperationResult.opInner(inner))
const { PaymentResult, CreateAccountResult, OperationResultTr } = xdr
const wasNotPaid = did(OperationResultTr.payment(PaymentResult.paymentNoDestination()))
const included = { hash: txHash, ledger: 9, successful: true, fee_charged: '100', fee_account: 'ours' }
const lookAt = (tx: () => unknown) => {
  const script = { [`/transactions/${txHash}`]: tx, '/ledgers/9': () => ledgerAt(9) }
  return lookup(scriptedHorizon(script), txHash, async () => 'ours')
}

test('a transaction is nowhere, or in a ledger and took its fee of whoever paid it', async () => {
  expect(await lookAt(() => null)).toEqual({ where: 'absent' })
  const block = { height: 9, hash: hashOf(9) }
  const cost = { asset: 'XLM:XLM', units: 100n }
  expect(await lookAt(() => included)).toEqual({ where: 'block', block, succeeded: true, cost })
  const failed = { ...included, successful: false, result_xdr: wasNotPaid }
  expect(await lookAt(() => failed)).toEqual({ where: 'block', block, succeeded: false, cost })
  const elsewhere = await lookAt(() => ({ ...included, fee_account: 'of somebody else' }))
  expect(elsewhere).toMatchObject({ cost: { units: 0n } })
})

/** As a stranger hands it on who pays its fee. */
const wrapped = (result: xdr.InnerTransactionResultResult) => {
  const parts = { feeCharged: 0n, result, ext: xdr.InnerTransactionResultExt.v0() }
  const inner = { transactionHash: Buffer.alloc(32), result: new xdr.InnerTransactionResult(parts) }
  const pair = new xdr.InnerTransactionResultPair(inner)
  return resultOf(xdr.TransactionResultResult.txFeeBumpInnerFailed(pair))
}
const underfunded = OperationResultTr.payment(PaymentResult.paymentUnderfunded())
const unmade = OperationResultTr.createAccount(CreateAccountResult.createAccountUnderfunded())
const bumped = [xdr.OperationResult.opInner(underfunded)]

test.each([
  ['the reserve has too little', did(underfunded), 'ours'],
  ['the reserve has too little to make an account', did(unmade), 'ours'],
  ['the reserve has no account any more', didNot(xdr.OperationResult.opNoAccount()), 'ours'],
  ['its sequence is used', resultOf(xdr.TransactionResultResult.txBadSeq()), 'ours'],
  [
    'the reserve has too little, and another paid the fee',
    wrapped(xdr.InnerTransactionResultResult.txFailed(bumped)),
    'ours',
  ],
  ['nobody is there', wasNotPaid, undefined],
  [
    'somebody is there already',
    did(OperationResultTr.createAccount(CreateAccountResult.createAccountAlreadyExist())),
    'nobodys',
  ],
  ['the payee is full', did(OperationResultTr.payment(PaymentResult.paymentLineFull())), undefined],
])('a payment that fails because %s', async (_, result_xdr, fault) => {
  const status = await lookAt(() => ({ ...included, successful: false, result_xdr }))
  expect(status).toMatchObject({ succeeded: false })
  expect(status.where === 'block' && status.fault).toBe(fault)
})

test('one that failed and whose result nobody can read is no answer', async () => {
  for (const result_xdr of [undefined, '', 'AAAA'])
    await expect(lookAt(() => ({ ...included, successful: false, result_xdr }))).rejects.toThrow(NoAnswer)
})

test('another transaction, or one that does not say what became of it, is no answer', async () => {
  await expect(lookAt(() => ({ ...included, hash: 'cd'.repeat(32) }))).rejects.toThrow(NoAnswer)
  await expect(lookAt(() => ({ ...included, successful: undefined }))).rejects.toThrow(NoAnswer)
})
