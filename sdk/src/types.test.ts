import { expect, test } from 'vitest'
import document from '../openapi.json' with { type: 'json' }
import type { EmergencyReason, Order } from './types.ts'

/** Those that the type names. */
type Named<Value extends string> = Value extends unknown ? (string extends Value ? never : Value) : never

test('the type of reasons names those that the service knows, and takes others as well', () => {
  const named = {
    UNDERPAID: true,
    OVERPAID: true,
    LATE_DEPOSIT: true,
    RATE_SLIPPAGE: true,
    NETWORK_PROBLEM: true,
    DESTINATION_PROBLEM: true,
  } satisfies Record<Named<EmergencyReason>, true>
  const { reasons } = document.components.schemas.Order.properties.emergency.properties
  expect(Object.keys(named)).toEqual(reasons.items['x-extensible-enum'])
  const later: NonNullable<Order['emergency']>['reasons'] = ['A_LATER_ONE']
  expect(later).toEqual(['A_LATER_ONE'])
})
