import { createSecretKey } from 'node:crypto'
import { expect, test } from 'vitest'
import type { SealedTerms } from '../domain/orders/seal.ts'
import { makeSeal } from '../engine/seal.ts'
import { isSealIntact } from './seal.ts'

const key = createSecretKey(Buffer.alloc(32, 7))
const terms: SealedTerms = {
  orderId: 'CB1',
  payoutAsset: 'USDT:ERC20',
  destination: 'there',
  destinationTag: null,
  depositAsset: 'BTC:BTC',
  refundAddress: 'back',
}

const paying = (sealed: SealedTerms, seal: string) => ({ ...sealed, kind: 'payout' as const, seal })

test('what the engine seals the signer accepts', () => {
  for (const kind of ['payout', 'refund'] as const) {
    expect(isSealIntact(key, { ...terms, kind, seal: makeSeal(key, terms) })).toBe(true)
  }
  for (const kind of ['sweep', 'filler'] as const) {
    expect(isSealIntact(key, { ...terms, kind, seal: makeSeal(key, terms, 'own') })).toBe(true)
  }
})

test('the seal is the documented HMAC', () => {
  // printf '["cambist-order-v2","CB1","USDT:ERC20","there",null,"BTC:BTC","back"]' | openssl dgst -sha256 -mac HMAC -macopt hexkey:0707…
  expect(makeSeal(key, terms)).toBe('dfdfedc332bdfbc014bcd64b4e882ade235cbc2f1e2903dff18adb94c94e9a1c')
  // The same with cambist-own-v1 as its first word.
  expect(makeSeal(key, terms, 'own')).toBe('affd58e53da2660aac995d4673aecb4dc9b52cb0981cc594ea33f526acc71bfc')
})

test.each([
  ['order', { ...terms, orderId: 'CB2' }],
  ['payout asset', { ...terms, payoutAsset: 'USDC:ERC20' as const }],
  ['deposit asset', { ...terms, depositAsset: 'ETH:ETH' as const }],
  ['destination', { ...terms, destination: 'elsewhere' }],
  ['tag', { ...terms, destinationTag: '1' }],
  ['empty tag', { ...terms, destinationTag: '' }],
  ['refund address', { ...terms, refundAddress: 'elsewhere' }],
  ['no refund address', { ...terms, refundAddress: null }],
  ['a word moved to its neighbour', { ...terms, destination: 'there",null,"BTC:BTC","back' }],
])('another %s breaks the seal', (_, changed) => {
  expect(isSealIntact(key, paying(changed, makeSeal(key, terms)))).toBe(false)
})

test('another key, and a seal that is none, break the seal', () => {
  expect(isSealIntact(createSecretKey(Buffer.alloc(32, 8)), paying(terms, makeSeal(key, terms)))).toBe(false)
  for (const seal of [
    '',
    '00',
    makeSeal(key, terms).toUpperCase(),
    `${makeSeal(key, terms)}0`,
    'g'.repeat(64),
  ]) {
    expect(isSealIntact(key, paying(terms, seal))).toBe(false)
  }
})
