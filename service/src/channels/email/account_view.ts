import { unreachable } from '../../domain/assert.ts'
import type { MailContent, OrderMail } from '../../domain/notifications/mail_content.ts'
import { showTime } from './order_view.ts'
import type { View } from './template.ts'

/** What the templates of all other mails may say. */
export function accountView(content: Exclude<MailContent, OrderMail>): View {
  switch (content.kind) {
    case 'webhook_exhausted': {
      const { order_id, url, endpoint, last_answer } = content.data
      return {
        order_id,
        url,
        endpoint: endpoint === null ? null : { id: endpoint },
        last_answer: last_answer === undefined ? null : { text: last_answer },
      }
    }
    case 'endpoint_disabled': {
      const { order_id, url, endpoint } = content.data
      return { order_id, url, endpoint }
    }
    case 'sign_in_link':
    case 'email_change_new': {
      const { link, expires_at_ms, ip } = content.data
      return { link, expires_at: showTime(expires_at_ms), ip: fromWhere(ip) }
    }
    case 'email_change_old': {
      const { new_email, link, expires_at_ms, ip } = content.data
      const hasLink = link !== undefined && expires_at_ms !== undefined
      return {
        new_email,
        cancel: hasLink ? { link, expires_at: showTime(expires_at_ms) } : null,
        ip: fromWhere(ip),
      }
    }
    case 'key_created': {
      const { key_id, label, scopes, ip } = content.data
      const list = scopes === undefined ? null : { list: scopes.join(', ') }
      return { key_id, label, scopes: list, ip: fromWhere(ip) }
    }
    case 'security_notice': {
      const { what, details = [], ip, is_former } = content.data
      return { what, details, ip: fromWhere(ip), is_former: is_former === true }
    }
    default:
      return unreachable(content)
  }
}

function fromWhere(ip: string | undefined): View | null {
  return ip === undefined ? null : { address: ip }
}
