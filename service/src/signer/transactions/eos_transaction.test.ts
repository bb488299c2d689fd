import { HDKey } from '@scure/bip32'
import { mnemonicToSeedSync } from '@scure/bip39'
import {
  Bytes,
  KeyType,
  PackedTransaction,
  PrivateKey,
  Serializer,
  type Struct,
  type Transaction,
} from '@wharfkit/antelope'
import { expect, test } from 'vitest'
import { assert } from '../../domain/assert.ts'
import type { EosIntent } from '../../domain/payouts/intent.ts'
import { findReplacementProblem } from '../replacement.ts'
import type { Authority } from '../signer.ts'
import {
  customerEos,
  eosAccount,
  eosIntent,
  keys,
  sealed,
  settings,
  startSigner,
} from '../testing/fixtures.ts'
import { eosPublicKey, signEos } from './eos_transaction.ts'

/**
 * What: what is signed on EOS says what the intent says and nothing else, and no second attempt that could be valid together
 * with the first.
 * How: the bytes are read by the field's own client library.
 */
const chainId = 'aa'.repeat(32)

function signed(intent: EosIntent) {
  const outcome = signEos(intent, keys, settings.eos)
  assert(outcome.ok, outcome.ok ? '' : outcome.rejection.message)
  const { txHash, bytes } = outcome.value
  const packed = Serializer.decode({ data: bytes, type: PackedTransaction })
  return { txHash, bytes, packed, transaction: packed.getTransaction() }
}

function transferIn({ actions }: Transaction) {
  const fields = { from: 'name', to: 'name', quantity: 'asset', memo: 'string' }
  const named = Object.entries(fields).map(([name, type]) => ({ name, type }))
  const abi = { structs: [{ name: 'transfer', base: '', fields: named }] }
  return Serializer.objectify(
    Serializer.decode({ data: actions[0]?.data ?? '', type: 'transfer', abi }) as Struct,
  )
}

test('the bytes of a payout say what the intent says, and carry the signature of the key that the account obeys', () => {
  const { txHash, packed, transaction } = signed(eosIntent())
  expect(String(transaction.id)).toBe(txHash)
  expect(Serializer.objectify(transaction)).toMatchObject({
    expiration: new Date(1_790_000_061_000).toISOString().slice(0, 19),
    ref_block_num: 0xabcd,
    ref_block_prefix: 0x78563412,
    max_net_usage_words: 1_234_567,
    delay_sec: 0,
    context_free_actions: [],
    actions: [
      {
        account: 'eosio.token',
        name: 'transfer',
        authorization: [{ actor: eosAccount, permission: 'active' }],
      },
    ],
    transaction_extensions: [],
  })
  expect(transferIn(transaction)).toEqual({
    from: eosAccount,
    to: customerEos,
    quantity: '25.0000 EOS',
    memo: '48213',
  })
  const [signature] = packed.signatures
  const signer = signature?.recoverDigest(transaction.signingDigest(chainId))
  expect([packed.signatures.length, String(signer)]).toEqual([1, eosPublicKey(keys)])
})

test('a payee whose contract runs when it is paid gets little of the CPU of the account', () => {
  const { transaction } = signed(eosIntent())
  expect(transaction.max_cpu_usage_ms.toNumber()).toBeGreaterThan(0)
  expect(transaction.max_cpu_usage_ms.toNumber()).toBeLessThanOrEqual(5)
})

test('a memo may be empty, or words of 256 bytes', () => {
  for (const memo of ['', 'ä'.repeat(128)]) {
    const { transaction } = signed(eosIntent({ payment: { to: customerEos, memo, units: 1n } }))
    expect(transferIn(transaction)).toMatchObject({ memo, quantity: '0.0001 EOS' })
  }
})

test('signed twice it is the same bytes, and of another payout it is others', () => {
  expect(signed(eosIntent()).bytes).toBe(signed(structuredClone(eosIntent())).bytes)
  expect(signed(eosIntent({ netWordsMax: 1_234_568 })).txHash).not.toBe(signed(eosIntent()).txHash)
})

test('the key is the first one of every wallet that follows BIP-44', () => {
  const seed = mnemonicToSeedSync(`${'test '.repeat(11)}junk`)
  const { privateKey } = HDKey.fromMasterSeed(seed).derive("m/44'/194'/0'/0/0")
  assert(privateKey !== null, 'it has a private half')
  expect(String(new PrivateKey(KeyType.K1, Bytes.from(privateKey)).toPublic())).toBe(eosPublicKey(keys))
})

test.each([
  ['another chain', { chainId: 'ab'.repeat(32) }],
  ['another account', { account: 'devnetfaucet' }],
  ['a deposit key', { from: { purpose: 'deposit', index: 0 } }],
  ['another key of the reserve', { from: { purpose: 'reserve', index: 1 } }],
  ['257 bytes of memo', { payment: { to: customerEos, memo: `${'ä'.repeat(128)}a`, units: 1n } }],
  ['half a second', { expirationMs: 1_790_000_061_500 }],
  ['no time at all', { expirationMs: 1_790_000_000_000 }],
  ['more than an hour', { expirationMs: 1_790_003_601_000 }],
] satisfies [string, Partial<EosIntent>][])('%s is not signed', (_, changes) => {
  const refused = signEos(eosIntent(changes), keys, settings.eos)
  expect(refused).toMatchObject({ ok: false, rejection: { code: 'malformed' } })
})

test('nothing is signed where EOS is not configured, or the account is there for another key', () => {
  expect(signEos(eosIntent(), keys, undefined)).toMatchObject({ ok: false })
  const publicKey = 'PUB_K1_6MRyAjQq8ud7hVNYcfnVPJqcVpscN5So8BhtHuGYqET5BoDq63'
  expect(signEos(eosIntent(), keys, { chainId, account: eosAccount, publicKey })).toMatchObject({ ok: false })
})

const first = eosIntent()
const later = (changes: Partial<EosIntent> = {}) =>
  eosIntent({
    attempt: 2,
    reference: { ...first.reference, timeMs: first.expirationMs },
    expirationMs: first.expirationMs + 60_000,
    netWordsMax: 7_654,
    ...changes,
  })

test('a further attempt is valid only when every earlier one no longer is', () => {
  expect(findReplacementProblem(later(), first, 'payout')).toBeNull()
  const early = { ...first.reference, timeMs: first.expirationMs - 1 }
  expect(findReplacementProblem(later({ reference: early }), first, 'payout')).toMatch(/valid only when/)
  for (const change of [{ to: 'alice' }, { memo: '7' }, { units: 1n }]) {
    const payment = { ...first.payment, ...change }
    expect(findReplacementProblem(later({ payment }), first, 'payout')).toMatch(/pays the same/)
  }
  expect(findReplacementProblem(later({ chainId: 'ab'.repeat(32) }), first, 'payout')).toMatch(/chain/)
})

const payout = (changes: Partial<Omit<Authority, 'seal'>> = {}) =>
  sealed({
    payoutAsset: 'EOS:EOS',
    destination: customerEos,
    destinationTag: '48213',
    depositAsset: 'EOS:EOS',
    ...changes,
  })

async function codeOf(intent: EosIntent, authority: Authority): Promise<string> {
  const answer = await startSigner().signer.sign(intent, authority)
  return answer.ok ? 'signed' : answer.rejection.code
}

test('the signer obeys the seal, memo and all, and the caps', async () => {
  const paying = (change: object) => eosIntent({ payment: { ...first.payment, ...change } })
  expect(await codeOf(first, payout())).toBe('signed')
  expect(await codeOf(paying({ to: 'alice' }), payout())).toBe('not_the_destination')
  expect(await codeOf(paying({ memo: '7' }), payout())).toBe('not_the_destination')
  expect(await codeOf(paying({ memo: '' }), payout())).toBe('not_the_destination')
  expect(await codeOf(first, payout({ payoutAsset: 'XRP:XRP' }))).toBe('not_the_asset')
  expect(await codeOf(paying({ units: 1_000_001n }), payout())).toBe('limit_exceeded')
  const refund = (refundAddress: string | null) => payout({ kind: 'refund', refundAddress })
  expect(await codeOf(first, refund(`${customerEos}/48213`))).toBe('signed')
  expect(await codeOf(paying({ memo: '' }), refund(customerEos))).toBe('signed')
  expect(await codeOf(first, refund(customerEos))).toBe('not_the_destination')
  expect(await codeOf(paying({ memo: '' }), refund(`${customerEos}/48213`))).toBe('not_the_destination')
  expect(await codeOf(first, refund(null))).toBe('not_the_destination')
  expect(await codeOf(first, payout({ kind: 'filler' })), 'nothing waits for one').toBe('malformed')
  expect(await codeOf(first, payout({ kind: 'sweep' })), 'one account').toBe('not_the_destination')
})

test('an attempt that could be valid together with an earlier one is refused, whatever the service says', async () => {
  const { signer } = startSigner()
  expect(await signer.sign(first, payout())).toMatchObject({ ok: true })
  const together = later({ reference: first.reference })
  expect(await signer.sign(together, payout())).toMatchObject({ ok: false, rejection: { code: 'conflict' } })
  expect(await signer.sign(later(), payout())).toMatchObject({ ok: true })
})

test('everybody has a memo behind the name of one account, the reserve the last one, and without EOS nobody', async () => {
  const { signer } = startSigner()
  expect(await signer.addresses('eos', 'deposit', 7, 2)).toEqual([`${eosAccount}/7`, `${eosAccount}/8`])
  expect(await signer.addresses('eos', 'reserve', 0, 2)).toEqual([`${eosAccount}/4294967295`, eosAccount])
  await expect(signer.addresses('eos', 'change', 0, 1)).rejects.toThrow('no change addresses')
  const without = startSigner({ eos: undefined } as object).signer
  await expect(without.addresses('eos', 'deposit', 7, 1)).rejects.toThrow('not configured')
})
