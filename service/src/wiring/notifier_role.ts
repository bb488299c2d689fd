import { createSecretBox } from '../accounts/secret_box.ts'
import { openWebhookSecrets } from '../accounts/webhook_secrets.ts'
import { mailRenderer } from '../channels/email/render.ts'
import { webhookChannel, webhookLimits } from '../channels/webhook/webhook_channel.ts'
import { mailOwner } from '../engine/notify/mail_owner.ts'
import type { MailParts } from '../engine/notify/send_mails.ts'
import { unsubscribing } from '../engine/notify/unsubscribe.ts'
import type { WebhookParts } from '../engine/notify/webhook_world.ts'
import type { World } from '../engine/world.ts'
import { orderTokens } from './order_keys.ts'
import type { MailRole, NotifierRole, ServiceOptions } from './roles.ts'

/** What mails are written and sent with, linking to where the service is `reachedAt` unless the role says otherwise. */
export async function openMails(
  { clock, logger }: ServiceOptions,
  role: MailRole | null,
  { db }: World,
  reachedAt: string,
): Promise<MailParts> {
  if (role === null) {
    logger.warn({}, 'no mail server is set (CAMBIST_SMTP_URL): no mails are sent')
    return {
      channel: null,
      render: () => {
        throw new Error('there is no mail server')
      },
    }
  }
  const { smtp, orderToken, ...settings } = role
  const { smtpChannel } = await import('../channels/email/smtp.ts')
  const channel = smtpChannel(
    { ...smtp, fromAddress: settings.fromAddress, fromName: settings.sender },
    clock,
  )
  const base = role.baseUrl ?? reachedAt
  const { tokenOf } = unsubscribing(db, orderToken)
  const tokenOfOrder = orderTokens(orderToken)
  const render = mailRenderer({
    ...settings,
    orderUrl: (orderId) => `${base}/order/${orderId}?token=${tokenOfOrder(orderId)}`,
    unsubscribeUrl: (accountId, mailClass) =>
      `${base}/unsubscribe?token=${tokenOf({ accountId, mailClass })}`,
  })
  return { channel, render }
}

/** What an attempt needs beside its own time: the database before and after it. */
const WEBHOOK_MARGIN_MS = 15_000

/** What webhooks are signed and sent with. */
export async function openWebhooks(
  { http, clock, logger }: ServiceOptions,
  { db }: World,
  { accountKeys }: NotifierRole,
): Promise<WebhookParts> {
  const { writeOrderEvent } = await import('../http/account/order_event.ts')
  const place = {
    db,
    box: createSecretBox(accountKeys),
    wallMs: clock.wallMs,
    onUnopened: (account: string, error: unknown) =>
      logger.error({ account, err: error }, 'a webhook secret does not open, and nothing is signed with it'),
  }
  return {
    channel: webhookChannel({ loopbackAllowed: http.limits.loopbackCallbacks }),
    times: { attemptMs: webhookLimits.allMs, marginMs: WEBHOOK_MARGIN_MS },
    secretsOf: (accountId) => openWebhookSecrets(place, accountId),
    writeEvent: writeOrderEvent,
    chance: Math.random,
    ...mailOwner,
  }
}
