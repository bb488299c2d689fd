import fc from 'fast-check'
import {
  decodeFunctionData,
  erc20Abi,
  keccak256,
  parseTransaction,
  recoverTransactionAddress,
  type TransactionSerializedEIP1559,
} from 'viem'
import { expect, test } from 'vitest'
import { assert } from '../../domain/assert.ts'
import type { EvmIntent } from '../../domain/payouts/intent.ts'
import { customerEvm, evmIntent, keys, usdt } from '../testing/fixtures.ts'
import { canonicalEvmAddress, signEvm } from './evm_transaction.ts'

const caps = { chainId: 31337, gasLimitMax: 200_000n, feePerGasWeiMax: 500_000_000_000n, sweepGasWeiMax: 0n }

async function signed(intent: EvmIntent) {
  const outcome = await signEvm(intent, keys, caps)
  assert(outcome.ok, outcome.ok ? '' : outcome.rejection.message)
  return outcome.value
}

test('the bytes of a native payout say what the intent says, from the key it names', async () => {
  const { txHash, bytes } = await signed(evmIntent())
  const serialized: TransactionSerializedEIP1559 = `0x02${bytes.slice(2)}`
  expect(serialized).toBe(`0x${bytes}`)
  expect(keccak256(serialized)).toBe(txHash)
  expect(parseTransaction(serialized)).toMatchObject({
    type: 'eip1559',
    chainId: 31337,
    nonce: 5,
    to: customerEvm.toLowerCase(),
    value: 10n ** 18n,
    gas: 21_000n,
    maxFeePerGas: 30_000_000_000n,
    maxPriorityFeePerGas: 1_000_000_000n,
  })
  expect(parseTransaction(serialized).data).toBeUndefined()
  expect(await recoverTransactionAddress({ serializedTransaction: serialized })).toBe(
    keys.address('evm', { purpose: 'reserve', index: 0 }),
  )
})

test('a token payout calls the contract and moves no coin', async () => {
  const { bytes } = await signed(evmIntent({ token: usdt, units: 2_500_000n, gasLimit: 100_000n }))
  const { to, value, data } = parseTransaction(`0x02${bytes.slice(2)}`)
  expect({ to, value: value ?? 0n }).toEqual({ to: usdt.toLowerCase(), value: 0n })
  assert(data !== undefined, 'a token payout has call data')
  expect(decodeFunctionData({ abi: erc20Abi, data })).toEqual({
    functionName: 'transfer',
    args: [customerEvm, 2_500_000n],
  })
})

test('any intent signed twice gives equal bytes', async () => {
  const intents = fc.record({
    nonce: fc.nat(),
    units: fc.bigInt({ min: 0n, max: 2n ** 256n - 1n }),
    token: fc.constantFrom(null, usdt),
    gasLimit: fc.bigInt({ min: 21_000n, max: 200_000n }),
    index: fc.integer({ min: 0, max: 2 ** 31 - 1 }),
    purpose: fc.constantFrom('deposit' as const, 'reserve' as const),
  })
  await fc.assert(
    fc.asyncProperty(intents, async ({ index, purpose, ...changes }) => {
      const intent = evmIntent({ ...changes, from: { purpose, index } })
      const first = await signed(intent)
      expect(await signed(structuredClone(intent))).toEqual(first)
      expect((await signed({ ...intent, nonce: intent.nonce + 1 })).txHash).not.toBe(first.txHash)
    }),
    { numRuns: 40 },
  )
})

test('another chain, change keys, and gas over its caps are refused', async () => {
  const code = async (changes: Partial<EvmIntent>) => {
    const outcome = await signEvm(evmIntent(changes), keys, caps)
    return outcome.ok ? 'signed' : outcome.rejection.code
  }
  expect(await code({ evmChainId: 1 })).toBe('malformed')
  expect(await code({ from: { purpose: 'change', index: 0 } })).toBe('malformed')
  expect(await code({ gasLimit: 200_000n })).toBe('signed')
  expect(await code({ gasLimit: 200_001n })).toBe('limit_exceeded')
  expect(await code({ maxFeePerGasWei: 500_000_000_000n })).toBe('signed')
  expect(await code({ maxFeePerGasWei: 500_000_000_001n })).toBe('limit_exceeded')
})

test('an address has one canonical form', () => {
  expect(canonicalEvmAddress(customerEvm.toLowerCase())).toBe(customerEvm)
  expect(canonicalEvmAddress(customerEvm)).toBe(customerEvm)
  expect(canonicalEvmAddress(customerEvm.replace('C5', 'c5'))).toBe(null)
  expect(canonicalEvmAddress('0x12')).toBe(null)
})
