import fc from 'fast-check'
import { expect, test } from 'vitest'
import { assets } from '../catalog/assets.ts'
import {
  BUCKETS,
  bucketOf,
  isOrderId,
  isShortId,
  orderIdOf,
  orderIdOfPayout,
  payoutIdOf,
  readPayoutId,
  shortIdOf,
} from './identifiers.ts'
import { type SealedTerms, sealedTermsOf, sealText } from './seal.ts'
import { newOrder } from './testing/story.ts'

const digits = fc.string({ unit: fc.constantFrom(...'0123456789'), minLength: 16, maxLength: 16 })

test('an order id names its bucket, its short id and its payouts', () => {
  fc.assert(
    fc.property(digits, fc.integer({ min: 1, max: 1_000 }), (text, number) => {
      const id = orderIdOf(text)
      expect(isOrderId(id)).toBe(true)
      expect(bucketOf(id)).toBe(bucketOf(shortIdOf(id)))
      expect(bucketOf(id) >= 0 && bucketOf(id) < BUCKETS).toBe(true)
      expect(id.endsWith(shortIdOf(id))).toBe(true)
      expect(orderIdOfPayout(payoutIdOf(id, number))).toBe(id)
      expect(readPayoutId(payoutIdOf(id, number))).toEqual({ orderId: id, number })
    }),
  )
  expect(bucketOf('CB0000000000000007')).toBe(7)
  expect(shortIdOf('CB1234567890123456')).toBe('90123456')
  expect(['90123456', '9012345', '901234567', '9012345x', '90123456\n'].filter(isShortId)).toEqual([
    '90123456',
  ])
  expect(payoutIdOf('CB1234567890123456', 2)).toBe('CB1234567890123456:2')
})

test.each(
  ['', 'CB', 'CB123456789012345', 'CB12345678901234567', 'cb1234567890123456', 'CB123456789012345x'].concat([
    'CB1234567890123456\n',
    ' CB1234567890123456',
    'CB１２３４５６７８９０１２３４５６',
  ]),
)('%j is no order id', (text) => {
  expect(isOrderId(text)).toBe(false)
})

test('an order id is not made of anything but 16 digits', () => {
  expect(() => orderIdOf('123')).toThrow()
  expect(() => orderIdOf('123456789012345a')).toThrow()
})

/** Words that would run into each other if fields were only written side by side. */
const word = fc.oneof(
  fc.constantFrom('', 'null', '"', '","', '\\', '\\"', 'a","b', ',', '[]', '\u0000', '\ud800', 'a'),
  fc.string({ unit: 'binary' }),
)
const asset = fc.constantFrom(...assets.map(({ id }) => id))
const sealed: fc.Arbitrary<SealedTerms> = fc.record({
  orderId: word,
  payoutAsset: asset,
  depositAsset: asset,
  destination: word,
  destinationTag: fc.option(word),
  refundAddress: fc.option(word),
})

test('two orders have one sealed text only if every word of it is the same', () => {
  fc.assert(
    fc.property(sealed, sealed, (left, right) => {
      const fields = Object.keys(left) as (keyof SealedTerms)[]
      const isSame = fields.every((field) => left[field] === right[field])
      expect(sealText(left) === sealText(right)).toBe(isSame)
    }),
    { numRuns: 5_000 },
  )
})

test('every word that decides where money may go changes the text', () => {
  const terms = sealedTermsOf(newOrder())
  for (const field of Object.keys(terms)) {
    expect(sealText({ ...terms, [field]: 'other' })).not.toBe(sealText(terms))
  }
})

test('what was sealed once has the same text in every version', () => {
  const terms = sealedTermsOf({ ...newOrder(), refundAddress: 'refund address' })
  expect(sealText(terms)).toBe(
    '["cambist-order-v2","CB1234567890123456","USDT:ERC20","destination",null,"ETH:ETH","refund address"]',
  )
  expect(sealText(terms, 'own')).toBe(
    '["cambist-own-v1","CB1234567890123456","USDT:ERC20","destination",null,"ETH:ETH","refund address"]',
  )
})

test('no tag is not the tag “null”, nor an empty one', () => {
  const terms = { ...sealedTermsOf(newOrder()), refundAddress: null }
  const texts = [null, 'null', ''].map((destinationTag) => sealText({ ...terms, destinationTag }))
  expect(new Set(texts).size).toBe(3)
})
