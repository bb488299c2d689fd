import { getAddress, isAddress } from 'viem/utils'
import type { EvmIntent } from '../../domain/payouts/intent.ts'
import { bounded, integer, Malformed, orNull, record, text } from './fields.ts'
import { readIdentity, readKey } from './names.ts'

const WORD_MAX = 2n ** 256n - 1n

export function readEvmIntent(value: unknown): EvmIntent {
  const names = [
    'family',
    'chain',
    'evmChainId',
    'payoutId',
    'attempt',
    'from',
    'nonce',
    'to',
    'units',
    'token',
  ]
  const fees = ['gasLimit', 'maxFeePerGasWei', 'maxPriorityFeePerGasWei']
  const fields = record('intent', value, [...names, ...fees])
  const intent: EvmIntent = {
    family: 'evm',
    ...readIdentity(fields, 'evm'),
    evmChainId: integer('intent.evmChainId', fields.evmChainId, 1, Number.MAX_SAFE_INTEGER),
    from: readKey('intent.from', fields.from),
    nonce: integer('intent.nonce', fields.nonce, 0, Number.MAX_SAFE_INTEGER),
    to: evmAddress('intent.to', fields.to),
    units: bounded('intent.units', fields.units, 0n, WORD_MAX),
    token: orNull(fields.token, (token) => evmAddress('intent.token', token)),
    gasLimit: bounded('intent.gasLimit', fields.gasLimit, 21_000n, WORD_MAX),
    maxFeePerGasWei: bounded('intent.maxFeePerGasWei', fields.maxFeePerGasWei, 1n, WORD_MAX),
    maxPriorityFeePerGasWei: bounded(
      'intent.maxPriorityFeePerGasWei',
      fields.maxPriorityFeePerGasWei,
      0n,
      WORD_MAX,
    ),
  }
  if (intent.maxPriorityFeePerGasWei > intent.maxFeePerGasWei) {
    throw new Malformed('intent.maxPriorityFeePerGasWei is more than maxFeePerGasWei')
  }
  return intent
}

function evmAddress(name: string, value: unknown): string {
  const address = text(name, value, /^0x[0-9a-fA-F]{40}$/)
  if (!isAddress(address) || getAddress(address) !== address) {
    throw new Malformed(`${name} is not in its checksummed (EIP-55) form`)
  }
  return address
}
