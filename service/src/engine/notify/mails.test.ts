import { createSecretKey } from 'node:crypto'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { soon } from '../../../test/harness/eventually.ts'
import { findAccount } from '../../accounts/accounts.ts'
import { setEmail } from '../../accounts/email.ts'
import { agreeToEmailChange, askEmailChange } from '../../accounts/email_change.ts'
import type { OwnerPlace } from '../../accounts/owner_place.ts'
import { createSecretBox } from '../../accounts/secret_box.ts'
import { createEndpoint } from '../../accounts/webhook_endpoints.ts'
import type { Mail, MailAnswer, MailChannel } from '../../channels/channel.ts'
import { systemClock } from '../../clock.ts'
import { operator } from '../../db/audit_log.ts'
import type { Database, Sql } from '../../db/database.ts'
import { claimMails, deleteMails, queueMail } from '../../db/mails.ts'
import { muteMail, turnMailsOff } from '../../db/notification_settings.ts'
import { within } from '../../db/within.ts'
import type { OrderInMail } from '../../domain/notifications/mail_content.ts'
import { HOUR_MS, SECOND_MS } from '../../domain/time.ts'
import { type BooksStage, openBooksStage, placeOrder } from '../testing/books_stage.ts'
import { pagesTouched } from '../testing/pages_touched.ts'
import type { World } from '../world.ts'
import { mailRelay } from './mail_relay.ts'
import { relayEvents } from './relay.ts'
import { keepNoHeap, type MailParts, mailSender, startMailing } from './send_mails.ts'
import { unsubscribing } from './unsubscribe.ts'

/**
 * What: every event becomes its mail once, for whoever wants it; every mail is handed on once as far as anybody can
 * know, is never lost, and does not wait for ever.
 * How: a real PostgreSQL; a mail server that says what the test wants (the real one is in channels/email and in the
 * functional tests); workers that die are promises that never end.
 */
let stage: BooksStage
let world: World
let relay: () => Promise<boolean>

beforeAll(async () => {
  stage = await openBooksStage('mails')
  world = { ...stage.world, clock: { ...stage.world.clock, sleep: systemClock().sleep } }
  relay = () => relayEvents(world, [mailRelay(world)])
})

beforeEach(async () => {
  await stage.reset()
  await stage.empty(
    ...[
      'mails',
      'notification_settings',
      'accounts',
      'api_keys',
      'api_key_secrets',
      'email_changes',
      'sessions',
      'ask_counts',
    ],
    ...['webhook_secrets', 'webhook_endpoints'],
  )
  await stage.corrupt(
    `INSERT INTO accounts (account_id, name, created_at_ms, email) VALUES
       ('acc_reader00', 'reads', 0, 'reads@example.org'), ('acc_mute0000', 'no address', 0, NULL)`,
  )
})

afterAll(() => stage?.stop())

type Row = {
  kind: string
  state: string
  to_address: string
  attempts: number
  due_at_ms: number
  data: object
  message_id: string
  last_answer: string | null
}

const rows = () =>
  stage.db.query<Row>('SELECT * FROM mails ORDER BY queued_at_ms, length(event_key), event_key')
const kinds = async () => (await rows()).map(({ kind }) => kind)

/** An order of this account that has gone through these statuses. */
async function orderOf(accountId: string, statuses: readonly string[], callbackUrl: string | null = null) {
  const { terms } = await placeOrder(stage, 'BTC:BTC', 'ETH:ETH', { asks: 1n, promises: 1n })
  const last = statuses.at(-1) ?? 'NEW'
  await stage.corrupt('DELETE FROM events WHERE order_id = $1', [terms.id])
  for (const [index, status] of statuses.entries()) {
    const snapshot = { order_id: terms.id, ...(status === 'EMERGENCY' && { emergency }) }
    await stage.corrupt(
      `INSERT INTO events (bucket, order_id, sequence, previous_status, status, fact_key, snapshot, at_ms)
       SELECT bucket, order_id, $2, $3, $4, $5, $6, 1 FROM orders WHERE order_id = $1`,
      [terms.id, index + 1, statuses[index - 1] ?? null, status, `fact:${index}`, JSON.stringify(snapshot)],
    )
  }
  await stage.corrupt(
    `UPDATE orders SET account_id = $2, callback_url = $3, sequence = $4, status = $5, payout_tx_hash = 'tx',
       completed_at_ms = CASE WHEN $5 IN ('DONE', 'REFUNDED') THEN 1 END, refund_units = 1,
       emergency_reasons = CASE WHEN $5 = 'EMERGENCY' THEN ARRAY['UNDERPAID'] ELSE '{}' END
     WHERE order_id = $1`,
    [terms.id, accountId, callbackUrl, statuses.length, last],
  )
  return terms.id
}

const refund = { refund_amount: '1', currency: 'BTC', network: 'BTC', has_refund_address: true }
const emergency = { reasons: ['UNDERPAID'], options: { continue: null, recalculate: null, refund } }

const WHOLE_LIFE = ['NEW', 'PENDING', 'EXCHANGE', 'WITHDRAW', 'DONE']

describe('events become mails', () => {
  test('a whole life, told once however often it is handed on', async () => {
    const orderId = await orderOf('acc_reader00', WHOLE_LIFE)
    await relay()
    const first = await rows()
    expect(first.map(({ kind, to_address }) => [kind, to_address])).toEqual([
      ['order_created', 'reads@example.org'],
      ['payment_received', 'reads@example.org'],
      ['order_completed', 'reads@example.org'],
    ])
    expect(new Set(first.map(({ message_id }) => message_id)).size).toBe(3)
    await stage.corrupt('UPDATE orders SET relayed_sequence = 0 WHERE order_id = $1', [orderId])
    await relay()
    expect(await rows()).toEqual(first)
  })

  test('two processes at once make no more of them', async () => {
    await Promise.all(Array.from({ length: 4 }, () => orderOf('acc_reader00', WHOLE_LIFE)))
    await Promise.all([relay(), relay(), relay()])
    expect(await rows()).toHaveLength(12)
  })

  test('a deposit that comes, goes and comes again is told once; a second emergency is one more', async () => {
    await orderOf('acc_reader00', [
      'NEW',
      'PENDING',
      'NEW',
      'PENDING',
      'EMERGENCY',
      'EXCHANGE',
      'EMERGENCY',
      'REFUND',
      'REFUNDED',
    ])
    await relay()
    expect(await kinds()).toEqual([
      'order_created',
      'payment_received',
      'emergency_action_required',
      'emergency_action_required',
      'order_failed',
    ])
  })

  test('an account without an address, and an order of nobody, get none', async () => {
    await orderOf('acc_mute0000', WHOLE_LIFE)
    await orderOf('acc_stranger', WHOLE_LIFE)
    await relay()
    expect(await rows()).toEqual([])
  })

  test('settings decide: off, of orders with a callback only, without some kinds', async () => {
    await turnMailsOff(stage.db, 'acc_reader00')
    await orderOf('acc_reader00', WHOLE_LIFE)
    await relay()
    expect(await rows()).toEqual([])
    await stage.corrupt(`UPDATE notification_settings SET emails = 'with_callback'`)
    await orderOf('acc_reader00', WHOLE_LIFE)
    const called = await orderOf('acc_reader00', ['NEW', 'EXPIRED'], 'https://example.org/hook')
    await relay()
    expect((await rows()).map(({ data }) => data)).toEqual([
      { order: { order_id: called } },
      { order: { order_id: called } },
    ])
    await stage.empty('mails', 'notification_settings')
    for (const kind of ['payment_received', 'order_completed', 'payment_received'] as const) {
      await muteMail(stage.db, 'acc_reader00', kind)
    }
    await orderOf('acc_reader00', WHOLE_LIFE)
    await orderOf('acc_reader00', ['NEW', 'EXPIRED'])
    await relay()
    expect((await kinds()).toSorted()).toEqual(['order_created', 'order_created', 'order_expired'])
  })

  test('what is changed later does not reach what has been handed on', async () => {
    await orderOf('acc_reader00', ['NEW'])
    await relay()
    await turnMailsOff(stage.db, 'acc_reader00')
    const server = mailServer()
    await server.step()
    expect(server.sent).toHaveLength(1)
  })
})

/** A mail server that says what `answer` says, and what it was given. */
function mailServer(answer: (mail: Mail) => Promise<MailAnswer> | MailAnswer = () => taken) {
  const sent: Mail[] = []
  const channel: MailChannel = {
    send: async (mail) => {
      sent.push(mail)
      return answer(mail)
    },
    close: async () => {},
  }
  const steps = mailSender(world, parts, channel)
  const step = () => stepBoth(steps)
  return {
    sent,
    step,
    /** Until nothing is due. */
    all: async () => {
      while (await step());
    },
    /** What each said that was sent. */
    said: () => sent.map(({ text }) => (JSON.parse(text) as { what: string }).what),
  }
}

/** A step with links and one with others, at once. Whether either may have more. */
async function stepBoth(
  { links, others }: ReturnType<typeof mailSender>,
  { signal } = new AbortController(),
): Promise<boolean> {
  const haveMore = await Promise.all([links(signal), others(signal)])
  return haveMore.includes(true)
}

const taken: MailAnswer = { kind: 'accepted', said: '250 taken' }

const parts: MailParts = {
  channel: null,
  render: ({ content, messageId, to }) => ({
    messageId,
    to,
    subject: content.kind,
    text: JSON.stringify(content.data),
    html: '',
    unsubscribeUrl: null,
  }),
}

function queue(eventKey: string, more: Partial<Parameters<typeof queueMail>[1]> = {}) {
  return queueMail(stage.db, {
    kind: 'security_notice',
    data: { what: eventKey },
    eventKey,
    orderId: null,
    accountId: null,
    to: 'reads@example.org',
    nowMs: world.clock.nowMs(),
    ...more,
  } as Parameters<typeof queueMail>[1])
}

const FIRST_ORDER = 'CB0000000000000101'

function queueOf(orderId: string, sequence: number, more: { readonly to?: string } = {}) {
  return queue(`${orderId}:${sequence}`, { orderId, sequence, ...more })
}

describe('mails are handed on', () => {
  test('what is taken is over, and keeps nothing of what it said', async () => {
    await queue('one')
    const server = mailServer()
    await server.step()
    await server.step()
    expect(server.sent.map(({ text }) => text)).toEqual(['{"what":"one"}'])
    expect(await rows()).toMatchObject([{ state: 'sent', attempts: 1, data: {}, last_answer: '250 taken' }])
  })

  test('the mails of one order leave in the order of its events', async () => {
    for (const sequence of [11, 2, 1, 10, 3]) await queueOf(FIRST_ORDER, sequence)
    const server = mailServer()
    await server.all()
    expect(server.said()).toEqual([1, 2, 3, 10, 11].map((sequence) => `${FIRST_ORDER}:${sequence}`))
  })

  test('accounts have their mails sent in turn, however many one of them has waiting', async () => {
    for (let index = 0; index < 100; index += 1) await queue(`flood ${index}`, { accountId: 'acc_flood000' })
    stage.advance(SECOND_MS)
    const others = Array.from({ length: 45 }, (_, n) => `acc_other${String(n).padStart(3, '0')}`)
    for (const accountId of others) await queue(accountId, { accountId })
    await queue('of no account')
    const server = mailServer()
    for (let step = 0; step < 3; step += 1) await server.step()
    const said = server.said()
    expect(said).toEqual(expect.arrayContaining([...others, 'of no account']))
    expect(said.filter((what) => what.startsWith('flood')).length).toBeLessThanOrEqual(14)
    await server.all()
    expect(server.sent).toHaveLength(146)
  })

  test('of accounts with nothing that may leave now, all are gone past before there is a rest', async () => {
    const away = mailServer(() => ({ kind: 'failed', why: 'it is away' }))
    for (let index = 0; index < 50; index += 1) {
      await queue(`early ${index}`, { accountId: `acc_early${String(index).padStart(3, '0')}` })
    }
    await away.all()
    await queue('late', { accountId: 'acc_zlast000' })
    const server = mailServer()
    await server.all()
    expect(server.said()).toEqual(['late'])
    // Of others, who hold them: whoever finds nothing rests.
    stage.advance(60 * SECOND_MS)
    await stage.corrupt('UPDATE mails SET claimed_until_wall_ms = $1', [world.clock.wallMs() + 6_000])
    const busy = mailServer()
    await busy.all()
    expect(busy.sent).toEqual([])
  })

  test('what one account has waiting costs no claim of others', async () => {
    const time = () => ({ nowMs: world.clock.nowMs(), wallMs: world.clock.wallMs(), claimMs: 1 })
    const pagesOfClaim = async () => {
      await stage.corrupt('VACUUM ANALYZE mails')
      let pages = 0
      // Both statements of a claim, and the second as it would be after the first.
      const sql: Sql = {
        query: async (text, values) => {
          pages += await pagesTouched(stage.db, (counted) => counted.query(text, values))
          return text.includes('UPDATE') ? [] : stage.db.query(text, values)
        },
      }
      await claimMails(sql, time(), 20)
      return pages
    }
    const queueMany = (from: number, to: number) =>
      stage.corrupt(
        `INSERT INTO mails (bucket, event_key, kind, to_address, account_id, data, message_id, queued_at_ms, due_at_ms)
         SELECT 0, 'many:' || n, 'security_notice', 'reads@example.org', 'acc_flood000', '{}',
           'message_id_of_many_' || n, $3::bigint, $3::bigint
         FROM generate_series($1::integer, $2::integer) AS n`,
        [from, to, world.clock.nowMs() - 1],
      )
    await queueMany(1, 100)
    const few = await pagesOfClaim()
    await queueMany(101, 20_000)
    expect(await pagesOfClaim()).toBeLessThan(few * 2 + 100)
  })

  test.each([
    ['links that end', 'other mails', 'sign_in_link', 'security_notice'],
    ['other mails', 'links that end', 'security_notice', 'sign_in_link'],
  ] as const)(
    '%s wait for no conversation about %s, however slow the mail server is',
    async (_, __, quick, slow) => {
      const link = { link: 'https://x.example.org/in', expires_at_ms: world.clock.wallMs() + HOUR_MS }
      const queueOne = (kind: typeof quick, name: string) =>
        kind === 'sign_in_link' ? queue(name, { kind, data: link }) : queue(name)
      for (let index = 0; index < 8; index += 1) await queueOne(slow, `slow ${index}`)
      stage.advance(SECOND_MS)
      // More than one step takes.
      for (let index = 0; index < 25; index += 1) await queueOne(quick, `quick ${index}`)
      const answer = Promise.withResolvers<MailAnswer>()
      const begun = { sign_in_link: 0, security_notice: 0 }
      const channel: MailChannel = {
        send: async ({ subject }) => {
          begun[subject as typeof quick] += 1
          return subject === slow ? answer.promise : taken
        },
        close: async () => answer.resolve({ kind: 'cut_off', mayHaveIt: false }),
      }
      const loop = startMailing(world, { ...parts, channel })
      const places = world.policy.atOnce
      await expect.poll(() => [begun[slow], begun[quick]]).toEqual([places, 25])
      await loop.stop()
      expect(begun[slow], 'each kind has so many places and no more').toBe(places)
    },
  )

  test('a mail that has to be tried again holds up the later ones of its order to its address, and nobody else', async () => {
    await queueOf(FIRST_ORDER, 1)
    await queueOf(FIRST_ORDER, 2)
    await queueOf(FIRST_ORDER, 3, { to: 'other@example.org' })
    await queueOf('CB0000000000000201', 2)
    await queue(`webhook:${FIRST_ORDER}:2:callback:1`, { orderId: FIRST_ORDER })
    let isAway = true
    const server = mailServer(({ text }) =>
      isAway && text.includes(`${FIRST_ORDER}:1`) ? { kind: 'failed', why: 'it is away' } : taken,
    )
    await server.all()
    const others = [`${FIRST_ORDER}:3`, 'CB0000000000000201:2', `webhook:${FIRST_ORDER}:2:callback:1`]
    expect(server.said().toSorted()).toEqual([`${FIRST_ORDER}:1`, ...others].toSorted())

    isAway = false
    await server.all()
    expect(server.sent).toHaveLength(4)
    stage.advance(15 * SECOND_MS)
    await server.all()
    expect(server.said().slice(4)).toEqual([`${FIRST_ORDER}:1`, `${FIRST_ORDER}:2`])
  })

  test('a mail that a mail server will not hear is tried again, and the later ones of its order leave without it', async () => {
    for (const sequence of [1, 2, 3]) await queueOf(FIRST_ORDER, sequence)
    let isMended = false
    const server = mailServer(({ text }) =>
      isMended || !text.includes(`${FIRST_ORDER}:1`)
        ? taken
        : { kind: 'failed', why: '554 no', mayBeContent: true },
    )
    await server.all()
    expect(server.said()).toEqual([1, 2, 3].map((sequence) => `${FIRST_ORDER}:${sequence}`))
    expect((await rows()).map(({ state }) => state)).toEqual(['waiting', 'sent', 'sent'])
    isMended = true
    stage.advance(15 * SECOND_MS)
    await server.all()
    expect(await rows()).toMatchObject([{ state: 'sent', attempts: 2 }, {}, {}])
  })

  test('what waits behind mails that have to be tried again is not gone through for every claim', async () => {
    const pages = () => pagesTouched(stage.db, (sql) => claimMails(sql, { ...time(), claimMs: 1 }, 20))
    const time = () => ({ nowMs: world.clock.nowMs(), wallMs: world.clock.wallMs() })
    const away = mailServer(() => ({ kind: 'failed', why: 'it is away' }))
    const queueOrders = async (count: number) => {
      for (let index = 0; index < count; index += 1) {
        const orderId = `CB00000000${String(index).padStart(6, '0')}01`
        for (const sequence of [1, 2, 3]) await queueOf(orderId, sequence)
      }
      await away.all()
      await stage.corrupt('VACUUM ANALYZE mails')
    }
    await queueOrders(10)
    const few = await pages()
    await queueOrders(400)
    expect(await pages()).toBeLessThan(few + 20)
    // What was put off leaves when its turn comes, in its order.
    stage.advance(60 * SECOND_MS)
    const there = mailServer()
    await there.all()
    expect(there.sent).toHaveLength(1_200)
    const ofOne = there.said().filter((name) => name.startsWith('CB0000000000004201:'))
    expect(ofOne.map((name) => name.slice(-1))).toEqual(['1', '2', '3'])
  })

  test('behind a mail that is refused for good the next one leaves', async () => {
    await queueOf(FIRST_ORDER, 1)
    await queueOf(FIRST_ORDER, 2)
    const server = mailServer(({ text }) => (text.includes(':1"') ? { kind: 'refused', said: '550' } : taken))
    await server.all()
    expect((await rows()).map(({ state }) => state)).toEqual(['refused', 'sent'])
  })

  test('what is refused for good is not tried again', async () => {
    await queue('one')
    const server = mailServer(() => ({ kind: 'refused', said: '550 nobody here' }))
    await server.step()
    stage.advance(100 * HOUR_MS)
    await server.step()
    expect(server.sent).toHaveLength(1)
    expect(await rows()).toMatchObject([{ state: 'refused', last_answer: '550 nobody here', data: {} }])
  })

  test('trouble is waited out with growing rests, for three days and no longer', async () => {
    await queue('one')
    const begunMs = world.clock.nowMs()
    const server = mailServer(() => ({ kind: 'failed', why: 'it\0 is away' }))
    const rests: number[] = []
    for (;;) {
      await server.step()
      const [row] = await rows()
      if (row?.state !== 'waiting') break
      const restMs = row.due_at_ms - world.clock.nowMs()
      rests.push(restMs)
      stage.advance(restMs - 1)
      await server.step()
      stage.advance(1)
    }
    expect(rests.slice(0, 4)).toEqual([15, 60, 300, 900].map((seconds) => seconds * SECOND_MS))
    expect(server.sent).toHaveLength(rests.length + 1)
    expect(new Set(server.sent.map(({ messageId }) => messageId)).size).toBe(1)
    expect(world.clock.nowMs() - begunMs).toBeGreaterThan(70 * HOUR_MS)
    expect(world.clock.nowMs() - begunMs).toBeLessThanOrEqual(72 * HOUR_MS)
    expect(await rows()).toMatchObject([{ state: 'given_up', last_answer: 'it is away', data: {} }])
    expect(stage.logged.filter(({ message }) => message.includes('tried again'))).toHaveLength(1)
  })

  test('while one worker holds a mail nobody else sends it; when it is dead, the next one sends the same', async () => {
    await queue('one')
    const { promise, resolve: end } = Promise.withResolvers<MailAnswer>()
    const dying = mailServer(() => promise)
    const dyingStep = dying.step()
    await expect.poll(() => dying.sent).toHaveLength(1)
    const other = mailServer()
    await other.step()
    expect(other.sent).toEqual([])
    // The dead one renews nothing; its claim is over.
    await stage.corrupt('UPDATE mails SET claimed_until_wall_ms = 1')
    await other.step()
    expect(other.sent.map(({ messageId }) => messageId)).toEqual(dying.sent.map(({ messageId }) => messageId))
    expect(await rows()).toMatchObject([{ state: 'sent', attempts: 2 }])
    // Else it would go on renewing what other tests claim under the same key.
    end({ kind: 'cut_off', mayHaveIt: true })
    await dyingStep
  })

  test('a renewal that fails is made up for by the next one', async () => {
    await queue('one')
    const { promise, resolve: answer } = Promise.withResolvers<MailAnswer>()
    let isAway = false
    let failures = 0
    const query: Database['query'] = async (text, values) => {
      if (!isAway) return world.db.query(text, values)
      failures += 1
      throw new Error('the database is away')
    }
    const shaky = {
      ...world,
      db: { ...world.db, query },
      clock: { ...world.clock, sleep: (_ms: number, signal?: AbortSignal) => systemClock().sleep(5, signal) },
    }
    const send = () => {
      isAway = true
      return promise
    }
    const { others } = mailSender(shaky, parts, { send, close: async () => {} })
    const sending = others(new AbortController().signal)
    await expect.poll(() => failures).toBeGreaterThan(1)
    await stage.corrupt('UPDATE mails SET claimed_until_wall_ms = 1')
    isAway = false
    const claimed = async () =>
      (await stage.db.query<{ until: number }>('SELECT claimed_until_wall_ms AS until FROM mails'))[0]?.until
    await expect.poll(claimed).toBeGreaterThan(world.clock.wallMs())
    answer(taken)
    await sending
    expect(await rows()).toMatchObject([{ state: 'sent', attempts: 1 }])
    expect(stage.logged.filter(({ message }) => message.includes('was not renewed'))).toHaveLength(1)
  })

  test('a claim that ran out before its turn was no attempt', async () => {
    for (let index = 0; index < 20; index += 1) await queue(`notice ${index}`)
    const slow = mailServer(() => new Promise(() => {}))
    void slow.step()
    await expect.poll(() => slow.sent.length).toBe(world.policy.atOnce)
    const begun = new Set(slow.sent.map(({ messageId }) => messageId))
    for (const mail of await rows()) {
      if (!begun.has(mail.message_id))
        await stage.corrupt('UPDATE mails SET claimed_until_wall_ms = 1 WHERE message_id = $1', [
          mail.message_id,
        ])
    }
    await mailServer(() => ({ kind: 'failed', why: 'not now' })).step()
    const tried = (await rows()).filter(({ message_id }) => !begun.has(message_id))
    expect(tried).toHaveLength(20 - world.policy.atOnce)
    for (const mail of tried) {
      expect([mail.attempts, mail.due_at_ms - world.clock.nowMs()]).toEqual([1, 15 * SECOND_MS])
    }
  })

  test('a late worker notes that its mail was taken, and undoes nothing of the one that came after', async () => {
    await queue('one')
    const { promise, resolve: answer } = Promise.withResolvers<MailAnswer>()
    const slow = mailServer(() => promise)
    const slowStep = slow.step()
    await expect.poll(() => slow.sent).toHaveLength(1)
    await stage.corrupt('UPDATE mails SET claimed_until_wall_ms = 1')
    const other = mailServer(() => ({ kind: 'failed', why: 'not now' }))
    await other.step()
    answer(taken)
    await slowStep
    expect(await rows()).toMatchObject([{ state: 'sent', last_answer: '250 taken' }])
  })

  test('a late worker that failed leaves alone what somebody else has sent', async () => {
    await queue('one')
    const { promise, resolve: answer } = Promise.withResolvers<MailAnswer>()
    const slow = mailServer(() => promise)
    const slowStep = slow.step()
    await expect.poll(() => slow.sent).toHaveLength(1)
    await stage.corrupt('UPDATE mails SET claimed_until_wall_ms = 1')
    await mailServer().step()
    answer({ kind: 'refused', said: '550' })
    await slowStep
    expect(await rows()).toMatchObject([{ state: 'sent' }])
  })

  test.each<MailAnswer>([
    { kind: 'cut_off', mayHaveIt: false },
    { kind: 'failed', why: 'it is away' },
    { kind: 'refused', said: '550' },
  ])(
    'a late worker whose conversation came to nothing ($kind) takes the mail from nobody who has it by then',
    async (answer) => {
      await queue('one')
      const conversations = [
        Promise.withResolvers<MailAnswer>(),
        Promise.withResolvers<MailAnswer>(),
      ] as const
      const [late, other] = conversations.map(({ promise }) => mailServer(() => promise))
      const lateStep = late?.step()
      await expect.poll(() => late?.sent).toHaveLength(1)
      await stage.corrupt('UPDATE mails SET claimed_until_wall_ms = 1')
      const otherStep = other?.step()
      await expect.poll(() => other?.sent).toHaveLength(1)
      const held = await rows()
      conversations[0].resolve(answer)
      await lateStep
      expect(await rows()).toEqual(held)
      conversations[1].resolve(taken)
      await otherStep
      expect(await rows()).toMatchObject([{ state: 'sent' }])
    },
  )

  test('a stop gives back what was not begun', async () => {
    await queue('one')
    const stopped = new AbortController()
    stopped.abort()
    const server = mailServer()
    await stepBoth(mailSender(world, parts, { send: async () => taken, close: async () => {} }), stopped)
    expect(await rows()).toMatchObject([{ state: 'waiting', attempts: 0 }])
    await server.step()
    expect(server.sent).toHaveLength(1)
  })

  test.each([false, true])(
    'a stop cuts off a mail server that is slow, which is no failure of it (%s)',
    async (mayHaveIt) => {
      await queue('one')
      const [before] = await rows()
      const closing = Promise.withResolvers<MailAnswer>()
      const sent: Mail[] = []
      const channel: MailChannel = {
        send: (mail) => {
          sent.push(mail)
          return closing.promise
        },
        close: async () => closing.resolve({ kind: 'cut_off', mayHaveIt }),
      }
      const loop = startMailing(world, { ...parts, channel })
      await expect.poll(() => sent).toHaveLength(1)
      await loop.stop()
      expect(await rows()).toEqual([{ ...before, claim_fence: 1 }])
      const tellsIt = stage.logged.some(({ message }) => message.includes('it may come twice'))
      expect(tellsIt).toBe(mayHaveIt)
      const next = mailServer()
      await next.all()
      expect(next.sent).toEqual(sent)
    },
  )

  test('a stop hears what a mail server says within a moment', async () => {
    await queue('one')
    const answer = Promise.withResolvers<MailAnswer>()
    let isAsked = false
    const channel: MailChannel = {
      send: () => {
        isAsked = true
        return answer.promise
      },
      close: async () => answer.resolve({ kind: 'cut_off', mayHaveIt: true }),
    }
    const loop = startMailing(world, { ...parts, channel })
    await expect.poll(() => isAsked).toBe(true)
    const stopped = loop.stop()
    answer.resolve(taken)
    await stopped
    expect(await rows()).toMatchObject([{ state: 'sent', attempts: 1 }])
  })

  test('a link that has ended is not sent', async () => {
    const link = { link: 'https://x.example.org/in', expires_at_ms: world.clock.wallMs() + HOUR_MS }
    await queue('one', { kind: 'sign_in_link', data: link })
    await queue('two', { kind: 'sign_in_link', data: { ...link, expires_at_ms: world.clock.wallMs() } })
    const server = mailServer()
    await server.step()
    expect(server.sent).toHaveLength(1)
    expect((await rows()).map(({ state, data }) => [state, data])).toEqual([
      ['sent', {}],
      ['given_up', {}],
    ])
  })

  test('where to pay is not sent once the time to pay has ended, and what happened since is', async () => {
    const order = { order_id: FIRST_ORDER, expires_at: world.clock.nowMs() + HOUR_MS } as OrderInMail
    const data = { order }
    await queue(`${FIRST_ORDER}:1`, { kind: 'order_created', data, orderId: FIRST_ORDER, sequence: 1 })
    await queue(`${FIRST_ORDER}:2`, { kind: 'order_expired', data, orderId: FIRST_ORDER, sequence: 2 })
    const early = { order: { ...order, order_id: 'CB0000000000000201', expires_at: order.expires_at + 1 } }
    await queue('CB0000000000000201:1', { kind: 'order_created', data: early })
    await mailServer(() => ({ kind: 'failed', why: 'it is away' })).all()
    stage.advance(HOUR_MS)
    const server = mailServer()
    await server.all()
    expect(server.sent.map(({ subject, text }) => [subject, JSON.parse(text)])).toEqual([
      ['order_created', early],
      ['order_expired', data],
    ])
    expect((await rows()).map(({ state, last_answer }) => [state, last_answer])).toEqual([
      ['given_up', 'the time to pay its order had ended before it could be sent'],
      ['sent', '250 taken'],
      ['sent', '250 taken'],
    ])
  })

  test('one that cannot be rendered stops no other, of its own order neither', async () => {
    await queueOf(FIRST_ORDER, 1)
    await queueOf(FIRST_ORDER, 2)
    await queue('good')
    const channel: MailChannel = { send: async () => taken, close: async () => {} }
    const render: MailParts['render'] = (mail, nowMs) => {
      if (mail.eventKey === `${FIRST_ORDER}:1`) throw new Error('there is no such name')
      return parts.render(mail, nowMs)
    }
    const steps = mailSender(world, { channel, render }, channel)
    while (await stepBoth(steps));
    // In the order of their names: the good one, and the two of the order.
    expect((await rows()).map(({ state }) => state)).toEqual(['sent', 'waiting', 'sent'])
  })
})

const OLD = 'reads@example.org'
const NEW = 'new@example.org'

function accountsPlace(): OwnerPlace {
  const { wallMs, nowMs } = world.clock
  return {
    ...{ db: stage.db, wallMs, nowMs, baseUrl: () => 'https://x.example.org', loopbackAllowed: false },
    box: createSecretBox([createSecretKey(Buffer.alloc(32, 7))]),
    changeLimits: { keys: 20, settings: 60 },
  }
}

function setAddress(email: string | null) {
  return setEmail(accountsPlace(), operator, 'acc_reader00', email)
}

/** Both addresses agree, by the links that they were sent. */
async function changeAddress(email: string) {
  const place = accountsPlace()
  const account = await findAccount(place, 'acc_reader00')
  if (account === null) throw new Error('the account is there')
  await askEmailChange(place, operator, account, email, { perEmail: 5, perAddress: 20 })
  const links = (await rows()).filter(({ kind }) => kind.startsWith('email_change_'))
  for (const { data } of links) {
    const { link } = data as { link: string }
    const token = link.slice(link.indexOf('token=') + 'token='.length)
    expect(await agreeToEmailChange(place, operator, token)).toMatchObject({ ok: true })
  }
}

/** An order's, those about the account, and a link to sign in with; the mail server took none of them. */
async function letMailsWait() {
  await orderOf('acc_reader00', ['NEW', 'PENDING', 'EMERGENCY'])
  await relay()
  const accountId = 'acc_reader00'
  const link = { link: 'https://x.example.org/in', expires_at_ms: world.clock.wallMs() + 100 * HOUR_MS }
  const hook = { order_id: FIRST_ORDER, url: 'https://shop.example/', endpoint: null }
  await queue('link', { accountId, kind: 'sign_in_link', data: link })
  await queue('hook', { accountId, kind: 'webhook_exhausted', data: hook })
  await queue('key', { accountId, kind: 'key_created', data: { key_id: 'ck_1', label: '' } })
  await queue('rotated', { accountId })
  const away = mailServer(() => ({ kind: 'failed', why: `${OLD} is greylisted` }))
  await away.all()
  expect(away.sent.map(({ subject }) => subject)).toContain('order_created')
  stage.advance(1)
}

describe('an account leaves its address', () => {
  test('what waits for an address that was taken away is not sent there', async () => {
    await letMailsWait()
    await queue('of a stranger at that address', { accountId: 'acc_stranger' })
    await setAddress(null)
    stage.advance(2 * HOUR_MS)
    const server = mailServer()
    await server.all()
    expect(server.said().toSorted()).toEqual([
      'The operator of the service has taken the email address of your account away. Nobody is signed in to it any more.',
      'of a stranger at that address',
    ])
    const ended = (await rows()).filter(({ state }) => state !== 'sent')
    expect(ended).toHaveLength(7)
    const end = { state: 'given_up', data: {}, last_answer: 'the account has left this address' }
    for (const row of ended) expect(row).toMatchObject(end)
  })

  test.each([
    ['the operator sets', setAddress],
    ['both have agreed to', changeAddress],
  ])('what waits goes to the address that the account has by now, which %s', async (_, change) => {
    await letMailsWait()
    const before = await rows()
    await change(NEW)
    const after = await rows()
    for (const kind of [
      'order_created',
      'payment_received',
      'emergency_action_required',
      'webhook_exhausted',
    ]) {
      const [was, is] = [before, after].map((all) => all.find((row) => row.kind === kind))
      expect(is).toMatchObject({ to_address: NEW, attempts: 0, last_answer: null, data: was?.data })
      expect(is?.message_id, 'another mail to a mail program').not.toBe(was?.message_id)
    }
    // At once: the new address has kept nobody waiting.
    const server = mailServer()
    await server.all()
    const sentTo = (address: string) => server.sent.filter(({ to }) => to === address)
    expect(sentTo(NEW).map(({ subject }) => subject)).toEqual(
      expect.arrayContaining(['order_created', 'webhook_exhausted']),
    )
    const ofOrder = sentTo(NEW).filter(({ text }) => text.includes('"order":'))
    expect(ofOrder.map(({ subject }) => subject)).toEqual([
      'order_created',
      'payment_received',
      'emergency_action_required',
    ])
    stage.advance(HOUR_MS)
    await server.all()
    // Whom they warn, and links that lead nowhere any more.
    expect(new Set(sentTo(OLD).map(({ subject }) => subject))).toEqual(
      new Set(['key_created', 'security_notice']),
    )
    expect(sentTo(OLD)).toHaveLength(3)
    expect(server.sent.filter(({ subject }) => /link|email_change/.test(subject))).toEqual([])
    expect(new Set((await rows()).map(({ state }) => state))).toEqual(new Set(['sent', 'given_up']))
  })

  test.each<MailAnswer>([
    taken,
    { kind: 'refused', said: '550 nobody here' },
    { kind: 'failed', why: 'not now' },
    { kind: 'cut_off', mayHaveIt: true },
  ])(
    'what a worker holds goes to the old address only where it has begun, and to the new one whatever comes of that ($kind)',
    async (answer) => {
      const count = world.policy.atOnce + 3
      const data = { order_id: FIRST_ORDER, url: 'https://shop.example/', endpoint: null }
      for (let index = 0; index < count; index += 1) {
        await queue(`hook ${index}`, { accountId: 'acc_reader00', kind: 'webhook_exhausted', data })
      }
      const answers = Promise.withResolvers<MailAnswer>()
      const slow = mailServer(() => answers.promise)
      const slowStep = slow.step()
      await expect.poll(() => slow.sent.length).toBe(world.policy.atOnce)
      await setAddress(NEW)
      const moved = await rows()
      answers.resolve(answer)
      await slowStep
      expect(slow.sent).toHaveLength(world.policy.atOnce)
      expect(await rows()).toEqual(moved)
      const server = mailServer()
      await server.all()
      expect(
        server.sent.filter(({ subject }) => subject === 'webhook_exhausted').map(({ to }) => to),
      ).toEqual(new Array(count).fill(NEW))
    },
  )

  test('what the new address was told before is not told it again', async () => {
    const data = { order_id: FIRST_ORDER, url: 'https://shop.example/', endpoint: null }
    const hook = { accountId: 'acc_reader00', kind: 'webhook_exhausted', data } as const
    await setAddress(NEW)
    await queue('hook', { ...hook, to: NEW })
    const server = mailServer()
    await server.all()
    await setAddress(OLD)
    await queue('hook', hook)
    await setAddress(NEW)
    await server.all()
    expect(server.sent.filter(({ subject }) => subject === 'webhook_exhausted')).toMatchObject([{ to: NEW }])
    const hooks = (await rows()).filter(({ kind }) => kind === 'webhook_exhausted')
    expect(hooks.map(({ to_address, state }) => [to_address, state]).toSorted()).toEqual([
      [NEW, 'sent'],
      [OLD, 'given_up'],
    ])
  })

  test('what is queued at the moment of the change goes to the new address as well', async () => {
    const orderId = await orderOf('acc_reader00', ['NEW'])
    const isRead = Promise.withResolvers<void>()
    const mayEnd = Promise.withResolvers<void>()
    const relaying = relayEvents(world, [
      mailRelay(world),
      async () => {
        isRead.resolve()
        await mayEnd.promise
      },
    ])
    await isRead.promise
    const changing = setAddress(NEW)
    await soon(async () => {
      const waits = await stage.asOwner.query(`SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock'`)
      expect(waits).toHaveLength(1)
    })
    mayEnd.resolve()
    await Promise.all([relaying, changing])
    const server = mailServer()
    await server.all()
    expect(server.sent.filter(({ text }) => text.includes(orderId))).toMatchObject([{ to: NEW }])
  })

  test('an owner who adds an endpoint keeps no relay waiting', async () => {
    await orderOf('acc_reader00', ['NEW'])
    await stage.db.transaction(async (tx) => {
      await createEndpoint({ ...accountsPlace(), db: within(tx) }, 'acc_reader00', 'https://shop.example/')
      await relay()
    })
    expect(await kinds()).toEqual(['order_created'])
  })
})

test('a link that was used before switches nothing off and is not written down again', async () => {
  await stage.empty('audit_log', 'audit_heads')
  const { unsubscribe } = unsubscribing(stage.db, createSecretKey(Buffer.alloc(32, 7)))
  for (const mailClass of ['order_expired', 'order_expired', 'all', 'all', 'order_expired'] as const) {
    await unsubscribe({ accountId: 'acc_reader00', mailClass }, { address: '203.0.113.7', atMs: 1 })
  }
  expect(await stage.db.query('SELECT emails, muted FROM notification_settings')).toEqual([
    { emails: 'off', muted: ['order_expired'] },
  ])
  const written = await stage.db.query<{ detail: string }>('SELECT detail FROM audit_log ORDER BY sequence')
  expect(written.map(({ detail }) => JSON.parse(detail))).toEqual([
    { unsubscribed: 'order_expired' },
    { unsubscribed: 'all' },
  ])
})

test('without a mail server mails wait for three days, and are forgotten a month after they were over', async () => {
  await queue('one')
  await keepNoHeap(world)
  expect(await rows()).toMatchObject([{ state: 'waiting' }])
  expect(stage.logged).toEqual([])
  stage.advance(73 * HOUR_MS)
  await queue('two')
  await keepNoHeap(world)
  expect((await rows()).map(({ state }) => state)).toEqual(['given_up', 'waiting'])
  expect(stage.logged).toMatchObject([{ level: 'warn', facts: { mails: 1 } }])
  await deleteMails(stage.db, world.clock.nowMs(), 10)
  expect(await rows()).toHaveLength(2)
  await deleteMails(stage.db, world.clock.nowMs() + 1, 10)
  expect((await rows()).map(({ state }) => state)).toEqual(['waiting'])
})
