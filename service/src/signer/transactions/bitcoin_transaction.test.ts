import { createHash, createPublicKey, verify } from 'node:crypto'
import { Transaction } from '@scure/btc-signer'
import fc from 'fast-check'
import { hexToBytes } from 'viem'
import { expect, test } from 'vitest'
import { assert } from '../../domain/assert.ts'
import { bitcoinSpellings } from '../../domain/catalog/bitcoin_spellings.ts'
import type { BitcoinIntent, Coin } from '../../domain/payouts/intent.ts'
import { bitcoinIntent, coin, customerBitcoin, keys, otherBitcoin, settings } from '../testing/fixtures.ts'
import { canonicalBitcoinAddress, signBitcoin } from './bitcoin_transaction.ts'

function signed(intent: BitcoinIntent) {
  const outcome = signBitcoin(intent, keys, settings.bitcoin)
  assert(outcome.ok, outcome.ok ? '' : outcome.rejection.message)
  return outcome.value
}

function rejection(changes: Partial<BitcoinIntent>) {
  const outcome = signBitcoin(bitcoinIntent(changes), keys, settings.bitcoin)
  assert(!outcome.ok, 'the intent is refused')
  return outcome.rejection
}

function sha256d(bytes: Uint8Array): Buffer {
  const once = createHash('sha256').update(bytes).digest()
  return createHash('sha256').update(once).digest()
}

function bytesLe(value: bigint | number, length: number): Buffer {
  const bytes = Buffer.alloc(8)
  bytes.writeBigUInt64LE(BigInt(value))
  return bytes.subarray(0, length)
}

/** BIP-143's digest, written anew from its text, so that the library's does not vouch for itself. */
function digest(intent: BitcoinIntent, tx: Transaction, at: number): Buffer {
  const outpoint = ({ txHash, index }: Coin) =>
    Buffer.concat([Buffer.from(txHash, 'hex').reverse(), bytesLe(index, 4)])
  const sequence = Buffer.from('fdffffff', 'hex')
  const outputs = Array.from({ length: tx.outputsLength }, (_, index) => {
    const { amount, script } = tx.getOutput(index)
    assert(amount !== undefined && script !== undefined, 'an output is whole')
    return Buffer.concat([bytesLe(amount, 8), Buffer.from([script.length]), script])
  })
  const spent = intent.inputs[at]
  assert(spent !== undefined, 'the input exists')
  const keyHash = createHash('ripemd160')
    .update(createHash('sha256').update(keys.publicKey('bitcoin', spent.key)).digest())
    .digest()
  return Buffer.concat([
    bytesLe(2, 4),
    sha256d(Buffer.concat(intent.inputs.map(outpoint))),
    sha256d(Buffer.concat(intent.inputs.map(() => sequence))),
    outpoint(spent),
    Buffer.from('1976a914', 'hex'),
    keyHash,
    Buffer.from('88ac', 'hex'),
    bytesLe(spent.satoshi, 8),
    sequence,
    sha256d(Buffer.concat(outputs)),
    bytesLe(0, 4),
    bytesLe(1, 4),
  ])
}

/** OpenSSL's opinion of each signature; `verify` hashes once more, which makes the second of the two SHA-256. */
function isSignatureTrue(intent: BitcoinIntent, tx: Transaction, at: number): boolean {
  const [signature, publicKey] = tx.getInput(at).finalScriptWitness ?? []
  assert(signature !== undefined && publicKey !== undefined, 'a P2WPKH witness is a signature and a key')
  expect(signature.at(-1)).toBe(1) // SIGHASH_ALL: the signature covers every input and output
  const key = createPublicKey({
    key: Buffer.concat([Buffer.from('3036301006072a8648ce3d020106052b8104000a032200', 'hex'), publicKey]),
    format: 'der',
    type: 'spki',
  })
  const once = createHash('sha256')
    .update(digest(intent, tx, at))
    .digest()
  return verify('sha256', once, key, signature.subarray(0, -1))
}

test('the bytes are the transaction of the intent, with true signatures', () => {
  const intent = bitcoinIntent()
  const { txHash, bytes } = signed(intent)
  const tx = Transaction.fromRaw(hexToBytes(`0x${bytes}`))

  expect(tx.id).toBe(txHash)
  expect({ version: tx.version, lockTime: tx.lockTime }).toEqual({ version: 2, lockTime: 0 })
  expect(tx.inputsLength).toBe(2)
  for (const [at, { txHash, index }] of intent.inputs.entries()) {
    const input = tx.getInput(at)
    expect(Buffer.from(input.txid ?? []).toString('hex')).toBe(txHash)
    expect({ index: input.index, sequence: input.sequence }).toEqual({ index, sequence: 0xfffffffd })
    expect(isSignatureTrue(intent, tx, at)).toBe(true)
  }
  expect(tx.outputsLength).toBe(2)
  expect(tx.getOutputAddress(0, bitcoinSpellings.regtest)).toBe(customerBitcoin)
  expect(tx.getOutput(0).amount).toBe(120_000_000n)
  expect(tx.getOutputAddress(1, bitcoinSpellings.regtest)).toBe(intent.change?.address)
  expect(tx.getOutput(1).amount).toBe(29_998_000n)
})

test('a signature is not true for another amount (the check above can fail)', () => {
  const intent = bitcoinIntent()
  const tx = Transaction.fromRaw(hexToBytes(`0x${signed(intent).bytes}`))
  const [first, ...rest] = intent.inputs
  assert(first !== undefined, 'there is an input')
  expect(isSignatureTrue({ ...intent, inputs: [{ ...first, satoshi: 1n }, ...rest] }, tx, 0)).toBe(false)
})

test('txHash is the double SHA-256 without signatures, not the one with them', () => {
  const { txHash, bytes } = signed(bitcoinIntent())
  const tx = Transaction.fromRaw(hexToBytes(`0x${bytes}`))
  expect(sha256d(tx.toBytes(true, false)).reverse().toString('hex')).toBe(txHash)
  expect(
    sha256d(hexToBytes(`0x${bytes}`))
      .reverse()
      .toString('hex'),
  ).not.toBe(txHash)
})

test('without change there is one output', () => {
  const { bytes } = signed(
    bitcoinIntent({
      change: null,
      feeSatoshi: 2_000n,
      payment: { address: customerBitcoin, satoshi: 149_998_000n },
    }),
  )
  expect(Transaction.fromRaw(hexToBytes(`0x${bytes}`)).outputsLength).toBe(1)
})

test('any intent signed twice gives equal bytes, and other intents other bytes', () => {
  const amounts = fc.array(fc.bigInt({ min: 20_000n, max: 10n ** 10n }), { minLength: 1, maxLength: 4 })
  fc.assert(
    fc.property(amounts, fc.boolean(), (satoshis, hasChange) => {
      const total = satoshis.reduce((sum, satoshi) => sum + satoshi, 0n)
      const changeSatoshi = hasChange ? 5_000n : 0n
      const intent = bitcoinIntent({
        inputs: satoshis.map((satoshi, at) => coin(at + 1, satoshi)),
        payment: { address: otherBitcoin, satoshi: total - 1_000n - changeSatoshi },
        change: hasChange
          ? {
              address: keys.address('bitcoin', { purpose: 'change', index: 9 }),
              satoshi: changeSatoshi,
              key: { purpose: 'change', index: 9 },
            }
          : null,
        feeSatoshi: 1_000n,
      })
      expect(signed(intent)).toEqual(signed(structuredClone(intent)))
      const other = {
        ...intent,
        feeSatoshi: 1_001n,
        payment: { ...intent.payment, satoshi: intent.payment.satoshi - 1n },
      }
      expect(signed(other).txHash).not.toBe(signed(intent).txHash)
    }),
    { numRuns: 20 },
  )
})

test('a coin or change that is not of its key is refused', () => {
  const [first, second] = bitcoinIntent().inputs
  assert(first !== undefined && second !== undefined, 'there are two inputs')
  expect(rejection({ inputs: [first, { ...second, address: first.address }] })).toEqual({
    code: 'malformed',
    message: 'intent.inputs[1].address is not the address of its key',
  })
  const change = {
    address: otherBitcoin,
    satoshi: 29_998_000n,
    key: { purpose: 'change', index: 4 },
  } as const
  expect(rejection({ change }).message).toBe('intent.change.address is not the address of its key')
})

test('one satoshi that is unaccounted for is refused', () => {
  for (const feeSatoshi of [1_999n, 2_001n]) {
    expect(rejection({ feeSatoshi }).message).toBe('the inputs are not exactly payment, change and fee')
  }
})

test('a fee over either cap is refused, one at the cap is not', () => {
  const spend = (feeSatoshi: bigint, satPerVb: bigint, satoshi: bigint) =>
    signBitcoin(
      bitcoinIntent({
        feeSatoshi,
        payment: { address: customerBitcoin, satoshi: 120_002_000n - feeSatoshi },
      }),
      keys,
      { ...settings.bitcoin, feeRateSatPerVbMax: satPerVb, feeSatoshiMax: satoshi },
    )
  const bytes = signed(bitcoinIntent()).bytes
  const vsize = BigInt(Transaction.fromRaw(hexToBytes(`0x${bytes}`)).vsize)
  expect(spend(50_000n, 1_000n, 50_000n)).toMatchObject({ ok: true })
  expect(spend(50_001n, 1_000n, 50_000n)).toMatchObject({ rejection: { code: 'limit_exceeded' } })
  expect(spend(10n * vsize - 20n, 10n, 50_000n)).toMatchObject({ ok: true })
  expect(spend(10n * vsize + 20n, 10n, 50_000n)).toMatchObject({ rejection: { code: 'limit_exceeded' } })
})

test.each([
  ['of the main network', 'bc1qcr8te4kr609gcawutmrza0j4xv80jy8z306fyu'],
  ['of testnet', 'tb1qw508d6qejxtdg4y5r3zarvary0c5xw7kxpjzsx'],
  ['in capitals', customerBitcoin.toUpperCase()],
  ['with a wrong checksum', `${customerBitcoin.slice(0, -1)}q`],
  ['that anyone may spend (pay-to-anchor)', 'bcrt1pfeesnyr2tx'],
  ['that is none', 'not-an-address'],
])('a payment to an address %s is refused', (_, address) => {
  expect(rejection({ payment: { address, satoshi: 120_000_000n } }).message).toContain(
    'not a regtest address',
  )
})

test('every type of address that people use can be paid', () => {
  const addresses = [
    'bc1qrp33g0q5c5txsp9arysrx4k6zdkfs4nce4xj0gdcccefvpysxf3qccfmv3',
    'bc1p0xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7vqzk5jj0',
    '1BvBMSEYstWetqTFn5Au4m4GFg7xJaNVN2',
    '3J98t1WpEZ73CNmQviecrnyiWrnqRhWNLy',
  ]
  for (const address of addresses) expect(canonicalBitcoinAddress(address, 'mainnet')).toBe(address)
})
