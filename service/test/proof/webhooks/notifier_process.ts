import { createSecretKey } from 'node:crypto'
import { createSecretBox } from '../../../src/accounts/secret_box.ts'
import { openWebhookSecrets } from '../../../src/accounts/webhook_secrets.ts'
import { webhookChannel } from '../../../src/channels/webhook/webhook_channel.ts'
import { systemClock } from '../../../src/clock.ts'
import { openDatabase } from '../../../src/db/database.ts'
import { findEventsToRelay, noteRelayed } from '../../../src/db/events.ts'
import { openAlarms } from '../../../src/engine/alarms.ts'
import { defaultPolicy } from '../../../src/engine/default_policy.ts'
import { startLoop } from '../../../src/engine/loop.ts'
import { startDelivering } from '../../../src/engine/notify/deliveries.ts'
import { relayToWebhooks } from '../../../src/engine/notify/relay_webhooks.ts'
import { startNotifying } from '../../../src/engine/notify/run.ts'
import type { WebhookWorld } from '../../../src/engine/notify/webhook_world.ts'
import { writeOrderEvent } from '../../../src/http/account/order_event.ts'
import { createLogger } from '../../../src/log.ts'
import { type ProcessSettings, serviceTimeMs } from './settings.ts'

/**
 * The role notifier as main.ts and wiring put it together, but for three things: the service's clock runs fast, so that waits of
 * hours pass in seconds; an attempt and a claim take less; and a flaw, if the test asks for one.
 */
// Nobody is left who would end it.
process.on('disconnect', () => process.exit())
const settings = JSON.parse(process.argv[2] ?? '') as ProcessSettings
const system = systemClock()
const db = openDatabase({
  url: settings.databaseUrl,
  connectionsMax: 10,
  applicationName: 'notifier of a proof',
  onConnectionLost: () => {},
})
const clock = { ...system, nowMs: () => serviceTimeMs(settings, system.wallMs()) }
const box = createSecretBox([createSecretKey(Buffer.from(settings.accountKeyHex, 'hex'))])
const place = {
  db,
  box,
  wallMs: clock.wallMs,
  onUnopened: (_: string, error: unknown): never => {
    throw error
  },
}
const { attemptMs, marginMs } = settings
const world = {
  db,
  clock,
  policy: defaultPolicy,
  log: createLogger('warn'),
  alarms: openAlarms(),
  webhooks: {
    channel: webhookChannel({
      loopbackAllowed: true,
      limits: { connectMs: attemptMs / 2, allMs: attemptMs },
    }),
    times: { attemptMs, marginMs },
    secretsOf: (accountId: string) => openWebhookSecrets(place, accountId),
    writeEvent: writeOrderEvent,
    chance: Math.random,
    tellExhausted: async () => {},
    tellDisabled: async () => {},
  },
} as unknown as WebhookWorld

/** There is no mail server here. */
const noMails = {
  channel: null,
  render: (): never => {
    throw new Error('no mail is sent here')
  },
}

/** Known bad: events are noted as handed on before their rows are written. Where it stands in between, whoever kills it is never late. */
async function noteFirst(): Promise<boolean> {
  const events = await findEventsToRelay(db, 200, [])
  if (events.length === 0) return false
  await noteRelayed(db, events)
  if (settings.flaw === 'notes first and stands') await new Promise(() => {})
  await db.transaction((tx) => relayToWebhooks(clock)(tx, events))
  return false
}

if (settings.flaw === 'none') startNotifying({ ...world, mails: noMails })
else {
  startLoop(world, 'relay', defaultPolicy.restMs, noteFirst)
  startDelivering(world)
}
process.send?.('up')
