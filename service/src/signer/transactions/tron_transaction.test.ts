import { createHash } from 'node:crypto'
import { utils } from 'tronweb'
import { expect, test } from 'vitest'
import { assert } from '../../domain/assert.ts'
import type { TronIntent } from '../../domain/payouts/intent.ts'
import { findReplacementProblem } from '../replacement.ts'
import type { Authority } from '../signer.ts'
import { customerTron, keys, sealed, startSigner, tronIntent, usdtTron } from '../testing/fixtures.ts'
import { signTron } from './tron_transaction.ts'

/**
 * What: what is signed on TRON says what the intent says and nothing else, and no second attempt that could be valid
 * together with the first.
 * How: the bytes are read by the field's own client library.
 */
const caps = { feeLimitSunMax: 50_000_000n, sweepGasSunMax: 60_000_000n }
const account = keys.address('tron', { purpose: 'reserve', index: 0 })
const tokenIntent = (changes: Partial<TronIntent> = {}) =>
  tronIntent({ token: usdtTron, units: 7_000_000n, feeLimitSun: 3_300_000n, ...changes })

async function signed(intent: TronIntent) {
  const outcome = await signTron(intent, keys, caps)
  assert(outcome.ok, outcome.ok ? '' : outcome.rejection.message)
  const { txHash, bytes } = outcome.value
  const rawLength = bytes.length - 2 * (1 + 1 + 65)
  const [rawHex, signature] = [bytes.slice(0, rawLength), bytes.slice(-130)]
  // The field's number, and its length in one or two bytes.
  const raw = rawHex.slice(Number.parseInt(rawHex.slice(2, 4), 16) > 0x7f ? 6 : 4)
  return { txHash, bytes, raw, signature }
}

const hexOf = (address: string) => utils.address.toHex(address).toLowerCase()

test('the bytes of a payout say what the intent says, and carry the signature of the account they leave', async () => {
  const { txHash, raw, signature } = await signed(tronIntent())
  expect(txHash).toBe(createHash('sha256').update(Buffer.from(raw, 'hex')).digest('hex'))
  expect(utils.crypto.ecRecover(txHash, signature).toLowerCase()).toBe(hexOf(account))
  const told = utils.deserializeTx.deserializeTransaction('TransferContract', raw)
  expect(told.contract[0]?.parameter.value).toMatchObject({
    owner_address: hexOf(account).toUpperCase(),
    to_address: hexOf(customerTron).toUpperCase(),
    amount: 25_000_000,
  })
  expect(told).toMatchObject({
    ref_block_bytes: 'ABCD',
    ref_block_hash: 'EF'.repeat(8),
    expiration: 1_790_000_060_000,
    timestamp: 1_789_999_990_000,
  })
})

test('a token is paid by its contract, within the fee limit, and no coin goes along', async () => {
  const { raw } = await signed(tokenIntent())
  const told = utils.deserializeTx.deserializeTransaction('TriggerSmartContract', raw)
  const { call_value, ...value } = told.contract[0]?.parameter.value ?? {}
  expect(call_value ?? 0).toBe(0)
  expect(value).toMatchObject({
    owner_address: hexOf(account).toUpperCase(),
    contract_address: hexOf(usdtTron).toUpperCase(),
  })
  const payee = hexOf(customerTron).slice(2).padStart(64, '0')
  expect(String(value.data).toLowerCase()).toBe(
    `a9059cbb${payee}${(7_000_000).toString(16).padStart(64, '0')}`,
  )
  expect(told).toMatchObject({ fee_limit: 3_300_000 })
})

test('signed twice it is the same bytes', async () => {
  expect(await signed(tokenIntent())).toEqual(await signed(structuredClone(tokenIntent())))
})

test.each([
  ['a fee limit above the cap', { feeLimitSun: 50_000_001n }, 'limit_exceeded'],
  ['a change key', { from: { purpose: 'change', index: 0 } }, 'malformed'],
  ['no time at all', { expirationMs: 1_790_000_000_000 }, 'malformed'],
  ['more than a day', { expirationMs: 1_790_086_400_001 }, 'malformed'],
] as const)('%s is not signed', async (_, changes, code) => {
  expect(await signTron(tronIntent(changes), keys, caps)).toMatchObject({ ok: false, rejection: { code } })
  expect(await signTron(tronIntent(), keys, undefined)).toMatchObject({ ok: false })
})

const first = tokenIntent()
const later = (changes: Partial<TronIntent> = {}) =>
  tokenIntent({
    attempt: 2,
    reference: { ...first.reference, timeMs: first.expirationMs },
    expirationMs: first.expirationMs + 60_000,
    ...changes,
  })

test('a further attempt is valid only when every earlier one no longer is', () => {
  expect(findReplacementProblem(later(), first, 'payout')).toBeNull()
  expect(findReplacementProblem(later({ feeLimitSun: 9_000_000n }), first, 'payout')).toBeNull()
  const early = { ...first.reference, timeMs: first.expirationMs - 1 }
  expect(findReplacementProblem(later({ reference: early }), first, 'payout')).toMatch(/valid only when/)
  expect(findReplacementProblem(later({ units: 1n }), first, 'payout')).toMatch(/pays the same/)
  expect(findReplacementProblem(later({ to: usdtTron }), first, 'payout')).toMatch(/pays the same/)
  expect(findReplacementProblem(later({ token: null }), first, 'payout')).toMatch(/pays the same/)
  const from = { purpose: 'reserve', index: 1 } as const
  expect(findReplacementProblem(later({ from }), first, 'payout')).toMatch(/pays the same/)
})

const payout = (changes: Partial<Omit<Authority, 'seal'>> = {}) =>
  sealed({ payoutAsset: 'USDT:TRC20', destination: customerTron, depositAsset: 'TRX:TRX', ...changes })

async function codeOf(intent: TronIntent, authority: Authority): Promise<string> {
  const answer = await startSigner().signer.sign(intent, authority)
  return answer.ok ? 'signed' : answer.rejection.code
}

test('the signer obeys the seal, the list of contracts and the caps', async () => {
  const deposit = { purpose: 'deposit', index: 4 } as const
  const reserve = account
  expect(await codeOf(first, payout())).toBe('signed')
  expect(await codeOf(tokenIntent({ to: usdtTron }), payout())).toBe('not_the_destination')
  expect(await codeOf(tokenIntent({ token: customerTron }), payout())).toBe('malformed')
  expect(await codeOf(tronIntent(), payout())).toBe('not_the_asset')
  expect(await codeOf(tokenIntent({ units: 10_000_000_001n }), payout())).toBe('limit_exceeded')
  const refund = payout({ kind: 'refund', refundAddress: customerTron })
  expect(await codeOf(tronIntent(), refund)).toBe('signed')
  expect(await codeOf(tronIntent(), payout({ kind: 'filler' })), 'nothing waits for one').toBe('malformed')
  const sweep = payout({ kind: 'sweep' })
  expect(await codeOf(tokenIntent({ from: deposit, to: reserve }), sweep)).toBe('signed')
  expect(await codeOf(tokenIntent({ from: deposit }), sweep)).toBe('not_the_destination')
})

test('coin for energy goes to a deposit address of ours, and not much of it', async () => {
  const deposit = { purpose: 'deposit', index: 4 } as const
  const to = keys.address('tron', deposit)
  const gas = payout({ kind: 'sweep', payeeKey: deposit })
  expect(await codeOf(tronIntent({ to, units: 60_000_000n }), gas)).toBe('signed')
  expect(await codeOf(tronIntent({ to, units: 60_000_001n }), gas)).toBe('limit_exceeded')
  expect(await codeOf(tronIntent(), gas)).toBe('not_the_destination')
  expect(await codeOf(tokenIntent({ to }), gas)).toBe('malformed')
})

test('an attempt that could be valid together with an earlier one is refused, whatever the service says', async () => {
  const { signer } = startSigner()
  expect(await signer.sign(first, payout())).toMatchObject({ ok: true })
  const together = later({ reference: first.reference })
  expect(await signer.sign(together, payout())).toMatchObject({ ok: false, rejection: { code: 'conflict' } })
  expect(await signer.sign(later(), payout())).toMatchObject({ ok: true })
})
