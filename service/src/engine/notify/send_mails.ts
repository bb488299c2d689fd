import type { Mail, MailAnswer, MailChannel } from '../../channels/channel.ts'
import {
  beginMail,
  type ClaimedMail,
  claimLinks,
  claimMails,
  endMail,
  giveUpMails,
  noteMailSent,
  postponeMail,
  renewMailClaim,
  returnMail,
} from '../../db/mails.ts'
import type { MailContent } from '../../domain/notifications/mail_content.ts'
import { MAIL_TRIED_FOR_MS, restAfterAttemptMs } from '../../domain/notifications/mail_retries.ts'
import type { InstantMs } from '../../domain/time.ts'
import type { Alarm } from '../alarms.ts'
import { atOnce } from '../at_once.ts'
import { type Loop, startLoop } from '../loop.ts'
import type { World } from '../world.ts'
import { idleRestMs } from './deliveries.ts'

/** What turns a row into a mail that arrives. */
export type MailParts = {
  /** Null: no mail server is configured. */
  readonly channel: MailChannel | null
  readonly render: (mail: ClaimedMail, nowMs: InstantMs) => Mail
}

/** What a step claims. It bounds no share: each kind has a loop of its own, and links are held down by the limits on asking. */
const MAILS_A_STEP = { links: 10, others: 20 }
/** A worker that died is followed after this; one that waits for a slow mail server renews it. */
const CLAIM_MS = 6_000
const RENEW_AFTER_MS = 2_000

const WITHOUT_MAIL_SERVER_MS = 60_000
const LAST_ANSWERS_MS = 1_000

/**
 * Hands on what is due. Any number of processes may: mails are claimed. A step lasts as long as its slowest conversation, minutes
 * perhaps, so whoever waits for a link to sign in with has steps of his own, and as many conversations again (`policy.atOnce`).
 */
export function startMailing(world: World, parts: MailParts, alarm?: Alarm): Loop {
  const { channel } = parts
  if (channel === null) return startLoop(world, 'mails', WITHOUT_MAIL_SERVER_MS, () => keepNoHeap(world))
  const { links, others } = mailSender(world, parts, channel)
  const loops = [
    startLoop(world, 'mails', idleRestMs(world), others, alarm),
    startLoop(world, 'mails with links', idleRestMs(world), links, alarm),
  ]
  return {
    name: 'mails',
    stop: async () => {
      const ended = Promise.all(loops.map((loop) => loop.stop()))
      await Promise.race([ended, world.clock.sleep(LAST_ANSWERS_MS)])
      await channel.close()
      await ended
    },
  }
}

type SendingStep = (signal: AbortSignal) => Promise<boolean>

/** Steps that send what is due. True: there may be more. */
export function mailSender(
  world: World,
  { render }: MailParts,
  channel: MailChannel,
): { readonly links: SendingStep; readonly others: SendingStep } {
  // One line when trouble begins and one when it ends, however many mails wait.
  let isTroubled = false
  const note = (answer: MailAnswer) => {
    if (answer.kind === 'failed' && !isTroubled) {
      world.log.warn({ why: answer.why }, 'a mail could not be handed on and is tried again')
    }
    if (answer.kind === 'accepted' && isTroubled) world.log.info({}, 'mails are handed on again')
    isTroubled = answer.kind === 'failed' || (isTroubled && answer.kind !== 'accepted')
  }
  const handOn = async (claimed: readonly ClaimedMail[], signal: AbortSignal) => {
    const { clock, db } = world
    await atOnce(world.policy.atOnce, claimed, async (mail) => {
      if (signal.aborted) return returnMail(db, mail)
      // The ones before it took their time: it may be in other hands by now.
      if (!(await beginMail(db, mail, clock.wallMs() + CLAIM_MS))) return
      const answer = await holding(world, mail, () => send(world, render, channel, mail))
      if (answer.kind !== 'useless') note(answer)
      await write(world, mail, answer)
    })
    // What is over may have had the next mail of its order waiting behind it.
    return claimed.length > 0
  }
  const claimOthers = claimingInTurn(world)
  return {
    links: async (signal) => handOn(await claimLinks(world.db, timeOf(world), MAILS_A_STEP.links), signal),
    others: async (signal) => {
      const { mails, mayBeMore } = await claimOthers()
      return (await handOn(mails, signal)) || mayBeMore
    },
  }
}

function timeOf({ clock }: World) {
  return { nowMs: clock.nowMs(), wallMs: clock.wallMs(), claimMs: CLAIM_MS }
}

/** Claims from one account after the other, in rounds. There is nothing more once a whole round has found nothing to claim. */
function claimingInTurn(world: World) {
  let leftOff = ''
  let isRoundEmpty = true
  return async () => {
    const turn = await claimMails(world.db, timeOf(world), MAILS_A_STEP.others, leftOff)
    leftOff = turn.leftOff
    isRoundEmpty &&= turn.mails.length === 0
    const mayBeMore = leftOff !== '' || !isRoundEmpty
    if (leftOff === '') isRoundEmpty = true
    return { mails: turn.mails, mayBeMore }
  }
}

/** Keeps the claim for as long as the work takes, so that nobody sends the same mail meanwhile. */
async function holding<Value>(
  { clock, db, log }: World,
  mail: ClaimedMail,
  work: () => Promise<Value>,
): Promise<Value> {
  const done = new AbortController()
  const renew = async () => {
    let failures = 0
    for (;;) {
      await clock.sleep(RENEW_AFTER_MS, done.signal)
      if (done.signal.aborted) return
      try {
        if (!(await renewMailClaim(db, mail, clock.wallMs() + CLAIM_MS))) return
      } catch (error) {
        // The conversation may go on for minutes: the next one may come in time, or before anybody else sees that it is late.
        failures += 1
        if (failures === 1) log.warn({ err: error }, 'the claim of a mail was not renewed')
      }
    }
  }
  const renewing = renew()
  try {
    return await work()
  } finally {
    done.abort()
    await renewing
  }
}

async function send(
  { clock }: World,
  render: MailParts['render'],
  channel: MailChannel,
  mail: ClaimedMail,
): Promise<MailAnswer | { readonly kind: 'useless'; readonly why: string }> {
  const why = whyUseless(mail.content, clock)
  if (why !== null) return { kind: 'useless', why }
  let rendered: Mail
  try {
    rendered = render(mail, clock.nowMs())
  } catch (error) {
    return { kind: 'failed', why: `it could not be rendered: ${String(error)}`, mayBeContent: true }
  }
  return channel.send(rendered)
}

/** What has waited for so long that it helps nobody any more, or would do harm: whoever pays an order that is over has to ask for his money. */
function whyUseless({ kind, data }: MailContent, clock: World['clock']): string | null {
  if ('expires_at_ms' in data && data.expires_at_ms !== undefined && data.expires_at_ms <= clock.wallMs())
    return 'its link had ended before it could be sent'
  if (kind === 'order_created' && data.order.expires_at <= clock.nowMs())
    return 'the time to pay its order had ended before it could be sent'
  return null
}

async function write(
  { clock, db, log }: World,
  mail: ClaimedMail,
  answer: Awaited<ReturnType<typeof send>>,
): Promise<void> {
  const nowMs = clock.nowMs()
  const named = { mail: mail.messageId, kind: mail.content.kind, attempts: mail.attempts }
  if (answer.kind === 'accepted') return noteMailSent(db, mail, answer.said, nowMs)
  if (answer.kind === 'refused') {
    log.warn({ ...named, said: answer.said }, 'a mail was refused for good')
    return endMail(db, mail, { state: 'refused', why: answer.said }, nowMs)
  }
  if (answer.kind === 'cut_off') {
    if (answer.mayHaveIt)
      log.info(named, 'a mail was cut off while the mail server took it: it may come twice')
    return returnMail(db, mail)
  }
  const dueAtMs = nowMs + restAfterAttemptMs(mail.attempts)
  if (answer.kind === 'failed' && dueAtMs <= mail.queuedAtMs + MAIL_TRIED_FOR_MS) {
    // What is refused for what it says is refused for three days: an emergency must not wait behind it.
    return postponeMail(db, mail, { dueAtMs, why: answer.why, leavesTurn: answer.mayBeContent === true })
  }
  log.warn({ ...named, why: answer.why }, 'a mail is given up')
  return endMail(db, mail, { state: 'given_up', why: answer.why }, nowMs)
}

const ROWS_A_STEP = 1_000

/** Without a mail server rows wait as long as they would be tried, in case one is configured, and no longer. */
export async function keepNoHeap({ clock, db, log }: World): Promise<boolean> {
  const nowMs = clock.nowMs()
  const mails = await giveUpMails(db, nowMs - MAIL_TRIED_FOR_MS, nowMs, ROWS_A_STEP)
  if (mails > 0) log.warn({ mails }, 'mails are given up: no mail server is configured')
  return mails === ROWS_A_STEP
}
