import { describe, expect, test } from 'vitest'
import { broadcast } from './broadcast.ts'
import { NodeSilence } from './json_rpc.ts'
import { refusal, type Script, scriptedNode } from './testing/scripted_node.ts'

const txHash = `0x${'a'.repeat(64)}`
const known = {
  hash: txHash,
  from: `0x${'1'.repeat(40)}`,
  to: null,
  value: '0x0',
  input: '0x',
  blockHash: null,
}
const nothing: Script = { eth_getTransactionByHash: () => null, eth_getTransactionReceipt: () => null }
const send = (script: Script) => broadcast(scriptedNode(script), 'ETH:ETH', { txHash, bytes: '02' })
const saying = (message: string, more: Script = {}) =>
  send({ eth_sendRawTransaction: () => refusal(-32000, message), ...more })

describe('what the node says to a broadcast', () => {
  test('the hash we know: accepted; anything else tells nothing', async () => {
    expect(await send({ eth_sendRawTransaction: () => txHash.toUpperCase().replace('0X', '0x') })).toBe(
      'accepted',
    )
    for (const odd of [null, true, `0x${'b'.repeat(64)}`, {}]) {
      expect(await send({ eth_sendRawTransaction: () => odd })).toBe('unknown')
    }
  })

  test.each([
    'already known',
    'known transaction: abc',
    'transaction already imported',
    'AlreadyKnown',
    'already in mempool',
    'Known transaction',
  ])('%s: accepted if the node knows the transaction, else unknown', async (message) => {
    expect(await saying(message, { ...nothing, eth_getTransactionByHash: () => known })).toBe('accepted')
    expect(await saying(message, nothing), 'seen, and rejected').toBe('unknown')
    expect(await saying(message), 'it does not say').toBe('unknown')
  })

  test.each([
    'replacement transaction underpriced',
    'transaction underpriced: tip needed 50000000, tip permitted 1',
    'insufficient funds for gas * price + value',
    'intrinsic gas too low',
    'exceeds block gas limit',
    'nonce too high',
    'invalid sender',
    'rlp: expected input list',
    'Failed to decode transaction',
    'tx fee (9.99 ether) exceeds the configured cap (1.00 ether)',
    'max fee per gas less than block base fee',
    'invalid chain id for signer',
    'Upfront cost exceeds account balance',
    'Gas price below configured minimum gas price',
    'Gas price below current base fee',
    'gasPrice is less than the current BaseFee',
    'Transaction fee cap exceeded',
    'FeeTooLow',
    'FeeTooLow, MaxFeePerGas too low. MaxFeePerGas: 50, BaseFee: 100, MaxPriorityFeePerGas:200, Block number: 5',
    'FeeTooLow, EffectivePriorityFeePerGas too low 10 < 20, BaseFee: 30',
    'InsufficientFunds',
    'InsufficientFunds, Account balance: 302, cumulative cost: 580',
    'InsufficientFunds, Balance is 109 less than sending value + gas 716',
  ])('%s: refused', async (message) => {
    expect(await saying(message)).toBe('refused')
  })

  test.each([
    'txpool is full',
    'rate limit exceeded',
    'Internal error',
    'request timed out',
    'too many pending',
    'unknown transaction type',
    'FeeTooLowToCompete',
    'ReplacementNotAllowed',
    'OwnNonceAlreadyUsed',
    'Timeout expired',
    'Initial sync is still in progress',
    'Transaction pool not enabled. (Either txpool explicitly disabled, or node not yet in sync).',
    'Plugin has marked the transaction as invalid',
    '',
  ])('"%s" leaves it open: unknown', async (message) => {
    expect(await saying(message)).toBe('unknown')
  })

  test('a used nonce: ours if the node knows the transaction, else refused, else unknown', async () => {
    expect(await saying('nonce too low', { ...nothing, eth_getTransactionByHash: () => known })).toBe(
      'accepted',
    )
    for (const words of [
      'nonce too low: next nonce 8, tx nonce 7',
      'OldNonce, Current nonce: 8, nonce of rejected tx: 7',
    ])
      expect(await saying(words, nothing)).toBe('refused')
    expect(await saying('nonce too low', { ...nothing, eth_getTransactionReceipt: () => 'soon' })).toBe(
      'unknown',
    )
    expect(await saying('nonce too low')).toBe('unknown')
  })

  test('nothing: unknown', async () => {
    const script: Script = {
      eth_sendRawTransaction: () => {
        throw new NodeSilence('eth_sendRawTransaction', 'no answer')
      },
    }
    expect(await send(script)).toBe('unknown')
  })
})
