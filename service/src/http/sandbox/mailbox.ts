import type { FastifyReply, FastifyRequest, RouteOptions } from 'fastify'
import { secondText } from '../../domain/instant_text.ts'
import type { HeaderList } from '../answers/answers.ts'
import { answerPage, html } from '../pages/html.ts'
import { parameterOf, type RouteContext } from '../route_context.ts'
import type { SandboxMail, SandboxRoutes } from './sandbox_port.ts'
import { isFromThisMachine, notFromHere } from './sandbox_route.ts'

/** The mailbox as a page. */
export function mailboxRoute(context: RouteContext, sandbox: SandboxRoutes): RouteOptions {
  return pageRoute(context, '/sandbox/mailbox', async (request, reply) => {
    const mails = await readMails(sandbox)
    const rows = mails.map(
      ({ id, to, subject, sent_at }) => html`<tr>
<td>${secondText(sent_at)}</td>
<td>${to}</td>
<td><a href="/sandbox/mailbox/${String(id)}">${subject}</a> (<a href="/sandbox/mailbox/${String(id)}/text">text</a>)</td>
</tr>`,
    )
    answerPage(context.answers, request, reply, 200, {
      title: 'Mailbox',
      body: html`<h1>Mailbox of the sandbox</h1>
<table>
<tr><th>Sent (UTC)</th><th>To</th><th>Subject</th></tr>
${rows}
</table>
${rows.length === 0 ? html`<p>No mail has come yet.</p>` : ''}`,
    })
  })
}

/** As strict as a mail program: what a mail brings can load nothing, run nothing and send nothing. */
const MAIL_POLICY =
  "default-src 'none'; style-src 'unsafe-inline'; sandbox allow-popups; frame-ancestors 'none'"

function headersFor(type: string): HeaderList {
  return [
    'Content-Type',
    `${type}; charset=utf-8`,
    'Cache-Control',
    'no-store',
    'Content-Security-Policy',
    MAIL_POLICY,
    'Referrer-Policy',
    'no-referrer',
  ]
}

/** A mail's HTML; of a mail without any, its text. */
export function mailHtmlRoute(context: RouteContext, sandbox: SandboxRoutes): RouteOptions {
  return mailPartRoute(context, sandbox, '/sandbox/mailbox/:id', ({ html: markup, text }) =>
    markup === null ? { type: 'text/plain', body: text } : { type: 'text/html', body: markup },
  )
}

export function mailTextRoute(context: RouteContext, sandbox: SandboxRoutes): RouteOptions {
  return mailPartRoute(context, sandbox, '/sandbox/mailbox/:id/text', ({ text }) => ({
    type: 'text/plain',
    body: text,
  }))
}

function mailPartRoute(
  context: RouteContext,
  sandbox: SandboxRoutes,
  url: string,
  partOf: (mail: SandboxMail) => { readonly type: string; readonly body: string },
): RouteOptions {
  const { answers } = context
  return pageRoute(context, url, async (request, reply) => {
    const wanted = parameterOf(request, 'id')
    const mail = (await readMails(sandbox)).find(({ id }) => String(id) === wanted)
    if (mail === undefined) {
      return answers.problem(request, reply, { code: 'NOT_FOUND', message: 'there is no such mail' })
    }
    const { type, body } = partOf(mail)
    answers.raw(request, reply, 200, body, headersFor(type))
  })
}

function pageRoute(
  { answers }: RouteContext,
  url: string,
  show: (request: FastifyRequest, reply: FastifyReply) => Promise<void>,
): RouteOptions {
  return {
    method: 'GET',
    url,
    schema: { hide: true },
    async handler(request, reply) {
      if (!isFromThisMachine(request)) return answers.problem(request, reply, notFromHere)
      await show(request, reply)
    },
  }
}

async function readMails(sandbox: SandboxRoutes): Promise<readonly SandboxMail[]> {
  const outcome = await sandbox.mail()
  return outcome.ok ? outcome.value.mails : []
}
