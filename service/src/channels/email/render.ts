import { readFileSync } from 'node:fs'
import {
  isOrderMail,
  isSafetyMail,
  type MailContent,
  type MailKind,
  orderMailKinds,
} from '../../domain/notifications/mail_content.ts'
import { classOf, type MailClass } from '../../domain/notifications/preferences.ts'
import type { InstantMs } from '../../domain/time.ts'
import type { Mail } from '../channel.ts'
import { accountView } from './account_view.ts'
import { type OrderLinks, orderView } from './order_view.ts'
import { fillTemplate, parseTemplate, type Template, type View } from './template.ts'

export type MailSettings = OrderLinks & {
  /** What the service calls itself, also as the sender's name. */
  readonly sender: string
  readonly fromAddress: string
  /** Where the link leads that switches mails of this class off for this account. */
  readonly unsubscribeUrl: (accountId: string, mailClass: MailClass) => string
  /** What every mail says at its end; the sandbox says that its chains are local. */
  readonly note: string | null
}

/** A mail as it was written down. */
export type MailToRender = {
  readonly content: MailContent
  readonly to: string
  readonly accountId: string | null
  readonly messageId: string
}

type Written = { readonly subject: Template; readonly text: Template; readonly html: Template }

/**
 * Makes mails of their templates (`templates/<kind>.txt`, whose first line is the subject, and `<kind>.html`). All are
 * read here, so that one that cannot be read stops the start, and not a mail.
 */
export function mailRenderer(settings: MailSettings): (mail: MailToRender, nowMs: InstantMs) => Mail {
  const read = (file: string) => parseTemplate(readTemplate(file))
  const partials = { text: { order: read('order.txt') }, html: { order: read('order.html') } }
  const layout = { text: read('layout.txt'), html: read('layout.html') }
  const written = new Map(mailKinds.map((kind) => [kind, readWritten(kind)]))
  return (mail, nowMs) => {
    const template = written.get(mail.content.kind)
    if (template === undefined) throw new Error(`there is no template for a mail ${mail.content.kind}`)
    const subject = fillTemplate(template.subject, 'text', subjectView(mail.content), {})
    const unsubscribe = unsubscribeOf(settings, mail)
    const view = {
      ...footerView(settings, mail, unsubscribe),
      ...viewOf(mail.content, settings, nowMs),
      subject,
    }
    const whole = (kind: 'text' | 'html') =>
      fillTemplate(layout[kind], kind, view, { ...partials[kind], body: template[kind] })
    return {
      messageId: `${mail.messageId}@${settings.fromAddress.slice(settings.fromAddress.lastIndexOf('@') + 1)}`,
      to: mail.to,
      subject,
      text: whole('text'),
      html: whole('html'),
      unsubscribeUrl: unsubscribe?.url ?? null,
    }
  }
}

const mailKinds: readonly MailKind[] = [
  ...orderMailKinds,
  'webhook_exhausted',
  'endpoint_disabled',
  'sign_in_link',
  'email_change_old',
  'email_change_new',
  'key_created',
  'security_notice',
]

function readTemplate(file: string): string {
  return readFileSync(new URL(`./templates/${file}`, import.meta.url), 'utf8')
}

function readWritten(kind: MailKind): Written {
  const [, subject, text] = /^Subject: (.+)\n([\s\S]*)$/.exec(readTemplate(`${kind}.txt`)) ?? []
  if (subject === undefined || text === undefined) {
    throw new Error(`the first line of ${kind}.txt has to be its subject: Subject: …`)
  }
  return {
    subject: parseTemplate(subject),
    text: parseTemplate(text),
    html: parseTemplate(readTemplate(`${kind}.html`)),
  }
}

/** All that a subject may say: nothing that a customer wrote stands in a header. */
function subjectView(content: MailContent): View {
  if (isOrderMail(content)) return { order_id: content.data.order.order_id }
  return content.kind === 'webhook_exhausted' ? { order_id: content.data.order_id } : {}
}

function viewOf(content: MailContent, links: OrderLinks, nowMs: InstantMs): View {
  return isOrderMail(content) ? orderView(content.data.order, links, nowMs) : accountView(content)
}

function footerView(
  settings: MailSettings,
  { content }: MailToRender,
  unsubscribe: Unsubscribe | null,
): View {
  return {
    sender: settings.sender,
    note: settings.note === null ? null : { text: settings.note },
    unsubscribe,
    is_security: isSafetyMail(content),
  }
}

type Unsubscribe = { readonly url: string; readonly from_what: string }

function unsubscribeOf(settings: MailSettings, { content, accountId }: MailToRender): Unsubscribe | null {
  if (accountId === null || isSafetyMail(content)) return null
  // What is told of webhooks comes as long as the account is told of orders, and ends with that.
  const mailClass = isOrderMail(content) ? classOf(content.kind) : 'all'
  return {
    url: settings.unsubscribeUrl(accountId, mailClass),
    from_what: mailClass === 'all' ? 'all mails about orders and webhooks' : 'this kind of mail',
  }
}
