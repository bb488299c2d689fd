import { describe, expect, test } from 'vitest'
import { type OrderStatus, orderStatuses } from '../orders/order.ts'
import {
  type EmergencyOptionsInMail,
  isOrderMail,
  isSafetyMail,
  type MailContent,
  orderMailKinds,
} from './mail_content.ts'
import { mailOfEvent, type StatusChange } from './mail_of_event.ts'
import { MAIL_TRIED_FOR_MS, restAfterAttemptMs } from './mail_retries.ts'
import { classOf, isMailClass, isWanted, optionalMails } from './preferences.ts'

/** What: which status means which mail, and who gets it. How: the whole table, status by status. */
const nothing: EmergencyOptionsInMail = { continue: null, recalculate: null, refund: null }
const refundOnly: EmergencyOptionsInMail = {
  ...nothing,
  refund: { refund_amount: '1', currency: 'BTC', network: 'BTC', has_refund_address: false },
}
const exchangeOnly: EmergencyOptionsInMail = { ...nothing, continue: { receive_amount: '1' } }

function change(status: OrderStatus, more: Partial<StatusChange> = {}): StatusChange {
  return { status, isFirst: true, emergency: null, ...more }
}

const inEmergency = (options: EmergencyOptionsInMail, isFirst = true, isKnown = true) =>
  change('EMERGENCY', {
    isFirst,
    emergency: { reasons: ['UNDERPAID'], options, are_options_known: isKnown },
  })

describe('the mail of a status', () => {
  test('the first time', () => {
    const table = orderStatuses
      .filter((status) => status !== 'EMERGENCY')
      .map((status) => [status, mailOfEvent(change(status))])
    expect(Object.fromEntries(table)).toEqual({
      NEW: 'order_created',
      PENDING: 'payment_received',
      EXCHANGE: null,
      WITHDRAW: null,
      DONE: 'order_completed',
      EXPIRED: 'order_expired',
      REFUND: null,
      REFUNDED: 'order_failed',
    })
  })

  test('again: nothing, but for emergencies', () => {
    const mailed = orderStatuses.filter((status) => mailOfEvent(change(status, { isFirst: false })) !== null)
    expect(mailed).toEqual(['EMERGENCY'])
    expect(mailOfEvent(inEmergency(refundOnly, false))).toBe('emergency_action_required')
    expect(mailOfEvent(inEmergency(nothing, false))).toBe('order_failed')
  })

  test('an emergency asks where there is something to choose, and says failed where too little came for anything', () => {
    expect(mailOfEvent(inEmergency(refundOnly))).toBe('emergency_action_required')
    expect(mailOfEvent(inEmergency(exchangeOnly))).toBe('emergency_action_required')
    expect(mailOfEvent(inEmergency(nothing))).toBe('order_failed')
  })

  test('an emergency in which nobody knows what an action would pay asks as well', () => {
    expect(mailOfEvent(inEmergency(nothing, true, false))).toBe('emergency_action_required')
    const ofAnEarlierRelease = { reasons: ['NETWORK_PROBLEM'], options: nothing } as const
    expect(mailOfEvent(change('EMERGENCY', { emergency: ofAnEarlierRelease }))).toBe(
      'emergency_action_required',
    )
    expect(mailOfEvent(change('EMERGENCY'))).toBe('emergency_action_required')
  })
})

describe('who wants it', () => {
  const bare = { hasCallback: false }
  const called = { hasCallback: true }

  test('of which orders', () => {
    const wanted = (emails: 'all' | 'with_callback' | 'off') =>
      [bare, called].map((order) => isWanted('emergency_action_required', { emails, muted: [] }, order))
    expect([wanted('all'), wanted('with_callback'), wanted('off')]).toEqual([
      [true, true],
      [false, true],
      [false, false],
    ])
  })

  test('what is muted does not come; what cannot be muted does', () => {
    const muted = { emails: 'all', muted: optionalMails } as const
    for (const kind of optionalMails) expect(isWanted(kind, muted, bare)).toBe(false)
    expect(isWanted('order_created', muted, bare)).toBe(true)
    expect(isWanted('emergency_action_required', muted, bare)).toBe(true)
    expect(isWanted('order_failed', { emails: 'all', muted: ['order_expired'] }, bare)).toBe(true)
  })

  test('what a link may switch off is everything, or a kind that can be', () => {
    const asked = ['all', 'order_failed', 'order_created', 'emergency_action_required', 'off', '']
    expect(asked.filter(isMailClass)).toEqual(['all', 'order_failed'])
  })

  test('mails about orders are told from those about the account', () => {
    const isAboutOrder = (kind: string) => isOrderMail({ kind, data: {} } as unknown as MailContent)
    expect(orderMailKinds.every(isAboutOrder)).toBe(true)
    expect(['sign_in_link', 'security_notice', 'webhook_exhausted'].some(isAboutOrder)).toBe(false)
  })

  test('about the safety of an account are those of neither orders nor webhooks', () => {
    const kinds = [
      'order_created',
      'webhook_exhausted',
      'endpoint_disabled',
      'sign_in_link',
      'security_notice',
    ]
    const isAboutSafety = (kind: string) => isSafetyMail({ kind, data: {} } as unknown as MailContent)
    expect(kinds.filter(isAboutSafety)).toEqual(['sign_in_link', 'security_notice'])
  })

  test('the link of a mail switches off its kind, or everything where its kind cannot be', () => {
    expect(classOf('order_expired')).toBe('order_expired')
    expect(classOf('order_created')).toBe('all')
    expect(classOf('emergency_action_required')).toBe('all')
  })
})

test('rests grow up to an hour, and many attempts fit into the time that a mail is tried for', () => {
  const restsS = Array.from({ length: 9 }, (_, index) => restAfterAttemptMs(index + 1) / 1_000)
  expect(restsS).toEqual([15, 60, 300, 900, 1_800, 3_600, 3_600, 3_600, 3_600])
  expect(MAIL_TRIED_FOR_MS / restAfterAttemptMs(9)).toBe(72)
})
