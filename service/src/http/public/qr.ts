import type { RouteOptions } from 'fastify'
import Type from 'typebox'
import { isOrderId } from '../../domain/orders/identifiers.ts'
import type { PaymentView } from '../../engine/desks/desk.ts'
import { pngDataUri, QR_SIZE_MAX_PX, QR_SIZE_MIN_PX, renderQr } from '../../qr/index.ts'
import { orderIdSchema, orderNotFound } from '../account/order_id.ts'
import { anyOrigin } from '../answers/answers.ts'
import { errorAnswers } from '../answers/problem_schema.ts'
import { invalidParameters } from '../errors.ts'
import { oneOf, success } from '../json/schema.ts'
import { compileWriter } from '../json/writer.ts'
import { choice, wholeNumber } from '../parameters/kinds.ts'
import { withDefault } from '../parameters/parameter.ts'
import { parametersSchema } from '../parameters/read_body.ts'
import { readQuery } from '../parameters/read_query.ts'
import { admitAnonymous, parameterOf, queryOf, type RouteContext } from '../route_context.ts'

const parameters = {
  format: withDefault(choice(['png', 'svg', 'base64'], 'What to answer with.'), 'png'),
  size: withDefault(
    wholeNumber(QR_SIZE_MIN_PX, QR_SIZE_MAX_PX, 'Width and height in pixels, quiet zone included.'),
    256,
  ),
  include_amount: withDefault(
    choice(['true', 'false'], 'Whether the amount is embedded, or the address stands alone.'),
    'true',
  ),
  style: withDefault(
    choice(
      ['default', 'standard'],
      "`default` is `scheme:address?amount=`; `standard` is the network's own URI (BIP-21, EIP-681, Solana Pay).",
    ),
    'default',
  ),
}

export const qrSchema = Type.Object(
  {
    qr_code: Type.String({ description: 'A data URI.', examples: ['data:image/png;base64,iVBORw0KGgo…'] }),
    format: oneOf(['png'], 'Format of the embedded image.'),
  },
  { $id: 'QrCode' },
)

const write = compileWriter(qrSchema)
/** What an order asks for never changes; a browser may keep the image, a shared cache may not. */
const CACHING = ['Cache-Control', 'private, max-age=300', ...anyOrigin]
const JSON_HEADERS = ['Content-Type', 'application/json; charset=utf-8', ...CACHING]
const SVG_HEADERS = [
  'Content-Type',
  'image/svg+xml',
  'Content-Security-Policy',
  "default-src 'none'; sandbox",
  ...CACHING,
]

export function qrRoute(context: RouteContext): RouteOptions {
  const { answers, parts } = context
  return {
    method: 'GET',
    url: '/v1/order/:order_id/qr',
    schema,
    async handler(request, reply) {
      if (!admitAnonymous(context, request, reply)) return
      const read = readQuery(parameters, queryOf(request))
      if (!read.ok) return answers.problem(request, reply, invalidParameters(read.details))
      const orderId = parameterOf(request, 'order_id')
      const payment = isOrderId(orderId) ? await parts.desk.findPayment(orderId) : null
      if (payment === null) return answers.problem(request, reply, orderNotFound)
      const { format, size, include_amount, style } = read.values
      const text = contentOf(payment, style, include_amount === 'true')
      if (format === 'svg') {
        const svg = renderQr({ text, size, format })
        if (!svg.ok) return answers.problem(request, reply, sizeProblem(svg.rejection.message))
        return answers.raw(request, reply, 200, svg.value, SVG_HEADERS)
      }
      const png = renderQr({ text, size, format: 'png' })
      if (!png.ok) return answers.problem(request, reply, sizeProblem(png.rejection.message))
      if (format === 'png') {
        return answers.raw(request, reply, 200, png.value, ['Content-Type', 'image/png', ...CACHING])
      }
      answers.data(request, reply, write({ qr_code: pngDataUri(png.value), format: 'png' }), JSON_HEADERS)
    },
  }
}

function contentOf(payment: PaymentView, style: 'default' | 'standard', withAmount: boolean): string {
  if (!withAmount) return payment.address
  if (style === 'standard') return payment.standardUri
  return payment.uri
}

function sizeProblem(message: string) {
  return invalidParameters([{ field: 'size', message }])
}

/** In OpenAPI 3.1 the media type is enough; generators of clients make bytes of it only by the format of 3.0, and else text. */
const pngSchema = Type.Unsafe({ type: 'string', format: 'binary', contentMediaType: 'image/png' })

const schema = {
  tags: ['orders'],
  operationId: 'getOrderQr',
  summary: 'A QR image that pays the order',
  security: [],
  params: Type.Object({ order_id: orderIdSchema }),
  querystring: parametersSchema(parameters, 'query'),
  response: {
    200: {
      description: 'The image, or with `format=base64` the image inside JSON.',
      content: {
        'image/png': { schema: pngSchema },
        'image/svg+xml': { schema: Type.Unsafe({ type: 'string', contentMediaType: 'image/svg+xml' }) },
        'application/json': { schema: success(Type.Ref('QrCode')) },
      },
    },
    ...errorAnswers('ORDER_NOT_FOUND', 'RATE_LIMITED'),
  },
}
