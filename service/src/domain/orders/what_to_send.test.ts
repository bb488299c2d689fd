import { describe, expect, test } from 'vitest'
import { type EmergencyReason, emergencyReasons, orderStatuses } from './order.ts'
import { reasonWords, statusWords } from './order_words.ts'
import { howPaid, type OrderToPay, promisesPayout, whatToSend } from './what_to_send.ts'

/**
 * What: what a customer is told to send, and whether what he receives is told him, state by state.
 * How: an order for 0.05, before and after its time is up, with nothing, less, just that and more come.
 */
const EXPIRES_AT = 1_790_000_900_000
const IN_TIME = EXPIRES_AT - 1

function order(status: OrderToPay['status'], received: string, more: Partial<OrderToPay> = {}): OrderToPay {
  return { status, deposit_amount: '0.05', deposit_received: received, expires_at: EXPIRES_AT, ...more }
}

const stopped = (received: string, ...reasons: readonly EmergencyReason[]) =>
  order('EMERGENCY', received, { emergency: { reasons } })

const nothing = { kind: 'nothing' }

describe('what is to be sent', () => {
  test('all of it until something has come, then what is missing of it, to the last digit', () => {
    expect(whatToSend(order('NEW', '0'), IN_TIME)).toEqual({ kind: 'all', amount: '0.05' })
    expect(whatToSend(order('PENDING', '0.04'), IN_TIME)).toEqual({ kind: 'rest', amount: '0.01' })
    expect(whatToSend(stopped('0.04', 'UNDERPAID'), IN_TIME)).toEqual({ kind: 'rest', amount: '0.01' })
    const wei = order('PENDING', '0.000000000000000001', { deposit_amount: '123456789.1' })
    expect(whatToSend(wei, IN_TIME)).toEqual({ kind: 'rest', amount: '123456789.099999999999999999' })
  })

  test('nothing when just that has come, or more', () => {
    for (const received of ['0.05', '0.06']) {
      expect(whatToSend(order('PENDING', received), IN_TIME)).toEqual(nothing)
      expect(whatToSend(order('PENDING', received), EXPIRES_AT)).toEqual(nothing)
      expect(whatToSend(stopped(received, 'UNDERPAID'), IN_TIME)).toEqual(nothing)
    }
  })

  test('nothing within the tolerance, but where the order has stopped for want of the rest', () => {
    const tolerant = { deposit_tolerance: '0.0005' }
    expect(whatToSend(order('PENDING', '0.0495', tolerant), IN_TIME)).toEqual(nothing)
    const less = order('PENDING', '0.04949999', tolerant)
    expect(whatToSend(less, IN_TIME)).toEqual({ kind: 'rest', amount: '0.00050001' })
    const stuck = { ...stopped('0.0495', 'UNDERPAID'), ...tolerant }
    expect(whatToSend(stuck, IN_TIME)).toEqual({ kind: 'rest', amount: '0.0005' })
  })

  test('nothing any more once the time is up', () => {
    const open = [order('NEW', '0'), order('PENDING', '0.04'), stopped('0.04', 'UNDERPAID')]
    for (const each of open) expect(whatToSend(each, EXPIRES_AT), each.status).toEqual({ kind: 'too_late' })
  })

  test('nothing in any other state, and in an emergency nothing where more is wrong than that too little came', () => {
    const others = orderStatuses.filter((status) => !['NEW', 'PENDING', 'EMERGENCY'].includes(status))
    expect(others).toHaveLength(6)
    for (const status of others) expect(whatToSend(order(status, '0'), IN_TIME), status).toEqual(nothing)
    for (const reason of emergencyReasons.filter((each) => each !== 'UNDERPAID')) {
      expect(whatToSend(stopped('0.04', reason), IN_TIME)).toEqual(nothing)
      expect(whatToSend(stopped('0.04', 'UNDERPAID', reason), IN_TIME)).toEqual(nothing)
    }
    expect(whatToSend(order('EMERGENCY', '0.04'), IN_TIME)).toEqual(nothing)
  })
})

test('what came is compared with what was asked', () => {
  const tolerant = { deposit_tolerance: '0.0005' }
  const compared = ['0', '0.04949999', '0.0495', '0.05', '0.0505', '0.05050001'].map((received) => [
    howPaid(order('PENDING', received)),
    howPaid(order('PENDING', received, tolerant)),
  ])
  expect(compared).toEqual([
    ['nothing', 'nothing'],
    ['less', 'less'],
    ['less', 'exact'],
    ['exact', 'exact'],
    ['more', 'exact'],
    ['more', 'more'],
  ])
})

test('what is received is promised while it may be paid, or was paid just so', () => {
  expect([IN_TIME, EXPIRES_AT].map((nowMs) => promisesPayout(order('NEW', '0'), nowMs))).toEqual([
    true,
    false,
  ])
  const pending = ['0.04', '0.05', '0.06'].map((received) => order('PENDING', received))
  for (const nowMs of [IN_TIME, EXPIRES_AT]) {
    expect(pending.map((each) => promisesPayout(each, nowMs))).toEqual([false, true, false])
    expect(promisesPayout(order('PENDING', '0.05', { is_deposit_late: true }), nowMs)).toBe(false)
    const promising = orderStatuses.slice(2).filter((status) => promisesPayout(order(status, '0.05'), nowMs))
    expect(promising).toEqual(['EXCHANGE', 'WITHDRAW', 'DONE'])
  }
})

test('an order whose time is up is not said to wait for a deposit', () => {
  const words = (nowMs: number) => statusWords(order('NEW', '0'), nowMs)
  expect(words(IN_TIME)).toBe('waiting for your deposit')
  expect(words(EXPIRES_AT)).toBe('looking whether it was paid in time')
  expect(statusWords(order('DONE', '0'), EXPIRES_AT)).toBe('completed')
})

test('a payment that could not be made is not always one to the destination, nor the fault of a network', () => {
  expect(reasonWords.DESTINATION_PROBLEM).toMatch(/or the refund address.*may fail again.*network fee/)
  expect(reasonWords.NETWORK_PROBLEM).toMatch(/payout or refund.*a network, or this service/)
})
