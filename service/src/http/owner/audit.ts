import type { RouteOptions } from 'fastify'
import Type from 'typebox'
import { readAudit } from '../../accounts/audit_pages.ts'
import { accept } from '../../domain/outcome.ts'
import { instant, nullable, text } from '../json/schema.ts'
import { wholeNumber } from '../parameters/kinds.ts'
import { optional, withDefault } from '../parameters/parameter.ts'
import type { RouteContext } from '../route_context.ts'
import { ownerRoute } from './owner_route.ts'

const SEQUENCE_MAX = 2 ** 31 - 1

const entrySchema = Type.Object({
  sequence: Type.Integer({ description: 'From 1 on, without gaps.', examples: [7] }),
  at: instant('When it was done.'),
  act: text('What was done.', 'key_created'),
  actor: text(
    'owner: signed in; key: signed with one; operator: at the command line; visitor: with a link.',
    'owner',
  ),
  subject: nullable(text('What it was done to.', 'ck_0123456789abcdef0123')),
  address: nullable(text('Where it was done from.', '203.0.113.7')),
  detail: Type.Unsafe({
    type: 'object',
    additionalProperties: { type: 'string' },
    description: 'What more there is to say.',
  }),
  hash: text(
    'Over this entry and the one before it.',
    'b94d27b9934d3e08a52e52d7da7dabfac484efe37a5380ee9088f7ace2efcde9',
  ),
})

export function auditRoute(context: RouteContext): RouteOptions {
  const { owners } = context.parts
  return ownerRoute(context, {
    method: 'GET',
    url: '/account/audit',
    operationId: 'listAudit',
    summary: 'What was done to the safety of the account',
    parameters: {
      limit: withDefault(wholeNumber(1, 100, 'How many entries a page has at most.'), 50),
      before: optional(
        wholeNumber(1, SEQUENCE_MAX, 'Only entries before this one: the `sequence` of the last one seen.'),
      ),
    },
    data: Type.Object({ entries: Type.Array(entrySchema, { description: 'The newest first.' }) }),
    act: async ({ limit, before }, { owner }) =>
      accept({ data: { entries: await readAudit(owners, owner.accountId, before ?? SEQUENCE_MAX, limit) } }),
  })
}
