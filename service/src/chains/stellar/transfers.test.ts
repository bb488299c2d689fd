import { encodeMuxedAccount, encodeMuxedAccountToAddress, xdr } from '@stellar/stellar-sdk/base'
import { expect, test } from 'vitest'
import { NoAnswer } from './horizon.ts'
import { transfersToOurs } from './transfers.ts'

/** Records as https://developers.stellar.org/docs/data/apis/horizon/api-reference has them; each case beside a true deposit. */
const account = 'GA7QYNF7SOWQ3GLR2BGMZEHXAVIRZA4KVWLTJJFC7MGXUA74P7UJVSGZ'
const sender = 'GDRXE2BQUC3AZNPVFSCEZ76NJ3WWL25FYFK6RGZGIEKWE4SOOHSUJUJ6'
const muxed = (id: string, of = account) => encodeMuxedAccountToAddress(encodeMuxedAccount(of, id))
const ours = new Set([account, muxed('7')])
const hash = 'ab'.repeat(32)

function payment(changes: object = {}, transaction: object = {}) {
  return {
    id: '12884905985',
    type: 'payment',
    transaction_successful: true,
    transaction_hash: hash,
    asset_type: 'native',
    from: sender,
    to: account,
    to_muxed: muxed('7'),
    to_muxed_id: '7',
    amount: '5.0000000',
    ...changes,
    transaction: { successful: true, memo_type: 'none', ...transaction },
  }
}

const read = (...records: Record<string, unknown>[]) =>
  transfersToOurs(records, async (texts) => new Set(texts.filter((text) => ours.has(text))))

const deposit = { id: '12884905985', txHash: hash, to: muxed('7'), asset: 'XLM:XLM', units: 50_000_000n }
const bare = { to_muxed: undefined, to_muxed_id: undefined }

test.each([
  ['a muxed address', payment()],
  ['a memo of the kind id', payment(bare, { memo_type: 'id', memo: '7' })],
  ['a memo of the kind text', payment(bare, { memo_type: 'text', memo: '7' })],
  ['both', payment({}, { memo_type: 'id', memo: '7' })],
  ['a note in words beside a muxed address', payment({}, { memo_type: 'text', memo: 'thanks' })],
  ['a hash beside a muxed address', payment({}, { memo_type: 'hash', memo: 'Nw==' })],
])('a payment to an id of ours is a deposit: %s', async (_, record) => {
  expect(await read(record)).toEqual([deposit])
})

test.each([
  ['no memo', payment(bare)],
  ['the muxed id of nobody', payment({ to_muxed: muxed('8') })],
  ['the memo of nobody', payment(bare, { memo_type: 'id', memo: '8' })],
  ['a memo that disagrees with the muxed id', payment({}, { memo_type: 'id', memo: '8' })],
  ['a memo that disagrees in text', payment({}, { memo_type: 'text', memo: '8' })],
  ['words', payment(bare, { memo_type: 'text', memo: 'order 7' })],
  ['noughts before the number', payment(bare, { memo_type: 'text', memo: '07' })],
  ['a hash', payment(bare, { memo_type: 'hash', memo: '7' })],
  ['a memo to return', payment(bare, { memo_type: 'return', memo: '7' })],
])('a payment with %s reaches the account and no order', async (_, record) => {
  expect(await read(record, payment())).toEqual([{ ...deposit, to: account }, deposit])
})

test.each([
  ['a payment that failed', payment({ transaction_successful: false }, { successful: false })],
  [
    'a payment to somebody else',
    payment({ ...bare, to: sender, from: 'GOTHER' }, { memo_type: 'id', memo: '7' }),
  ],
  ['a payment of the account to itself', payment({ from: account })],
  [
    'a contract that moved something elsewhere',
    { ...payment(), type: 'invoke_host_function', asset_balance_changes: [] },
  ],
])('%s is none', async (_, record) => {
  expect(await read(record, payment())).toEqual([deposit])
})

test('a path payment is what arrives, in what arrives', async () => {
  const path = payment({
    type: 'path_payment_strict_send',
    source_asset_type: 'credit_alphanum4',
    source_amount: '900.0000000',
  })
  expect(await read(path)).toEqual([deposit])
})

test('a token is foreign, whatever its name', async () => {
  const token = payment({ asset_type: 'credit_alphanum4', asset_code: 'XLM', asset_issuer: sender })
  const foreign = { ...deposit, asset: { unlisted: `XLM.${sender}` } }
  expect(await read(token, payment())).toEqual([foreign, deposit])
})

test('the account that is made is there with all of it, and a memo says whose it is', async () => {
  const made = { type: 'create_account', starting_balance: '5.0000000', funder: sender, account }
  expect(await read(payment({ ...bare, ...made }, { memo_type: 'id', memo: '7' }))).toEqual([deposit])
})

test('lumens that a contract moves belong to the account, and are told one by one', async () => {
  const change = { asset_type: 'native', type: 'transfer', from: sender, to: account, amount: '5.0000000' }
  const record = {
    ...payment({}, { memo_type: 'id', memo: '7' }),
    type: 'invoke_host_function',
    asset_balance_changes: [change, change],
  }
  expect(await read(record)).toEqual([
    { ...deposit, id: '12884905985:0', to: account },
    { ...deposit, id: '12884905985:1', to: account },
  ])
})

test.each([
  ['an id of ours', { destination_muxed_id: '7' }, muxed('7')],
  ['an id of nobody', { destination_muxed_id: '8' }, account],
  ['text, which CAP-67 allows', { destination_muxed_id: 'seven' }, account],
  ['a number that is none of 64 bits', { destination_muxed_id: '18446744073709551616' }, account],
  ['no id', {}, account],
])('what a contract moves to %s is of whom that names, whatever the memo says', async (_, named, to) => {
  const change = { asset_type: 'native', type: 'transfer', from: vault, to: account, amount: '5.0000000' }
  const record = {
    ...payment(bare, { memo_type: 'id', memo: '7' }),
    type: 'invoke_host_function',
    asset_balance_changes: [{ ...change, ...named }],
  }
  expect(await read(record)).toEqual([{ ...deposit, id: '12884905985:0', to }])
})

test('of two accounts that end in one transaction each is told with what was left in it', async () => {
  const { AccountMergeResult, OperationResult, OperationResultTr, TransactionResultResult } = xdr
  const merged = (stroops: bigint) =>
    OperationResult.opInner(OperationResultTr.accountMerge(AccountMergeResult.accountMergeSuccess(stroops)))
  const result = TransactionResultResult.txSuccess([merged(20_000_000n), merged(50_000_000n)])
  const parts = { feeCharged: 200n, result, ext: xdr.TransactionResultExt.v0() }
  const result_xdr = new xdr.TransactionResult(parts).toXdr('base64')
  const merge = { type: 'account_merge', account: sender, into: account, into_muxed: muxed('7') }
  const ends = ['12884905985', '12884905986'].map((id) => payment({ ...merge, id }, { result_xdr }))
  expect(await read(...ends)).toEqual([
    { ...deposit, units: 20_000_000n },
    { ...deposit, id: '12884905986' },
  ])
})

test('a Horizon that contradicts itself is not believed', async () => {
  const wrong = [
    payment({}, { successful: false }),
    payment({ to_muxed: muxed('7', sender) }),
    payment({ amount: '5' }),
    payment({ amount: 5 }),
    payment({ type: 'account_merge', into: account, account: sender, into_muxed: muxed('7') }),
    { ...payment(), transaction: undefined },
  ]
  for (const record of wrong) await expect(read(record)).rejects.toThrow(NoAnswer)
})

const nobody = 'GAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAWHF'
const vault = 'CA3D5KRYM6CB7OWQ6TWYRR3Z4T7GNZLKERYNZGGA5SOAOPIFY6YQGAXE'
const INT128_MAX = '17014118346046923173168730371588.4105727'
const byContract = (...changes: object[]) => ({
  ...payment(bare),
  type: 'invoke_host_function',
  asset_balance_changes: changes,
})
const minted = (changes: object) => ({
  type: 'mint',
  ...{ asset_type: 'credit_alphanum4', asset_code: 'FOO', asset_issuer: sender, amount: INT128_MAX },
  ...changes,
})

/**
 * What: nothing that strangers do among themselves keeps a ledger from being read.
 * How: what anybody can have in a ledger, beside a deposit.
 */
test.each([
  [
    'payment to an id of the account that nobody has the key of',
    payment({ to: nobody, to_muxed: muxed('7', nobody) }),
  ],
  ['mint, of as much as a contract can count', byContract(minted({ to: vault }))],
  [
    'transfer to an id of a contract, which has none',
    byContract(minted({ to: vault, destination_muxed_id: '7' })),
  ],
  ['asset of a kind that is yet to come', byContract(minted({ to: vault, asset_type: 7, amount: '-1' }))],
  [
    'payment in words that are yet to come',
    payment({ to: sender, from: 'GOTHER', to_muxed: 'N7', amount: 5 }),
  ],
  [
    'merge whose result nobody can read',
    payment({ type: 'account_merge', into: sender, account: 'GOTHER' }, { result_xdr: 'AAAA' }),
  ],
])("a stranger's %s", async (_, record) => {
  expect(await read(record, payment())).toEqual([deposit])
})

test('a contract that moves nothing of ours brings no deposit of nothing', async () => {
  const nothing = { asset_type: 'native', type: 'transfer', from: vault, to: account, amount: '0.0000000' }
  expect(await read(byContract(nothing), payment())).toEqual([deposit])
})

test('as much as a contract can count is told to the last digit', async () => {
  const [transfer] = await read(byContract(minted({ to: account })))
  expect(transfer).toMatchObject({
    to: account,
    asset: { unlisted: `FOO.${sender}` },
    units: 2n ** 127n - 1n,
  })
})

test('what is ours and cannot be read is no answer', async () => {
  const broken = [
    byContract(minted({ to: account, asset_type: 7 })),
    byContract(minted({ to: account, amount: '-1' })),
    payment({ to_muxed: 'N7' }),
    payment({ to: sender, from: 'GOTHER' }),
    payment({ type: 'account_merge', into: account, account: sender }, { result_xdr: 'AAAA' }),
  ]
  for (const record of broken) await expect(read(record)).rejects.toThrow()
})
