import { createPublicKey, verify } from 'node:crypto'
import { base58 } from '@scure/base'
import {
  type Address,
  type CompiledTransactionMessage,
  type CompiledTransactionMessageWithLifetime,
  decompileTransactionMessage,
  getCompiledTransactionMessageDecoder,
  getTransactionDecoder,
} from '@solana/kit'
import { parseTransferSolInstruction } from '@solana-program/system'
import {
  findAssociatedTokenPda,
  parseCreateAssociatedTokenIdempotentInstruction,
  parseTransferCheckedInstruction,
  TOKEN_PROGRAM_ADDRESS,
} from '@solana-program/token'
import { expect, test } from 'vitest'
import { assert } from '../../domain/assert.ts'
import type { SolanaIntent } from '../../domain/payouts/intent.ts'
import { solanaAddress } from '../addresses/solana_address.ts'
import { findReplacementProblem } from '../replacement.ts'
import type { Authority } from '../signer.ts'
import { customerSolana, keys, sealed, solanaIntent, startSigner, usdcSolana } from '../testing/fixtures.ts'
import { signSolana } from './solana_transaction.ts'

/**
 * What: what is signed on Solana says what the intent says and nothing else, and no second attempt that could be valid
 * together with the first.
 * How: the bytes are read by the field's own client library.
 */
const caps = { feeLamportsMax: 100_000n }
const reserveKey = { purpose: 'reserve', index: 0 } as const
const depositKey = { purpose: 'deposit', index: 4 } as const
const [reserve, deposit] = [solanaAddress(keys, reserveKey), solanaAddress(keys, depositKey)]
const tokenIntent = (changes: Partial<SolanaIntent> = {}) =>
  solanaIntent({ token: usdcSolana, units: 7_000_000n, ...changes })

async function signed(intent: SolanaIntent) {
  const outcome = await signSolana(intent, keys, caps, 6)
  assert(outcome.ok, outcome.ok ? '' : outcome.rejection.message)
  const { txHash, bytes } = outcome.value
  const { messageBytes, signatures } = getTransactionDecoder().decode(Buffer.from(bytes, 'hex'))
  const compiled = getCompiledTransactionMessageDecoder().decode(messageBytes)
  const message = decompileTransactionMessage(
    compiled as CompiledTransactionMessage & CompiledTransactionMessageWithLifetime,
  )
  return { txHash, bytes, messageBytes, signatures, message }
}

type Signed = Awaited<ReturnType<typeof signed>>

/** Who signed, in order. A signature that is not of them fails the test. */
function signersOf({ messageBytes, signatures }: Signed): readonly string[] {
  return Object.entries(signatures).map(([signer, signature]) => {
    const x = Buffer.from(base58.decode(signer)).toString('base64url')
    const key = createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x }, format: 'jwk' })
    expect(verify(null, Uint8Array.from(messageBytes), key, Uint8Array.from(signature ?? []))).toBe(true)
    return signer
  })
}

type Whole<Parse extends (instruction: never) => unknown> = Parameters<Parse>[0]

async function holdingOf(owner: string) {
  const mint = usdcSolana as Address
  return (
    await findAssociatedTokenPda({ owner: owner as Address, mint, tokenProgram: TOKEN_PROGRAM_ADDRESS })
  )[0]
}

test('the bytes of a payout say what the intent says, and carry the signature of the account they leave', async () => {
  const intent = solanaIntent()
  const tx = await signed(intent)
  expect(signersOf(tx)).toEqual([reserve])
  expect(base58.encode(Uint8Array.from(tx.signatures[reserve as Address] ?? []))).toBe(tx.txHash)
  const { feePayer, instructions, lifetimeConstraint } = tx.message
  expect(feePayer.address).toBe(reserve)
  expect(lifetimeConstraint).toMatchObject({ blockhash: intent.reference.blockhash })
  const [transfer, ...budget] = instructions
  const { accounts, data } = parseTransferSolInstruction(
    transfer as Whole<typeof parseTransferSolInstruction>,
  )
  expect(data.amount).toBe(25_000_000n)
  expect([accounts.source.address, accounts.destination.address]).toEqual([reserve, customerSolana])
  expect(budget.map(({ data }) => Buffer.from(data ?? []).toString('hex'))).toEqual([
    '0260ea0000',
    '036400000000000000',
  ])
})

test('a token goes to where its owner looks for it, which is made if need be', async () => {
  const { message } = await signed(tokenIntent())
  const [make, transfer] = message.instructions
  const made = parseCreateAssociatedTokenIdempotentInstruction(
    make as Whole<typeof parseCreateAssociatedTokenIdempotentInstruction>,
  )
  expect(made.accounts).toMatchObject({
    payer: { address: reserve },
    owner: { address: customerSolana },
    mint: { address: usdcSolana },
  })
  const { accounts, data } = parseTransferCheckedInstruction(
    transfer as Whole<typeof parseTransferCheckedInstruction>,
  )
  expect(data).toMatchObject({ amount: 7_000_000n, decimals: 6 })
  expect(accounts).toMatchObject({
    source: { address: await holdingOf(reserve) },
    destination: { address: await holdingOf(customerSolana) },
    authority: { address: reserve },
  })
})

test('a token that leaves a deposit address is paid for by the reserve, and both sign', async () => {
  const tx = await signed(tokenIntent({ from: depositKey, to: reserve }))
  expect(signersOf(tx)).toEqual([reserve, deposit])
  expect(tx.message.feePayer.address).toBe(reserve)
})

test('signed twice it is the same bytes; for another payout or attempt it is another transaction', async () => {
  const { bytes, txHash } = await signed(tokenIntent())
  expect(await signed(structuredClone(tokenIntent()))).toMatchObject({ bytes, txHash })
  for (const changes of [{ payoutId: 'CB2:1' }, { attempt: 2 }])
    expect((await signed(tokenIntent(changes))).txHash).not.toBe(txHash)
})

test.each([
  ['a fee above the cap', { unitPriceMicroLamports: 2_000_000n }, 'limit_exceeded'],
  ['a change key', { from: { purpose: 'change', index: 0 } }, 'malformed'],
  ['another payer for coin', { from: depositKey }, 'malformed'],
  ['a payer who has nothing to do with it', { payer: depositKey, token: usdcSolana }, 'malformed'],
  [
    'another reserve key as payer',
    { from: depositKey, payer: { purpose: 'reserve', index: 1 }, token: usdcSolana },
    'malformed',
  ],
  [
    'the reserve as payer for another reserve key',
    { from: { purpose: 'reserve', index: 1 }, token: usdcSolana },
    'malformed',
  ],
  ['another life than the network gives', { lastHeight: 1_152 }, 'malformed'],
  ['a shorter life', { lastHeight: 1_149 }, 'malformed'],
] as const)('%s is not signed', async (_, changes, code) => {
  expect(await signSolana(solanaIntent(changes), keys, caps, 9)).toMatchObject({ rejection: { code } })
  expect(await signSolana(solanaIntent(), keys, undefined, 9)).toMatchObject({ ok: false })
})

const first = tokenIntent()
const laterAt = (height: number, changes: Partial<SolanaIntent> = {}) =>
  tokenIntent({
    attempt: 2,
    reference: { ...first.reference, height },
    lastHeight: height + 151,
    ...changes,
  })
const later = (changes: Partial<SolanaIntent> = {}) => laterAt(first.lastHeight, changes)

test('a further attempt is valid only when every earlier one no longer is', () => {
  const problem = (next: SolanaIntent) => findReplacementProblem(next, first, 'payout')
  expect(problem(later())).toBeNull()
  expect(problem(later({ unitPriceMicroLamports: 500n }))).toBeNull()
  expect(problem(laterAt(first.lastHeight - 1))).toMatch(/valid only when/)
  // As it was drafted while a block less was counted.
  expect(findReplacementProblem(laterAt(1_150), { ...first, lastHeight: 1_150 }, 'payout')).toMatch(
    /valid only when/,
  )
  expect(problem(later({ units: 1n }))).toMatch(/pays the same/)
  expect(problem(later({ to: usdcSolana }))).toMatch(/pays the same/)
  expect(problem(later({ token: null }))).toMatch(/pays the same/)
  expect(problem(later({ from: { purpose: 'reserve', index: 1 } }))).toMatch(/pays the same/)
})

const payout = (changes: Partial<Omit<Authority, 'seal'>> = {}) =>
  sealed({ payoutAsset: 'USDC:SOL', destination: customerSolana, depositAsset: 'SOL:SOL', ...changes })

async function codeOf(intent: SolanaIntent, authority: Authority): Promise<string> {
  const answer = await startSigner().signer.sign(intent, authority)
  return answer.ok ? 'signed' : answer.rejection.code
}

test('the signer obeys the seal, the list of mints and the caps', async () => {
  expect(await codeOf(first, payout())).toBe('signed')
  expect(await codeOf(tokenIntent({ to: usdcSolana }), payout())).toBe('not_the_destination')
  expect(await codeOf(tokenIntent({ token: customerSolana }), payout())).toBe('malformed')
  expect(await codeOf(solanaIntent(), payout())).toBe('not_the_asset')
  expect(await codeOf(tokenIntent({ units: 10_000_000_001n }), payout())).toBe('limit_exceeded')
  const refund = payout({ kind: 'refund', refundAddress: customerSolana })
  expect(await codeOf(solanaIntent(), refund)).toBe('signed')
  expect(await codeOf(solanaIntent(), payout({ kind: 'filler' })), 'nothing waits for one').toBe('malformed')
  const sweep = payout({ kind: 'sweep' })
  expect(await codeOf(tokenIntent({ from: depositKey, to: reserve }), sweep)).toBe('signed')
  expect(await codeOf(tokenIntent({ from: depositKey }), sweep)).toBe('not_the_destination')
  const gas = payout({ kind: 'sweep', payeeKey: depositKey })
  expect(await codeOf(solanaIntent({ to: deposit }), gas), 'no gas is brought').toBe('malformed')
})

test('an attempt that could be valid together with an earlier one is refused, whatever the service says', async () => {
  const { signer } = startSigner()
  expect(await signer.sign(first, payout())).toMatchObject({ ok: true })
  const together = laterAt(first.reference.height)
  expect(await signer.sign(together, payout())).toMatchObject({ ok: false, rejection: { code: 'conflict' } })
  expect(await signer.sign(later(), payout())).toMatchObject({ ok: true })
})
