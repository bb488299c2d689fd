import { expect, test } from 'vitest'
import { unreachable } from './assert.ts'

test('a case that a switch forgot is named, the money in it too', () => {
  const forgotten = { kind: 'DepositBurnt', amount: { asset: 'ETH:ETH', units: 5n } }
  expect(() => unreachable(forgotten as never)).toThrow(
    'unreachable: {"kind":"DepositBurnt","amount":{"asset":"ETH:ETH","units":"5"}}',
  )
})
