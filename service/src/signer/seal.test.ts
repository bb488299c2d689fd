import { createSecretKey } from 'node:crypto'
import { expect, test } from 'vitest'
import { makeSeal } from '../engine/seal.ts'
import { isSealIntact } from './seal.ts'

const key = createSecretKey(Buffer.alloc(32, 7))
const terms = { orderId: 'CB1', destination: 'there', destinationTag: null, refundAddress: 'back' }

test('what the engine seals the signer accepts', () => {
  expect(isSealIntact(key, terms, makeSeal(key, terms))).toBe(true)
})

test('the seal is the documented HMAC', () => {
  // printf '["cambist-order-v1","CB1","there",null,"back"]' | openssl dgst -sha256 -mac HMAC -macopt hexkey:0707…
  expect(makeSeal(key, terms)).toBe('02bb676ccaf303358f3e12eebfe7df13ad982b41dae91bd6ce882dae052ade10')
})

test.each([
  ['order', { ...terms, orderId: 'CB2' }],
  ['destination', { ...terms, destination: 'elsewhere' }],
  ['tag', { ...terms, destinationTag: '1' }],
  ['empty tag', { ...terms, destinationTag: '' }],
  ['refund address', { ...terms, refundAddress: 'elsewhere' }],
  ['no refund address', { ...terms, refundAddress: null }],
  ['a word moved to its neighbour', { ...terms, destination: 'there",null,"back' }],
])('another %s breaks the seal', (_, changed) => {
  expect(isSealIntact(key, changed, makeSeal(key, terms))).toBe(false)
})

test('another key, and a seal that is none, break the seal', () => {
  expect(isSealIntact(createSecretKey(Buffer.alloc(32, 8)), terms, makeSeal(key, terms))).toBe(false)
  for (const seal of [
    '',
    '00',
    makeSeal(key, terms).toUpperCase(),
    `${makeSeal(key, terms)}0`,
    'g'.repeat(64),
  ]) {
    expect(isSealIntact(key, terms, seal)).toBe(false)
  }
})
