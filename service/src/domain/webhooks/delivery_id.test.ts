import { expect, test } from 'vitest'
import { deliveryIdOf, readDeliveryId, webhookIdOf } from './delivery_id.ts'

const key = { orderId: 'CB1234567890123456', sequence: 7, receiver: 'we_0a' }

test('a delivery id names an event and its receiver, and is read back', () => {
  expect(deliveryIdOf(key)).toBe('CB1234567890123456-7-we_0a')
  expect(readDeliveryId(deliveryIdOf(key))).toEqual(key)
  expect(webhookIdOf(key)).toBe('evt_CB1234567890123456_7')
})

test.each([
  '',
  'CB1234567890123456',
  'CB123456789012345-7-we_0a',
  'CB12345678901234567-7-we_0a',
  'CB1234567890123456-0-we_0a',
  'CB1234567890123456-07-we_0a',
  'CB1234567890123456-1234567890-we_0a',
  'CB1234567890123456-7-',
  'CB1234567890123456-7-WE',
  'CB1234567890123456-7-we_0a\n',
])('%j is no delivery id', (text) => {
  expect(readDeliveryId(text)).toBeNull()
})
