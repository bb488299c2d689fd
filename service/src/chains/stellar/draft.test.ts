import { encodeMuxedAccount, encodeMuxedAccountToAddress } from '@stellar/stellar-sdk/base'
import { expect, test } from 'vitest'
import { assert } from '../../domain/assert.ts'
import { nonceOf, type Outflow, type StellarIntent } from '../../domain/payouts/intent.ts'
import type { FeeBid, Funds } from '../chain.ts'
import { LIFE_S } from './bid.ts'
import { draft, raise } from './draft.ts'

const account = 'GA7QYNF7SOWQ3GLR2BGMZEHXAVIRZA4KVWLTJJFC7MGXUA74P7UJVSGZ'
const muxed = encodeMuxedAccountToAddress(encodeMuxedAccount(account, '9'))
const passphrase = 'Standalone Network ; February 2017'
const funds: Funds = { model: 'account', from: { purpose: 'reserve', index: 0 }, nonce: 7 }
/** What no number holds exactly. */
const sequenceBase = 60_000_000n << 32n
const bidAt = (closedAtS: number, more: { feeStroops?: bigint; creates?: boolean } = {}): FeeBid => ({
  family: 'stellar',
  feeStroops: 200n,
  maxTimeS: closedAtS + LIFE_S,
  sequenceBase,
  creates: false,
  ...more,
})
const outflow = (changes: Partial<Outflow> = {}): Outflow => ({
  payoutId: 'CB1:1',
  kind: 'payout',
  asset: 'XLM:XLM',
  units: 250_000_000n,
  address: account,
  tag: '48213',
  ...changes,
})

function drafted(changes: Partial<Outflow> = {}, bid = bidAt(100)): StellarIntent {
  const intent = draft(passphrase, outflow(changes), bid, funds)
  assert(intent.ok, intent.ok ? '' : intent.rejection.message)
  return intent.value
}

test('a payout is a payment of stroops under the sequence that was given', () => {
  const intent = drafted()
  expect(intent).toEqual({
    family: 'stellar',
    chain: 'XLM',
    passphrase,
    payoutId: 'CB1:1',
    attempt: 1,
    from: { purpose: 'reserve', index: 0 },
    sequence: sequenceBase + 7n,
    payment: { to: account, memo: '48213', stroops: 250_000_000n, creates: false },
    feeStroops: 200n,
    maxTimeS: 100 + LIFE_S,
  })
  expect(nonceOf(intent)).toBe(7)
})

test('a muxed address has its memo inside, and a refund may have none', () => {
  expect(drafted({ address: muxed, tag: '9' }).payment).toMatchObject({ to: muxed, memo: null })
  expect(drafted({ kind: 'refund', address: muxed, tag: null }).payment).toMatchObject({
    to: muxed,
    memo: null,
  })
  expect(drafted({ kind: 'refund', tag: null }).payment).toMatchObject({ to: account, memo: null })
})

test('an account that is not there is made', () => {
  expect(drafted({}, bidAt(100, { creates: true })).payment).toMatchObject({ creates: true })
})

test('a filler pays nobody', () => {
  expect(drafted({ kind: 'filler', units: 0n, tag: null }).payment).toBeNull()
  expect(() => drafted({ kind: 'filler', units: 1n })).toThrow()
  expect(() => drafted({ units: 0n })).toThrow()
})

test.each([
  ['an address that is none', { address: 'GNOBODY' }],
  ['a memo that is too long', { tag: 'x'.repeat(29) }],
  ['two memos', { address: muxed }],
])('%s is no destination', (_, changes) => {
  const intent = draft(passphrase, outflow(changes), bidAt(100), funds)
  expect(intent).toMatchObject({ ok: false, rejection: { code: 'destination' } })
})

test('an attempt is followed by another only when a ledger has closed after its time', () => {
  const first = drafted()
  const raised = (closedAtS: number) => raise(first, bidAt(closedAtS, { feeStroops: 300n, creates: true }))
  expect(raised(first.maxTimeS - 1)).toMatchObject({ ok: false, rejection: { code: 'network' } })
  expect(raised(first.maxTimeS), 'a ledger may close at that very second').toMatchObject({ ok: false })
  const next = raised(first.maxTimeS + 1)
  assert(next.ok, 'it is replaced')
  expect(next.value).toEqual({
    ...first,
    attempt: 2,
    feeStroops: 300n,
    maxTimeS: first.maxTimeS + 1 + LIFE_S,
    payment: { ...first.payment, creates: true },
  })
})
