import { eventKeyOf, findRepeats, type OrderEvent } from '../../db/events.ts'
import { queueMail } from '../../db/mails.ts'
import { findMailReaders, type MailReader } from '../../db/notification_settings.ts'
import { mailOfEvent } from '../../domain/notifications/mail_of_event.ts'
import { isWanted } from '../../domain/notifications/preferences.ts'
import type { OrderView } from '../desks/desk.ts'
import type { World } from '../world.ts'
import type { Relay } from './relay.ts'

/**
 * Turns events into mails that are due, for accounts that have an address and want them. What an account wants is asked
 * here, once: who unsubscribes later has still been told of what was before.
 */
export function mailRelay({ clock }: Pick<World, 'clock'>): Relay {
  return async (tx, events) => {
    const accountIds = [...new Set(events.map(({ accountId }) => accountId))]
    const readers = new Map(
      (await findMailReaders(tx, accountIds)).map((reader) => [reader.accountId, reader]),
    )
    const read = events.filter(({ accountId }) => readers.has(accountId))
    const repeats = await findRepeats(tx, read)
    for (const event of read) {
      const reader = readers.get(event.accountId)
      const eventKey = eventKeyOf(event.orderId, event.sequence)
      const kind = reader === undefined ? null : kindOf(event, reader, !repeats.has(eventKey))
      if (reader === undefined || kind === null) continue
      await queueMail(tx, {
        kind,
        data: { order: event.snapshot as OrderView },
        eventKey,
        orderId: event.orderId,
        sequence: event.sequence,
        accountId: reader.accountId,
        to: reader.email,
        nowMs: clock.nowMs(),
      })
    }
  }
}

function kindOf(event: OrderEvent, reader: MailReader, isFirst: boolean) {
  const { emergency = null } = event.snapshot as OrderView
  const kind = mailOfEvent({ status: event.status, isFirst, emergency })
  return kind !== null && isWanted(kind, reader, { hasCallback: event.callbackUrl !== null }) ? kind : null
}
