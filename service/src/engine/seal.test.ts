import { createSecretKey } from 'node:crypto'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { assets } from '../domain/catalog/assets.ts'
import { makeSeal, sealKeyIdOf } from './seal.ts'

const key = createSecretKey(Buffer.alloc(32, 7))

test('the id of a key is the documented HMAC, and another for another key', () => {
  // printf cambist-order-seal-key-id | openssl dgst -sha256 -mac HMAC -macopt hexkey:0707… | cut -c 1-16
  expect(sealKeyIdOf(key)).toBe('049e67cec1e7cd16')
  expect(sealKeyIdOf(createSecretKey(Buffer.alloc(32, 8)))).not.toBe(sealKeyIdOf(key))
})

test('whatever an order says, its seal does not begin with the id of the key', () => {
  const asset = fc.constantFrom(...assets.map(({ id }) => id))
  const text = fc.oneof(fc.string(), fc.constant('cambist-order-seal-key-id'))
  const terms = fc.record({
    orderId: text,
    payoutAsset: asset,
    destination: text,
    destinationTag: fc.option(text),
    depositAsset: asset,
    refundAddress: fc.option(text),
  })
  fc.assert(
    fc.property(terms, (each) => {
      expect(makeSeal(key, each).startsWith(sealKeyIdOf(key))).toBe(false)
    }),
  )
})
