import { expect, test } from 'vitest'
import { assert } from '../../domain/assert.ts'
import { accept } from '../../domain/outcome.ts'
import type { Outflow, SolanaIntent } from '../../domain/payouts/intent.ts'
import { solanaFeeOf } from '../../domain/payouts/solana_fee.ts'
import type { FeeBid, Funds } from '../chain.ts'
import { draft, raise } from './draft.ts'

const payee = '7UkEVmiaC9pPb5DtFrP4pW2ykVAHpmGLUALV9WVRwAo2'
const mint = 'EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v'
const CAP = 1_000_000n
const drafter = {
  feeLamportsMax: CAP,
  mintOf: (asset: Outflow['asset']) => (asset === 'SOL:SOL' ? null : mint),
  parseAddress: (text: string) => accept(text),
}
const key = { purpose: 'reserve', index: 0 } as const
const depositKey = { purpose: 'deposit', index: 3 } as const
const funds: Funds = { model: 'timed', from: key }
const bidAt = (height: number): FeeBid & { family: 'solana' } => ({
  family: 'solana',
  units: 1_000,
  unitPriceMicroLamports: 7n,
  feeLamports: 5_001n,
  holdingRentLamports: 2_039_280n,
  reference: { slot: height + 100, blockhash: 'a'.repeat(44), height },
})
const outflow = (changes: Partial<Outflow> = {}): Outflow => ({
  payoutId: 'CB1:1',
  kind: 'payout',
  asset: 'SOL:SOL',
  units: 25_000_000n,
  address: payee,
  tag: null,
  ...changes,
})
const sweep = (changes: Partial<Outflow> = {}) =>
  outflow({ kind: 'sweep', from: { key: depositKey, address: mint }, ...changes })
const holding = (held: bigint): Funds => ({ model: 'timed', from: depositKey, held })
const token = { asset: 'USDC:SOL', units: 7n * 10n ** 18n } as const

function drafted(of: Outflow, from: Funds = funds): SolanaIntent {
  const intent = draft(drafter, of, bidAt(1_000), from)
  assert(intent.ok, intent.ok ? '' : intent.rejection.message)
  return intent.value
}

test('a payout refers to a final block and may be in the 151 after it', () => {
  expect(drafted(outflow())).toEqual({
    family: 'solana',
    chain: 'SOL',
    payoutId: 'CB1:1',
    attempt: 1,
    from: key,
    payer: key,
    to: payee,
    units: 25_000_000n,
    token: null,
    computeUnits: 1_000,
    unitPriceMicroLamports: 7n,
    reference: { slot: 1_100, blockhash: 'a'.repeat(44), height: 1_000 },
    lastHeight: 1_151,
  })
})

test('a token is paid in its own units', () => {
  expect(drafted(outflow(token))).toMatchObject({ units: 7_000_000n, token: mint, payer: key })
})

test('out of a deposit address SOL goes whole, less its fee, and a token for the account of the reserve', () => {
  expect(drafted(sweep(), holding(25_000_000n))).toMatchObject({ units: 24_994_999n, payer: depositKey })
  expect(draft(drafter, sweep(), bidAt(1), holding(5_001n))).toMatchObject({ rejection: { code: 'funds' } })
  expect(drafted(sweep(token), holding(0n))).toMatchObject({
    units: 7_000_000n,
    from: depositKey,
    payer: key,
  })
})

test('the next attempt is valid only when the one before no longer is', () => {
  const first = drafted(outflow(token))
  expect(raise(drafter, first, bidAt(1_150))).toMatchObject({ ok: false, rejection: { code: 'network' } })
  const { reference } = bidAt(1_151)
  const unitPriceMicroLamports = expect.any(BigInt)
  expect(raise(drafter, first, bidAt(1_151))).toEqual({
    ok: true,
    value: { ...first, attempt: 2, reference, lastHeight: 1_302, unitPriceMicroLamports },
  })
})

test('the next attempt bids more than the one that was in no block, whatever others are said to pay, up to the cap', () => {
  const prices: bigint[] = []
  let attempt = drafted(outflow())
  for (let height = 2_000; prices.length < 15; height += 1_000) {
    const next = raise(drafter, attempt, bidAt(height))
    assert(next.ok, 'it is over')
    attempt = next.value
    prices.push(attempt.unitPriceMicroLamports)
    expect(solanaFeeOf(attempt)).toBeLessThanOrEqual(CAP)
  }
  expect(prices.slice(0, 3)).toEqual([5_000_000n, 10_000_000n, 20_000_000n])
  expect(solanaFeeOf(attempt)).toBe(CAP)
  const dear = { ...bidAt(2_000), unitPriceMicroLamports: 6_000_000n }
  expect(raise(drafter, drafted(outflow()), dear)).toMatchObject({
    value: { unitPriceMicroLamports: 6_000_000n },
  })
})
