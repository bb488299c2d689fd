import type { FastifyReply, FastifyRequest, RouteOptions } from 'fastify'
import type { MailClass, OptionalMail } from '../../domain/notifications/preferences.ts'
import type { Unsubscription } from '../../engine/notify/unsubscribe.ts'
import { admitAnonymous, queryOf, type RouteContext } from '../route_context.ts'
import { answerPage, html } from './html.ts'

const names: Readonly<Record<OptionalMail, string>> = {
  payment_received: '“Payment received”',
  order_completed: '“Order completed”',
  order_failed: '“Order failed”',
  order_expired: '“Order expired”',
}

function nameOf(mailClass: MailClass): string {
  return mailClass === 'all' ? 'all mails about orders and webhooks' : `mails ${names[mailClass]}`
}

/** Asks. Whoever looks at a link beforehand (a mail scanner, a preview) switches nothing off. */
export function unsubscribePageRoute(context: RouteContext): RouteOptions {
  return unsubscribeRoute(context, 'GET', async ({ accountId, mailClass }) => {
    const { unsubscribing } = context.parts
    const form = (each: MailClass) => html`
<form method="post" action="/unsubscribe?token=${unsubscribing.tokenOf({ accountId, mailClass: each })}">
<button type="submit">Stop ${nameOf(each)}</button>
</form>`
    return {
      title: 'Unsubscribe',
      body: html`<h1>Unsubscribe</h1>
<p>Nothing has changed yet. Which mails are to stop?</p>
${form(mailClass)}
${mailClass === 'all' ? '' : form('all')}
<p>Orders go on as before, and mails about the safety of the account still come. The settings of the account turn mails on again.</p>`,
    }
  })
}

/** Acts: the page's button, and the one click of RFC 8058, whose body says nothing that the token does not. */
export function unsubscribeActionRoute(context: RouteContext): RouteOptions {
  return unsubscribeRoute(context, 'POST', async (unsubscription, request) => {
    const by = { address: context.addressOf(request.raw), atMs: context.parts.clock.wallMs() }
    await context.parts.unsubscribing.unsubscribe(unsubscription, by)
    return {
      title: 'Unsubscribed',
      body: html`<h1>Unsubscribed</h1>
<p>You get no more ${nameOf(unsubscription.mailClass)}. The settings of the account turn them on again.</p>`,
    }
  })
}

type Page = Parameters<typeof answerPage>[4]

function unsubscribeRoute(
  context: RouteContext,
  method: 'GET' | 'POST',
  show: (unsubscription: Unsubscription, request: FastifyRequest) => Promise<Page>,
): RouteOptions {
  const { answers, parts } = context
  return {
    method,
    url: '/unsubscribe',
    schema: { hide: true },
    async handler(request: FastifyRequest, reply: FastifyReply) {
      if (!admitAnonymous(context, request, reply)) return
      const token = new URLSearchParams(queryOf(request)).get('token') ?? ''
      const unsubscription = parts.unsubscribing.read(token)
      if (unsubscription === null) return answerPage(answers, request, reply, 404, unknownLink)
      answerPage(answers, request, reply, 200, await show(unsubscription, request))
    },
  }
}

const unknownLink: Page = {
  title: 'Unknown link',
  body: html`<h1>This link is not known</h1>
<p>It may have been cut off when it was copied. Open it from the mail again, or change the settings of the account.</p>`,
}
