import type { RouteOptions } from 'fastify'
import Type from 'typebox'
import { inMinutes } from '../../domain/time.ts'
import { defaultPolicy } from '../../engine/default_policy.ts'
import type { Desk, DeskOutcome, MarketView, RateView } from '../../engine/desks/desk.ts'
import { anyOrigin, jsonNoStore } from '../answers/answers.ts'
import { errorAnswers } from '../answers/problem_schema.ts'
import { invalidParameters } from '../errors.ts'
import { decimal, instant, oneOf, success, text } from '../json/schema.ts'
import { compileSteadyWriter, joined } from '../json/writer.ts'
import { amount, choice, symbol } from '../parameters/kinds.ts'
import { optional, withDefault } from '../parameters/parameter.ts'
import { parametersSchema } from '../parameters/read_body.ts'
import { readQuery } from '../parameters/read_query.ts'
import { admitAnonymous, queryOf, type RouteContext } from '../route_context.ts'

const rateTypes = ['fixed', 'float'] as const
const LOCKED_FOR = inMinutes(defaultPolicy.lockMs)

const rateParameters = {
  from: symbol('Source currency code.', 'BTC'),
  to: symbol('Destination currency code.', 'USDT'),
  from_network: optional(
    symbol('Source network. Required for tokens; a native currency may leave it out.', 'BTC'),
  ),
  to_network: optional(symbol('Destination network; same rule.', 'ERC20')),
  amount: amount('Amount to exchange: at most 15 significant digits, no exponent.', 0.05),
  rate_type: withDefault(
    choice(rateTypes, `Fixed is locked for ${LOCKED_FOR}; float follows the market.`),
    'float',
  ),
  direction: withDefault(
    choice(['from', 'to'], 'Whether `amount` is what is sent (`from`) or what is to be received (`to`).'),
    'from',
  ),
}

export const rateSchema = Type.Object(
  {
    rate: decimal('1 unit of source is `rate` units of destination, everything included.', 64500.25),
    from: text('Source currency code.', 'BTC'),
    from_network: text('Source network.', 'BTC'),
    to: text('Destination currency code.', 'USDT'),
    to_network: text('Destination network.', 'ERC20'),
    from_amount: decimal('Amount to send, in source currency.', 0.05),
    to_amount: decimal('Amount to receive, in destination currency.', 3225.012),
    rate_type: oneOf(rateTypes, 'As asked.'),
    fee: decimal('Exchange fee in destination currency, already inside the rate.', 16.29),
    fee_percent: decimal('Exchange fee in percent.', 0.5),
    network_fee: decimal('Cost of the payout in destination currency, already inside the rate.', 1.2),
    expires_at: Type.Optional(instant('When a fixed rate lapses; fixed only.')),
    rate_id: Type.Optional(text('The lock, to be given when the order is created; fixed only.', 'rl_5f0c')),
    min_amount: decimal('Least amount, in source currency.', 0.0002),
    max_amount: decimal('Greatest amount, in source currency.', 10),
  },
  { $id: 'Rate' },
)

const write = compileSteadyWriter(rateSchema, [
  'rate',
  'from_amount',
  'to_amount',
  'fee',
  'expires_at',
  'rate_id',
])
const headers = [...jsonNoStore, ...anyOrigin]

/** Together with a query they are a few hundred kilobytes at most. */
const ANSWERS_MAX = 1_000
const QUERY_LENGTH_MAX = 200
/** Keeping costs a third of working out: what is asked once should not pay for it, and what is popular soon comes in. */
const KEPT_OF = 16

/** Answers of float rates by query as it was sent, each as long as the market it was made of stands. */
function rememberAnswers(desk: Pick<Desk, 'isCurrent'>) {
  const byQuery = new Map<string, { readonly market: MarketView; readonly json: string }>()
  let offered = 0
  return {
    find: (query: string): string | null => {
      const known = byQuery.get(query)
      return known !== undefined && desk.isCurrent(known.market) ? known.json : null
    },
    keep: (query: string, market: MarketView, json: string): void => {
      offered += 1
      if (offered % KEPT_OF !== 0 || query.length > QUERY_LENGTH_MAX) return
      // The popular ones are soon back.
      if (byQuery.size >= ANSWERS_MAX) byQuery.clear()
      byQuery.set(query, { market, json: joined(json) })
    },
  }
}

export function rateRoute(context: RouteContext): RouteOptions {
  const { answers, parts } = context
  const remembered = rememberAnswers(parts.desk)
  return {
    method: 'GET',
    url: '/v1/rate',
    schema: {
      tags: ['exchange'],
      operationId: 'getRate',
      summary: 'What an exchange would bring',
      description: `A fixed rate is kept for ${LOCKED_FOR} under its \`rate_id\`; a float rate is only a view.`,
      security: [],
      querystring: parametersSchema(rateParameters, 'query'),
      response: {
        200: { description: 'A quote.', ...success(Type.Ref('Rate')) },
        ...errorAnswers(
          'INVALID_PAIR',
          'NETWORK_MISMATCH',
          'AMOUNT_OUT_OF_RANGE',
          'RATE_LIMITED',
          'RATE_UNAVAILABLE',
          'MAINTENANCE',
        ),
      },
    },
    // The hottest path of all: a float rate is answered without any promise.
    handler(request, reply) {
      if (!admitAnonymous(context, request, reply)) return
      const query = queryOf(request)
      const known = remembered.find(query)
      if (known !== null) return answers.data(request, reply, known, headers)
      const read = readQuery(rateParameters, query)
      if (!read.ok) return answers.problem(request, reply, invalidParameters(read.details))
      const { from, to, from_network, to_network, amount, rate_type, direction } = read.values
      const wanted = {
        from,
        to,
        fromNetwork: from_network,
        toNetwork: to_network,
        amount,
        rateType: rate_type,
        direction,
      }
      const answer = (outcome: DeskOutcome<RateView>) => {
        if (!outcome.ok) return answers.problem(request, reply, outcome.rejection)
        const { market } = outcome.value
        const json = write(market, outcome.value)
        if (market.rate_type === 'float') remembered.keep(query, market, json)
        answers.data(request, reply, json, headers)
      }
      const outcome = parts.desk.rate(wanted)
      return outcome instanceof Promise ? outcome.then(answer) : answer(outcome)
    },
  }
}
