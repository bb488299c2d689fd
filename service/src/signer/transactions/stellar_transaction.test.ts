import {
  encodeMuxedAccount,
  encodeMuxedAccountToAddress,
  extractBaseAddress,
  Keypair,
  Transaction,
} from '@stellar/stellar-sdk/base'
import { expect, test } from 'vitest'
import { assert } from '../../domain/assert.ts'
import type { StellarIntent } from '../../domain/payouts/intent.ts'
import { stellarAddress } from '../addresses/stellar_address.ts'
import type { Authority } from '../signer.ts'
import {
  customerStellar,
  keys,
  sealed,
  startSigner,
  stellarIntent,
  stellarPassphrase,
} from '../testing/fixtures.ts'
import { signStellar } from './stellar_transaction.ts'

const caps = { passphrase: stellarPassphrase, feeStroopsMax: 1_000n }
const account = stellarAddress(keys, { purpose: 'reserve', index: 1 })
const other = Keypair.master('somebody else').publicKey()
const muxedOf = (id: string, of = customerStellar) => encodeMuxedAccountToAddress(encodeMuxedAccount(of, id))

function signed(intent: StellarIntent) {
  const outcome = signStellar(intent, keys, caps)
  assert(outcome.ok, outcome.ok ? '' : outcome.rejection.message)
  const envelope = Buffer.from(outcome.value.bytes, 'hex').toString('base64')
  return { ...outcome.value, transaction: new Transaction(envelope, stellarPassphrase) }
}

const paid = (changes: Partial<NonNullable<StellarIntent['payment']>> = {}) =>
  stellarIntent({
    payment: { to: customerStellar, memo: '48213', stroops: 25_000_001n, creates: false, ...changes },
  })

test('the bytes of a payout say what the intent says, and carry the signature of the account they leave', () => {
  const { txHash, transaction } = signed(paid())
  expect(transaction.source).toBe(account)
  expect(transaction.sequence).toBe('257698037766')
  expect(transaction.fee).toBe('200')
  expect(transaction.timeBounds).toEqual({ minTime: '0', maxTime: '1800000000' })
  expect(transaction.memo).toMatchObject({ type: 'id', value: '48213' })
  expect(transaction.operations).toMatchObject([
    { type: 'payment', destination: customerStellar, amount: '2.5000001' },
  ])
  const hash = transaction.hash()
  expect(txHash).toBe(Buffer.from(hash).toString('hex'))
  expect(transaction.signatures).toHaveLength(1)
  const signature = transaction.signatures[0]?.signature.toBytes() ?? Buffer.alloc(0)
  expect(Keypair.fromPublicKey(account).verify(Buffer.from(hash), Buffer.from(signature))).toBe(true)
})

test('signed twice it is the same bytes', () => {
  expect(signed(paid()).bytes).toBe(signed(structuredClone(paid())).bytes)
})

test.each([
  ['a number', '18446744073709551615', { type: 'id' }],
  ['a number that fits no id', '18446744073709551616', { type: 'text' }],
  ['a number with noughts before it', '007', { type: 'text' }],
  ['words', 'für Zoë', { type: 'text' }],
])('a memo of %s has the kind that fits', (_, memo, kind) => {
  const { transaction } = signed(paid({ memo }))
  expect(transaction.memo).toMatchObject(kind)
  expect(
    String(
      transaction.memo.type === 'text' ? Buffer.from(transaction.memo.value ?? '') : transaction.memo.value,
    ),
  ).toBe(memo)
})

test('a muxed address is paid as it is, and an account that is not there is made', () => {
  const muxed = signed(paid({ to: muxedOf('7'), memo: null }))
  expect(muxed.transaction.operations).toMatchObject([{ type: 'payment', destination: muxedOf('7') }])
  expect(muxed.transaction.memo.type).toBe('none')
  const made = signed(paid({ creates: true }))
  expect(made.transaction.operations).toMatchObject([
    { type: 'createAccount', destination: customerStellar, startingBalance: '2.5000001' },
  ])
})

test('a filler uses up the sequence and moves nothing', () => {
  const { transaction } = signed(stellarIntent({ payment: null }))
  expect(transaction.operations).toMatchObject([{ type: 'bumpSequence', bumpTo: '257698037766' }])
  expect(transaction.sequence).toBe('257698037766')
})

test('another network, another sender, a fee above the cap and what Stellar does not know are refused', () => {
  const codeOf = (intent: StellarIntent) => {
    const outcome = signStellar(intent, keys, caps)
    return outcome.ok ? 'signed' : outcome.rejection.code
  }
  expect(codeOf(stellarIntent({ passphrase: 'Test SDF Network ; September 2015' }))).toBe('malformed')
  expect(codeOf(stellarIntent({ from: { purpose: 'deposit', index: 0 } }))).toBe('malformed')
  expect(codeOf(stellarIntent({ from: { purpose: 'reserve', index: 1 } }))).toBe('malformed')
  expect(codeOf(stellarIntent({ feeStroops: 1_001n }))).toBe('limit_exceeded')
  expect(codeOf(stellarIntent({ feeStroops: 1_000n }))).toBe('signed')
  expect(codeOf(paid({ to: muxedOf('7') })), 'two memos').toBe('malformed')
  expect(codeOf(paid({ to: muxedOf('7'), memo: null, creates: true }))).toBe('malformed')
  expect(codeOf(paid({ to: `${customerStellar.slice(0, -1)}A` }))).toBe('malformed')
  expect(codeOf(paid({ memo: 'ä'.repeat(15) }))).toBe('malformed')
  expect(signStellar(stellarIntent(), keys, undefined)).toMatchObject({ ok: false })
})

const payout = { payoutAsset: 'XLM:XLM', destination: customerStellar, destinationTag: '48213' } as const
const toMuxed = { ...payout, destination: muxedOf('7'), destinationTag: '7' } as const
const refund = { kind: 'refund', depositAsset: 'XLM:XLM', payoutAsset: 'BTC:BTC' } as const
const filler = stellarIntent({ payment: null })

test.each<[string, StellarIntent, Partial<Authority>, string]>([
  ['the account and memo of the order', paid(), payout, 'signed'],
  ['the same, making the account', paid({ creates: true }), payout, 'signed'],
  ['another account', paid({ to: other }), payout, 'not_the_destination'],
  ['another memo', paid({ memo: '48214' }), payout, 'not_the_destination'],
  ['no memo', paid({ memo: null }), payout, 'not_the_destination'],
  ['nobody', filler, payout, 'not_the_destination'],
  ['the muxed address of the order', paid({ to: muxedOf('7'), memo: null }), toMuxed, 'signed'],
  ['another id', paid({ to: muxedOf('8'), memo: null }), toMuxed, 'not_the_destination'],
  ['the account of a muxed address', paid({ memo: '7' }), toMuxed, 'not_the_destination'],
  [
    'a muxed address whose tag says otherwise',
    paid({ to: muxedOf('7'), memo: null }),
    { ...toMuxed, destinationTag: '8' },
    'not_the_destination',
  ],
  ['another asset', paid(), { ...payout, payoutAsset: 'BTC:BTC' }, 'not_the_asset'],
  [
    'a refund to a muxed address',
    paid({ to: muxedOf('9'), memo: null }),
    { ...refund, refundAddress: muxedOf('9') },
    'signed',
  ],
  ['a refund to an account', paid({ memo: null }), { ...refund, refundAddress: customerStellar }, 'signed'],
  [
    'a refund with a memo nobody gave',
    paid({ memo: '9' }),
    { ...refund, refundAddress: customerStellar },
    'not_the_destination',
  ],
  ['a filler', filler, { kind: 'filler' }, 'signed'],
  ['a filler that pays', paid(), { kind: 'filler' }, 'malformed'],
  ['a sweep, which this chain has none of', paid(), { ...payout, kind: 'sweep' }, 'not_the_destination'],
])('to %s', async (_, intent, authority, code) => {
  const { signer } = startSigner()
  const outcome = await signer.sign(intent, sealed(authority))
  expect(outcome.ok ? 'signed' : outcome.rejection.code).toBe(code)
})

test('a later attempt keeps sequence and payment, and may ask more, live longer and make the account', async () => {
  const first = paid()
  const codes = async (changes: Partial<StellarIntent>) => {
    const { signer } = startSigner()
    await signer.sign(first, sealed(payout))
    const outcome = await signer.sign({ ...first, attempt: 2, ...changes }, sealed(payout))
    return outcome.ok ? 'signed' : outcome.rejection.code
  }
  expect(await codes({ feeStroops: 300n, maxTimeS: 1_900_000_000 })).toBe('signed')
  expect(await codes({ payment: paid({ creates: true }).payment })).toBe('signed')
  expect(await codes({ sequence: first.sequence + 1n })).toBe('conflict')
  expect(await codes({ payment: paid({ stroops: 2n }).payment })).toBe('conflict')
})

test('the account is the first of these words in every wallet that follows SEP-5', () => {
  expect(extractBaseAddress(stellarAddress(keys, { purpose: 'deposit', index: 7 }))).toBe(account)
})
