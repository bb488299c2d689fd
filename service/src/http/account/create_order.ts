import type { RouteOptions } from 'fastify'
import Type from 'typebox'
import type { CreateRequest } from '../../engine/desks/desk.ts'
import { errorAnswers } from '../answers/problem_schema.ts'
import { success } from '../json/schema.ts'
import { compileWriter } from '../json/writer.ts'
import { address, amount, callbackUrl, choice, identifier, symbol, tag } from '../parameters/kinds.ts'
import { optional, type Values } from '../parameters/parameter.ts'
import { parametersSchema } from '../parameters/read_body.ts'
import type { RouteContext } from '../route_context.ts'
import { createdOrderSchema } from './order_schema.ts'
import { admitSignedPost, headersOf, refuseWithoutCredentials } from './signed_post.ts'
import { idempotencyHeaders, signedSecurity } from './signed_schema.ts'

function createParameters(loopbackCallbacks: boolean) {
  return {
    from: symbol('Source currency code.', 'BTC'),
    from_network: symbol('Source network; `native` for the network of the same name.', 'BTC'),
    to: symbol('Destination currency code.', 'USDT'),
    to_network: symbol('Destination network.', 'ERC20'),
    amount: amount('Amount to send: at most 15 significant digits, no exponent.', 0.05),
    rate_type: choice(['fixed', 'float'], 'Fixed keeps its rate; float takes the rate of the exchange.'),
    destination: address('Where the payout goes.'),
    destination_tag: tag(
      'Memo or tag; required for XRP, XLM and EOS, ignored elsewhere. An empty one is none.',
    ),
    refund_address: optional(address('Where the deposit goes back to if the order fails.')),
    callback_url: optional(callbackUrl('Where status updates are sent (https).', loopbackCallbacks)),
    rate_id: optional(identifier('The lock of a fixed quote; without it the newest one that fits.')),
  }
}

const write = compileWriter(createdOrderSchema)

export function createOrderRoute(context: RouteContext): RouteOptions {
  const { answers, parts } = context
  const parameters = createParameters(parts.limits.loopbackCallbacks)
  return {
    method: 'POST',
    url: '/v1/order/create',
    schema: { ...schema, body: parametersSchema(parameters, 'body') },
    onRequest: refuseWithoutCredentials(context),
    async handler(request, reply) {
      const post = await admitSignedPost(context, request, reply, {
        parameters,
        units: parts.limits.createUnits,
      })
      if (post === null) return
      const wanted = requestOf(post.values)
      const outcome = await parts.desk.createOrder(post.key.accountId, wanted, post.retry)
      if (!outcome.ok) return answers.problem(request, reply, outcome.rejection)
      const { order, token } = outcome.value
      const qr_code_url = `${parts.baseUrl()}/v1/order/${order.order_id}/qr`
      answers.data(request, reply, write({ ...order, token, qr_code_url }), headersOf(outcome.value))
    },
  }
}

function requestOf(values: Values<ReturnType<typeof createParameters>>): CreateRequest {
  return {
    from: values.from,
    fromNetwork: values.from_network,
    to: values.to,
    toNetwork: values.to_network,
    amount: values.amount,
    rateType: values.rate_type,
    destination: values.destination,
    destinationTag: values.destination_tag,
    refundAddress: values.refund_address,
    callbackUrl: values.callback_url,
    rateId: values.rate_id,
  }
}

const schema = {
  tags: ['orders'],
  operationId: 'createOrder',
  summary: 'Create an order',
  description: 'Answers with the address to pay to. Repeating the request with the same key changes nothing.',
  security: signedSecurity,
  headers: idempotencyHeaders,
  response: {
    200: { description: 'The order, in NEW.', ...success(Type.Ref('CreatedOrder')) },
    ...errorAnswers(
      'INVALID_PAIR',
      'NETWORK_MISMATCH',
      'AMOUNT_OUT_OF_RANGE',
      'INVALID_ADDRESS',
      'DESTINATION_TAG_REQUIRED',
      'UNAUTHORIZED',
      'INVALID_SIGNATURE',
      'TIMESTAMP_EXPIRED',
      'FORBIDDEN',
      'RATE_EXPIRED',
      'PAYLOAD_TOO_LARGE',
      'UNSUPPORTED_MEDIA_TYPE',
      'IDEMPOTENCY_CONFLICT',
      'RATE_LIMITED',
      'RATE_UNAVAILABLE',
      'MAINTENANCE',
    ),
  },
}
