import type { FastifyDynamicSwaggerOptions } from '@fastify/swagger'
import type { RouteOptions } from 'fastify'
import type { TSchema } from 'typebox'
import { actionSchema } from '../account/choose_action.ts'
import { deliverySchema, endpointSchema } from '../account/delivery_schema.ts'
import { orderEventSchema } from '../account/order_event.ts'
import { createdOrderSchema, orderPageSchema, orderSchema } from '../account/order_schema.ts'
import { securitySchemes } from '../account/signed_schema.ts'
import { anyOrigin } from '../answers/answers.ts'
import { errorSchemas } from '../answers/problem_schema.ts'
import { accountSchema } from '../owner/account_schema.ts'
import type { RouteContext } from '../route_context.ts'
import { currencySchema } from './currencies.ts'
import { qrSchema } from './qr.ts'
import { rateSchema } from './rate.ts'

/** What a `$ref` may name, and what generated clients call their types. */
export const namedSchemas: readonly TSchema[] = [
  rateSchema,
  currencySchema,
  createdOrderSchema,
  orderSchema,
  orderPageSchema,
  orderEventSchema,
  deliverySchema,
  endpointSchema,
  actionSchema,
  qrSchema,
  accountSchema,
  ...errorSchemas,
]

const description = `
Ask for a rate, create an order, pay to its deposit address, follow it until it is DONE.

**Numbers** are exact decimals written as JSON numbers: no exponent, at most 15 significant digits.
**Success** is HTTP 200 with \`{success: true, data}\`; **an error** is \`{error: true, error_code, message}\`,
with \`details\` naming every wrong parameter at once. Unknown request parameters are refused; ignore unknown
response fields, because v1 only grows.

**Authentication** takes three headers together: X-API-KEY, X-API-TIMESTAMP and X-API-SIGN.
**Limits** are told in RateLimit and RateLimit-Policy; after 429 and 503 wait as long as Retry-After says.
**Retries** of a POST are safe with an Idempotency-Key.
`.trim()

export const swaggerOptions: FastifyDynamicSwaggerOptions = {
  openapi: {
    openapi: '3.1.0',
    info: { title: 'Cambist', version: '1', description, license: { name: 'MIT', identifier: 'MIT' } },
    // Relative: the same document is right wherever the service is reached.
    servers: [{ url: '/' }],
    tags: [
      { name: 'exchange', description: 'Rates and currencies; no key needed.' },
      { name: 'orders', description: 'Create, follow and rescue an order.' },
      {
        name: 'account',
        description:
          'For the owner of an account, signed in by a link in a mail. Whatever is not a GET needs the header Origin with the origin of the service.',
      },
      { name: 'webhooks', description: 'What was sent to your receivers, and having it sent again.' },
      { name: 'sandbox', description: 'Only in the sandbox: money, blocks, prices and time at will.' },
    ],
    components: { securitySchemes },
    webhooks: {
      orderStatusChanged: {
        post: {
          tags: ['webhooks'],
          operationId: 'orderStatusChanged',
          summary: 'The status of an order has changed',
          description:
            'Sent to the `callback_url` of the order and to every endpoint of its account, signed by Standard Webhooks 1.0.',
          requestBody: {
            required: true,
            content: { 'application/json': { schema: { $ref: '#/components/schemas/OrderEvent' } } },
          },
          responses: {
            '2XX': { description: 'You have it. Anything else, and it is sent again.' },
            '410': { description: 'You want no more of them.' },
          },
        },
      },
    },
  },
  convertConstToEnum: false,
  refResolver: {
    buildLocalReference: (json, _baseUri, _fragment, index) =>
      typeof json.$id === 'string' ? json.$id : `schema-${index}`,
  },
}

export function openApiRoute({ answers }: RouteContext): RouteOptions {
  let document: string | null = null
  return {
    method: 'GET',
    url: '/openapi.json',
    schema: { hide: true },
    handler(request, reply) {
      document ??= JSON.stringify(request.server.swagger())
      const caching = ['Cache-Control', 'public, max-age=300', ...anyOrigin]
      const headers = ['Content-Type', 'application/json; charset=utf-8', ...caching]
      answers.raw(request, reply, 200, document, headers)
    },
  }
}
