import { assert } from '../assert.ts'

/** `CB` and 16 random digits; the last two are the bucket. Random, because order ids are public through the QR. */
export type OrderId = string

export const ORDER_ID_DIGITS = 16
export const BUCKET_DIGITS = 2
export const SHORT_ID_DIGITS = 8
export const BUCKETS = 10 ** BUCKET_DIGITS

/** Sources of regular expressions, for whatever an id is part of. */
export const ORDER_ID_PATTERN = `CB[0-9]{${ORDER_ID_DIGITS}}`
export const SHORT_ID_PATTERN = `[0-9]{${SHORT_ID_DIGITS}}`

const ORDER_ID = new RegExp(`^${ORDER_ID_PATTERN}$`)
const SHORT_ID = new RegExp(`^${SHORT_ID_PATTERN}$`)

export function isOrderId(text: string): boolean {
  return ORDER_ID.test(text)
}

/** Enough together with a token. */
export function isShortId(text: string): boolean {
  return SHORT_ID.test(text)
}

export function orderIdOf(digits: string): OrderId {
  const id = `CB${digits}`
  assert(isOrderId(id), 'an order id has 16 digits')
  return id
}

/** Order-owned rows lie together by bucket, so that they can be spread over machines later. */
export function bucketOf(orderId: OrderId): number {
  return Number.parseInt(orderId.slice(-BUCKET_DIGITS), 10)
}

/** What a person reads out; together with the order's token it finds the order. */
export function shortIdOf(orderId: OrderId): string {
  return orderId.slice(-SHORT_ID_DIGITS)
}

/** The order's `number`th outflow. A new one is planned only when the one before is provably dead. */
export function payoutIdOf(orderId: OrderId, number: number): string {
  return `${orderId}:${number}`
}

export function orderIdOfPayout(payoutId: string): OrderId {
  return readPayoutId(payoutId).orderId
}

/** What `payoutIdOf` was made of. */
export function readPayoutId(payoutId: string): { readonly orderId: OrderId; readonly number: number } {
  const colon = payoutId.indexOf(':')
  return { orderId: payoutId.slice(0, colon), number: Number.parseInt(payoutId.slice(colon + 1), 10) }
}
