import { createHmac, type KeyObject } from 'node:crypto'
import { makeSeal } from '../engine/seal.ts'
import type { DeskWorld } from '../engine/world.ts'

/** Makes the token of an order. The same order always has the same; only its hash is stored. */
export function orderTokens(key: KeyObject): DeskWorld['tokenOf'] {
  return (orderId) => createHmac('sha256', key).update(orderId).digest('base64url')
}

/** Seals the terms of orders, which the signer obeys. */
export function sealWith(orderSeal: KeyObject): DeskWorld['seal'] {
  return (terms, whose) => makeSeal(orderSeal, terms, whose)
}
