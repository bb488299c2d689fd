import { createHash } from 'node:crypto'
import { classicAddressToXAddress } from 'ripple-address-codec'
import { decode, encodeForSigning } from 'ripple-binary-codec'
import { deriveAddress, verify } from 'ripple-keypairs'
import { expect, test } from 'vitest'
import { assert } from '../../domain/assert.ts'
import type { XrpIntent } from '../../domain/payouts/intent.ts'
import type { Authority } from '../signer.ts'
import { customerXrp, keys, sealed, startSigner, xrpIntent } from '../testing/fixtures.ts'
import { signXrp } from './xrp_transaction.ts'

const caps = { networkId: 31337, feeDropsMax: 1_000n }
const account = keys.address('xrp', { purpose: 'reserve', index: 1 })
const otherXrp = 'rrrrrrrrrrrrrrrrrrrrrhoLvTp'

function signed(intent: XrpIntent, settings = caps) {
  const outcome = signXrp(intent, keys, settings)
  assert(outcome.ok, outcome.ok ? '' : outcome.rejection.message)
  return outcome.value
}

test('the bytes of a payout say what the intent says, and carry the signature of the account they leave', () => {
  const { txHash, bytes } = signed(xrpIntent())
  const { TxnSignature, SigningPubKey, ...said } = decode(bytes)
  expect(said).toEqual({
    TransactionType: 'Payment',
    NetworkID: 31337,
    Account: account,
    Destination: customerXrp,
    DestinationTag: 48_213,
    Amount: '25000000',
    Fee: '15',
    Flags: 0x8000_0000,
    Sequence: 5,
    LastLedgerSequence: 1_000,
  })
  expect(deriveAddress(String(SigningPubKey))).toBe(account)
  const message = encodeForSigning({ ...said, SigningPubKey })
  expect(verify(message, String(TxnSignature), String(SigningPubKey))).toBe(true)
  const hashed = createHash('sha512')
    .update(Buffer.from(`54584E00${bytes}`, 'hex'))
    .digest('hex')
  expect(txHash).toBe(hashed.slice(0, 64).toUpperCase())
})

test('signed twice it is the same bytes', () => {
  expect(signed(xrpIntent())).toEqual(signed(structuredClone(xrpIntent())))
})

test('without a tag none is written, and small network ids never are', () => {
  const payment = { to: customerXrp, tag: null, drops: 1n }
  const decoded = decode(signed(xrpIntent({ payment, networkId: 1 }), { ...caps, networkId: 1 }).bytes)
  expect(decoded).not.toHaveProperty('DestinationTag')
  expect(decoded).not.toHaveProperty('NetworkID')
})

test('a filler sets nothing on our own account and uses up the sequence', () => {
  const decoded = decode(signed(xrpIntent({ payment: null })).bytes)
  expect(decoded).toMatchObject({ TransactionType: 'AccountSet', Account: account, Sequence: 5 })
  expect(decoded).not.toHaveProperty('Amount')
  expect(decoded).not.toHaveProperty('SetFlag')
})

test('another network, another sender and a fee above the cap are refused', () => {
  const codeOf = (changes: Partial<XrpIntent>) => {
    const outcome = signXrp(xrpIntent(changes), keys, caps)
    return outcome.ok ? 'signed' : outcome.rejection.code
  }
  expect(codeOf({ networkId: 0 })).toBe('malformed')
  expect(codeOf({ from: { purpose: 'deposit', index: 0 } })).toBe('malformed')
  expect(codeOf({ from: { purpose: 'reserve', index: 1 } })).toBe('malformed')
  expect(codeOf({ feeDrops: 1_001n })).toBe('limit_exceeded')
  expect(codeOf({ feeDrops: 1_000n })).toBe('signed')
  expect(signXrp(xrpIntent(), keys, undefined)).toMatchObject({ ok: false })
})

const xAddress = (tag: number | false, isTest = true) => classicAddressToXAddress(customerXrp, tag, isTest)
const payout = { payoutAsset: 'XRP:XRP', destination: customerXrp, destinationTag: '48213' } as const
const refund = { kind: 'refund', depositAsset: 'XRP:XRP', payoutAsset: 'BTC:BTC' } as const
const paying = (tag: number | null, to = customerXrp) => xrpIntent({ payment: { to, tag, drops: 1n } })
const filler = xrpIntent({ payment: null })

test.each<[string, XrpIntent, Partial<Authority>, string]>([
  ['the account and tag of the order', paying(48_213), payout, 'signed'],
  ['another account', paying(48_213, otherXrp), payout, 'not_the_destination'],
  ['another tag', paying(48_214), payout, 'not_the_destination'],
  ['no tag', paying(null), payout, 'not_the_destination'],
  ['nobody', filler, payout, 'not_the_destination'],
  [
    'an X-address that has the same tag',
    paying(48_213),
    { ...payout, destination: xAddress(48_213) },
    'signed',
  ],
  ['one with another tag', paying(48_213), { ...payout, destination: xAddress(7) }, 'not_the_destination'],
  [
    'one of another network',
    paying(48_213),
    { ...payout, destination: xAddress(48_213, false) },
    'not_the_destination',
  ],
  ['another asset', paying(48_213), { ...payout, payoutAsset: 'BTC:BTC' }, 'not_the_asset'],
  ['a refund to an X-address', paying(9), { ...refund, refundAddress: xAddress(9) }, 'signed'],
  [
    'a refund without its tag',
    paying(null),
    { ...refund, refundAddress: xAddress(9) },
    'not_the_destination',
  ],
  ['a refund to an account', paying(null), { ...refund, refundAddress: customerXrp }, 'signed'],
  [
    'a refund with a tag nobody gave',
    paying(9),
    { ...refund, refundAddress: customerXrp },
    'not_the_destination',
  ],
  ['a filler', filler, { kind: 'filler' }, 'signed'],
  ['a filler that pays', paying(1), { kind: 'filler' }, 'malformed'],
  [
    'a sweep, which this chain has none of',
    paying(48_213),
    { ...payout, kind: 'sweep' },
    'not_the_destination',
  ],
])('to %s', async (_, intent, authority, code) => {
  const { signer } = startSigner()
  const outcome = await signer.sign(intent, sealed(authority))
  expect(outcome.ok ? 'signed' : outcome.rejection.code).toBe(code)
})

test('a later attempt keeps sequence and payment, and may ask more and live longer', async () => {
  const first = paying(48_213)
  const codes = async (changes: Partial<XrpIntent>) => {
    const { signer } = startSigner()
    await signer.sign(first, sealed(payout))
    const outcome = await signer.sign({ ...first, attempt: 2, ...changes }, sealed(payout))
    return outcome.ok ? 'signed' : outcome.rejection.code
  }
  expect(await codes({ feeDrops: 20n, lastLedgerSequence: 2_000 })).toBe('signed')
  expect(await codes({ sequence: 6 })).toBe('conflict')
  expect(await codes({ payment: { to: customerXrp, tag: 48_213, drops: 2n } })).toBe('conflict')
})
