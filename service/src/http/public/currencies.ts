import { createHash } from 'node:crypto'
import type { RouteOptions } from 'fastify'
import Type from 'typebox'
import { assert } from '../../domain/assert.ts'
import type { CurrencyView } from '../../engine/desks/desk.ts'
import { anyOrigin } from '../answers/answers.ts'
import { errorAnswers } from '../answers/problem_schema.ts'
import { invalidParameters } from '../errors.ts'
import { decimal, success, text } from '../json/schema.ts'
import { compileWriter } from '../json/writer.ts'
import { readQuery } from '../parameters/read_query.ts'
import { admitAnonymous, queryOf, type RouteContext } from '../route_context.ts'
import { isUnchanged } from './conditional.ts'

export const currencySchema = Type.Object(
  {
    networks: Type.Array(Type.String(), {
      description: 'Networks it is exchanged on.',
      examples: [['ERC20', 'BEP20']],
    }),
    name: text('Full name.', 'Tether USD'),
    logo: Type.String({ format: 'uri', description: 'Logo image (SVG).' }),
    color: Type.String({ pattern: '^#[0-9A-F]{6}$', description: 'Brand colour.', examples: ['#26A17B'] }),
    precision: Type.Integer({ description: 'Decimals an amount may have.', examples: [6] }),
    min_amount: decimal('Least amount.', 10),
    max_amount: decimal('Greatest amount.', 500000),
    enabled: Type.Boolean({
      description:
        'Only enabled currencies are quoted, and exchanged at anything but a rate that was locked before.',
    }),
    priority: Type.Integer({ description: '1 is shown first.', examples: [3] }),
  },
  { $id: 'Currency' },
)

const mapSchema = Type.Unsafe({
  type: 'object',
  description: 'Keyed by currency code.',
  additionalProperties: { $ref: 'Currency' },
})
const write = compileWriter(mapSchema, { Currency: currencySchema })
const CACHE_SECONDS = 300

export function currenciesRoute(context: RouteContext): RouteOptions {
  const { answers, parts } = context
  return {
    method: 'GET',
    url: '/v1/currencies',
    schema: {
      tags: ['exchange'],
      operationId: 'getCurrencies',
      summary: 'What can be exchanged',
      description: 'May be cached for 5 minutes; has an ETag.',
      security: [],
      response: {
        200: { description: 'The currencies.', ...success(mapSchema) },
        304: { description: 'Unchanged since the ETag in If-None-Match.', type: 'null' },
        ...errorAnswers('RATE_LIMITED'),
      },
    },
    async handler(request, reply) {
      if (!admitAnonymous(context, request, reply)) return
      const read = readQuery({}, queryOf(request))
      if (!read.ok) return answers.problem(request, reply, invalidParameters(read.details))
      const data = write(withAbsoluteLogos(await parts.desk.currencies(), parts.baseUrl()))
      const etag = `"${createHash('sha256').update(data).digest('base64url').slice(0, 27)}"`
      const caching = ['Cache-Control', `public, max-age=${CACHE_SECONDS}`, 'ETag', etag, ...anyOrigin]
      if (isUnchanged(request.headers['if-none-match'], etag)) {
        return answers.raw(request, reply, 304, '', caching)
      }
      answers.data(request, reply, data, ['Content-Type', 'application/json; charset=utf-8', ...caching])
    },
  }
}

function withAbsoluteLogos(
  currencies: Readonly<Record<string, CurrencyView>>,
  baseUrl: string,
): Record<string, CurrencyView> {
  const entries = Object.entries(currencies).map(([code, currency]): [string, CurrencyView] => {
    assert(currency.logo.startsWith('/'), `the logo of ${code} is a path`)
    return [code, { ...currency, logo: baseUrl + currency.logo }]
  })
  return Object.fromEntries(entries)
}
