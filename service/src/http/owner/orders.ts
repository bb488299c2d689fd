import type { RouteOptions } from 'fastify'
import Type from 'typebox'
import type { OrderFilter, OrderPosition } from '../../engine/desks/desk.ts'
import { filterOf, filterParameters, pageParameters, writeOrderPage } from '../account/order_filters.ts'
import { errorAnswers } from '../answers/problem_schema.ts'
import { whenTaken } from '../answers/when_taken.ts'
import { invalidParameters } from '../errors.ts'
import { success } from '../json/schema.ts'
import { parametersSchema } from '../parameters/read_body.ts'
import { readGiven } from '../read_given.ts'
import { inTurn, type RouteContext } from '../route_context.ts'
import { cookiesOf } from './cookies.ts'
import { csvHead, csvLines } from './order_csv.ts'
import { ownersVisit, requesterOf } from './owner_route.ts'

const listParameters = { ...filterParameters, ...pageParameters }

export function ownersOrdersRoute(context: RouteContext): RouteOptions {
  const { answers, parts } = context
  const cookies = cookiesOf(parts.baseUrl)
  return {
    method: 'GET',
    url: '/account/orders',
    schema: {
      ...schemaOf('listAccountOrders', 'List the orders of the account'),
      querystring: parametersSchema(listParameters, 'query'),
      response: {
        200: { description: 'A page of orders.', ...success(Type.Ref('OrderPage')) },
        ...errorAnswers('NOT_SIGNED_IN', 'RATE_LIMITED'),
      },
    },
    async handler(request, reply) {
      const visit = { request, requester: requesterOf(context, request), cookies }
      const caller = await ownersVisit(context, request, reply, visit)
      if (caller === null) return
      const read = readGiven('GET', listParameters, request)
      if (!read.ok) return answers.problem(request, reply, read.rejection)
      const { limit, cursor, ...filter } = read.values
      const page = { after: cursor, limit }
      const found = await parts.desk.listOrders(caller.owner.accountId, filterOf(filter), page)
      answers.data(request, reply, writeOrderPage(found))
    },
  }
}

/** What is put together in memory; more is asked for in parts, rather than left out without a word. */
const EXPORTED_MAX = 10_000
const ORDERS_A_READ = 500

export function exportOrdersRoute(context: RouteContext): RouteOptions {
  const { answers, parts } = context
  const cookies = cookiesOf(parts.baseUrl)
  return {
    method: 'GET',
    url: '/account/orders.csv',
    schema: {
      ...schemaOf('exportOrders', 'The orders of the account as CSV'),
      description: `The newest first, at most ${EXPORTED_MAX}: more is refused, and asked for in parts by time. Costs as much as creating an order. What a spreadsheet would take for a formula has an apostrophe in front.`,
      querystring: parametersSchema(filterParameters, 'query'),
      response: {
        200: {
          description: 'RFC 4180 in UTF-8, the first line names the columns.',
          content: { 'text/csv': { schema: Type.String() } },
        },
        ...errorAnswers('NOT_SIGNED_IN', 'RATE_LIMITED'),
      },
    },
    async handler(request, reply) {
      const visit = { request, requester: requesterOf(context, request), cookies }
      const caller = await ownersVisit(context, request, reply, visit, parts.limits.createUnits)
      if (caller === null) return
      const read = readGiven('GET', filterParameters, request)
      if (!read.ok) return answers.problem(request, reply, read.rejection)
      const { accountId } = caller.owner
      // Held until nothing of it is in memory: whoever takes his exports slowly has two of them and no more.
      await inTurn(context, request, reply, `export:${accountId}`, async () => {
        const csv = await writeAll(context, accountId, filterOf(read.values))
        if (csv === null) return answers.problem(request, reply, tooMany)
        answers.raw(request, reply, 200, csv, csvHeaders)
        await whenTaken(request, reply)
      })
    },
  }
}

const tooMany = invalidParameters([
  {
    field: 'created_after',
    message: `has to be given, later or with created_before: there are more than ${EXPORTED_MAX} orders`,
  },
])

const csvHeaders = [
  'Content-Type',
  'text/csv; charset=utf-8',
  'Content-Disposition',
  'attachment; filename="orders.csv"',
  'Cache-Control',
  'no-store',
]

/** Null: there are too many. Whoever else is asking has a turn after every page: writing them all takes long. */
async function writeAll(
  { parts }: RouteContext,
  accountId: string,
  filter: OrderFilter,
): Promise<Buffer | null> {
  const pages = [Buffer.from(csvHead)]
  let count = 0
  for (let after: OrderPosition | null = null; ; ) {
    const page = { after, limit: ORDERS_A_READ }
    const found: Awaited<ReturnType<typeof parts.desk.listOrders>> = await parts.desk.listOrders(
      accountId,
      filter,
      page,
    )
    count += found.orders.length
    if (count > EXPORTED_MAX) return null
    pages.push(Buffer.from(csvLines(found.orders)))
    if (found.next === null) return Buffer.concat(pages)
    after = found.next
    await parts.clock.endOfTurn()
  }
}

function schemaOf(operationId: string, summary: string) {
  return { tags: ['account'], operationId, summary, security: [{ session: [] }] }
}
