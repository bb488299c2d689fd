import { classicAddressToXAddress } from 'ripple-address-codec'
import { expect, test } from 'vitest'
import { assert } from '../../domain/assert.ts'
import type { Outflow, XrpIntent } from '../../domain/payouts/intent.ts'
import type { FeeBid, Funds } from '../chain.ts'
import { LEDGERS_TO_LIVE } from './bid.ts'
import { draft, raise } from './draft.ts'

const account = 'rPT1Sjq2YGrBMTttX4GZHjKu9dyfzbpAYe'
const drafter = { networkId: 31337, spelling: { isMain: false }, feeDropsMax: 1_000n }
const funds: Funds = { model: 'account', from: { purpose: 'reserve', index: 0 }, nonce: 7 }
const bidAt = (ledger: number, feeDrops = 15n): FeeBid => ({
  family: 'xrp',
  feeDrops,
  lastLedgerSequence: ledger + LEDGERS_TO_LIVE,
})
const outflow = (changes: Partial<Outflow> = {}): Outflow => ({
  payoutId: 'CB1:1',
  kind: 'payout',
  asset: 'XRP:XRP',
  units: 25_000_000n,
  address: account,
  tag: '48213',
  ...changes,
})

function drafted(changes: Partial<Outflow> = {}): XrpIntent {
  const intent = draft(drafter, outflow(changes), bidAt(100), funds)
  assert(intent.ok, intent.ok ? '' : intent.rejection.message)
  return intent.value
}

test('a payout is a payment of drops under the sequence that was given', () => {
  expect(drafted()).toEqual({
    family: 'xrp',
    chain: 'XRP',
    networkId: 31337,
    payoutId: 'CB1:1',
    attempt: 1,
    from: { purpose: 'reserve', index: 0 },
    sequence: 7,
    payment: { to: account, tag: 48_213, drops: 25_000_000n },
    feeDrops: 15n,
    lastLedgerSequence: 100 + LEDGERS_TO_LIVE,
  })
})

test('a refund finds its tag in its X-address, or has none', () => {
  const address = classicAddressToXAddress(account, 9, true)
  expect(drafted({ kind: 'refund', address, tag: null }).payment).toMatchObject({ to: account, tag: 9 })
  expect(drafted({ kind: 'refund', tag: null }).payment).toMatchObject({ to: account, tag: null })
})

test('a filler pays nobody', () => {
  expect(drafted({ kind: 'filler', units: 0n, tag: null }).payment).toBeNull()
  expect(() => drafted({ kind: 'filler', units: 1n })).toThrow()
  expect(() => drafted({ units: 0n })).toThrow()
})

test.each([
  ['an address that is none', { address: 'rNobody' }],
  ['a tag that is none', { tag: 'memo' }],
  ['two tags', { address: classicAddressToXAddress(account, 9, true) }],
])('%s is no destination', (_, changes) => {
  const intent = draft(drafter, outflow(changes), bidAt(100), funds)
  expect(intent).toMatchObject({ ok: false, rejection: { code: 'destination' } })
})

test('an attempt that may still be in a ledger is outbid by a quarter, up to the cap', () => {
  const next = raise(drafter, drafted(), bidAt(100 + LEDGERS_TO_LIVE))
  expect(next).toMatchObject({ ok: true, value: { attempt: 2, sequence: 7, feeDrops: 19n } })
  const dear = { ...drafted(), feeDrops: 900n }
  const refused = raise(drafter, dear, bidAt(100 + LEDGERS_TO_LIVE))
  expect(refused).toMatchObject({ ok: false, rejection: { code: 'fee_cap' } })
})

test('one whose last ledger is over costs what the ledger asks now', () => {
  const dear = { ...drafted(), feeDrops: 900n }
  const next = raise(drafter, dear, bidAt(101 + LEDGERS_TO_LIVE, 12n))
  assert(next.ok, 'it is replaced')
  const { attempt, feeDrops, lastLedgerSequence, ...same } = next.value
  expect({ attempt, feeDrops, lastLedgerSequence }).toEqual({
    attempt: 2,
    feeDrops: 12n,
    lastLedgerSequence: 101 + 2 * LEDGERS_TO_LIVE,
  })
  expect(dear).toMatchObject(same)
})
