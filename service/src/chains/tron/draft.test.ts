import { expect, test } from 'vitest'
import { assert } from '../../domain/assert.ts'
import { accept } from '../../domain/outcome.ts'
import type { Outflow, TronIntent } from '../../domain/payouts/intent.ts'
import type { FeeBid, Funds } from '../chain.ts'
import { hexOf } from './address.ts'
import { draft, raise } from './draft.ts'

const payee = 'TJRabPrwbZy45sbavfcjinPJC18kjpRTv8'
const tether = 'TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t'
const drafter = {
  contractOf: (asset: Outflow['asset']) => (asset === 'TRX:TRX' ? null : hexOf(tether)),
  parseAddress: (text: string) => accept(text),
}
const key = { purpose: 'reserve', index: 0 } as const
const funds: Funds = { model: 'timed', from: key }
const bidAt = (timeMs: number, changes: object = {}): FeeBid & { family: 'tron' } => ({
  family: 'tron',
  energySun: 0n,
  feeLimitSun: 0n,
  otherSun: 300_000n,
  reference: { id: 'ab'.repeat(32), timeMs },
  expirationMs: timeMs + 60_000,
  ...changes,
})
const outflow = (changes: Partial<Outflow> = {}): Outflow => ({
  payoutId: 'CB1:1',
  kind: 'payout',
  asset: 'TRX:TRX',
  units: 25_000_000n,
  address: payee,
  tag: null,
  ...changes,
})
const sweep = (changes: Partial<Outflow> = {}) =>
  outflow({ kind: 'sweep', from: { key: { purpose: 'deposit', index: 3 }, address: tether }, ...changes })
const holding = (held: bigint): Funds => ({ model: 'timed', from: { purpose: 'deposit', index: 3 }, held })
const token = { asset: 'USDT:TRC20', units: 7n * 10n ** 18n } as const
const tokenBid = bidAt(100_000_000, { energySun: 1_300_000n, feeLimitSun: 3_300_000n })

function drafted(of: Outflow, bid: FeeBid = bidAt(100_000_000), from: Funds = funds): TronIntent {
  const intent = draft(drafter, of, bid, from)
  assert(intent.ok, intent.ok ? '' : intent.rejection.message)
  return intent.value
}

test('a payout refers to a solid block and has no time before it', () => {
  const { timestampMs, ...intent } = drafted(outflow())
  expect(intent).toEqual({
    family: 'tron',
    chain: 'TRX',
    payoutId: 'CB1:1',
    attempt: 1,
    from: key,
    to: payee,
    units: 25_000_000n,
    token: null,
    feeLimitSun: 0n,
    reference: { id: 'ab'.repeat(32), timeMs: 100_000_000 },
    expirationMs: 100_060_000,
  })
  expect(timestampMs).not.toBe(drafted(outflow({ payoutId: 'CB2:1' })).timestampMs)
})

test('a token is paid in its own units, by its contract, with a fee limit', () => {
  const intent = drafted(outflow(token), tokenBid)
  expect(intent).toMatchObject({ units: 7_000_000n, token: tether, feeLimitSun: 3_300_000n })
})

test('out of a deposit address TRX goes whole, less its cost', () => {
  expect(drafted(sweep(), bidAt(1), holding(25_000_000n)).units).toBe(24_700_000n)
  const tooLittle = draft(drafter, sweep(), bidAt(1), holding(300_000n))
  expect(tooLittle).toMatchObject({ ok: false, rejection: { code: 'funds' } })
})

test('out of a deposit address a token takes what there is for its energy, if it is enough', () => {
  const of = sweep(token)
  expect(drafted(of, tokenBid, holding(9_000_000n)).feeLimitSun).toBe(3_300_000n)
  expect(drafted(of, tokenBid, holding(1_600_000n)).feeLimitSun).toBe(1_300_000n)
  const tooLittle = draft(drafter, of, tokenBid, holding(1_599_999n))
  expect(tooLittle).toMatchObject({ ok: false, rejection: { code: 'funds' } })
})

test('the next attempt is valid only when the one before no longer is', () => {
  const first = drafted(outflow(token), tokenBid)
  expect(raise(first, bidAt(first.expirationMs - 1))).toMatchObject({
    ok: false,
    rejection: { code: 'network' },
  })
  const next = raise(first, bidAt(first.expirationMs, { feeLimitSun: 4_000_000n }))
  assert(next.ok, 'its time is over')
  const { attempt, feeLimitSun, reference, expirationMs, timestampMs: _, ...same } = next.value
  expect({ attempt, feeLimitSun }).toEqual({ attempt: 2, feeLimitSun: 4_000_000n })
  expect(reference.timeMs).toBe(first.expirationMs)
  expect(expirationMs).toBe(first.expirationMs + 60_000)
  expect(first).toMatchObject(same)
})

test('nothing waits for a filler, and a payout pays something', () => {
  expect(() => drafted(outflow({ kind: 'filler', units: 0n }))).toThrow()
  expect(() => drafted(outflow({ units: 0n }))).toThrow()
})
