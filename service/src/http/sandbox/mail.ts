import type { RouteOptions } from 'fastify'
import Type from 'typebox'
import { instant, nullable, text } from '../json/schema.ts'
import type { RouteContext } from '../route_context.ts'
import type { SandboxRoutes } from './sandbox_port.ts'
import { sandboxRoute } from './sandbox_route.ts'

const mailSchema = Type.Object({
  id: Type.Integer({ description: 'Counts up with every mail that came.', examples: [1] }),
  message_id: text('The same when a mail is sent again.', '<kVPcN3x0wYq@sandbox.test>'),
  to: text('Recipient.', 'demo@example.com'),
  from: text('Sender.', 'cambist@example.com'),
  subject: text('Subject.', 'Order created'),
  text: Type.String({ description: 'The plain part.' }),
  html: nullable(Type.String({ description: 'The HTML part.' })),
  sent_at: instant('When it was sent.'),
})

export function mailRoute(context: RouteContext, sandbox: SandboxRoutes): RouteOptions {
  return sandboxRoute(context, {
    method: 'GET',
    url: '/sandbox/mail',
    operationId: 'sandboxMail',
    summary: 'The mails sent so far, newest first',
    parameters: {},
    data: Type.Object({ mails: Type.Array(mailSchema) }),
    act: () => sandbox.mail(),
  })
}
