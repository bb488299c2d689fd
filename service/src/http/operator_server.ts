import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { Readable } from 'node:stream'
import fastify, {
  type FastifyError,
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest,
  type RouteOptions,
} from 'fastify'
import { type Answers, createAnswers, openExchange, requestIds } from './answers/answers.ts'
import { requestLog } from './answers/request_log.ts'
import { requestMeter } from './answers/request_meter.ts'
import { invalidParameters } from './errors.ts'
import { malformedHttpProblem, problemOf } from './framework_errors.ts'
import { clientAddress } from './limits/client_address.ts'
import { healthRoute, readinessRoute } from './operator/health.ts'
import { metricsRoute } from './operator/metrics.ts'
import type { OperatorParts } from './parts.ts'
import { answerInTurn } from './raw_answer.ts'
import type { OperatorContext } from './route_context.ts'

const operatorRoutes: readonly ((context: OperatorContext) => RouteOptions)[] = [
  healthRoute,
  readinessRoute,
  metricsRoute,
]

/** Health, readiness and metrics alone: what a process without the interface answers. */
export function buildOperatorServer(parts: OperatorParts): FastifyInstance {
  const { app, operator } = openOperatorServer(parts)
  serveRoutes(app, operator, [], [])
  return app
}

/** What every process answers with: our envelope, our words for whatever is malformed. No route is there yet. */
export function openOperatorServer(parts: OperatorParts): {
  app: FastifyInstance
  operator: OperatorContext
} {
  const log = requestLog(parts.logger, parts.clock)
  const answers = createAnswers(parts.logger, log, requestMeter(parts.metrics), parts.limits.unreadMsMax)
  const app = fastify(serverOptions(parts, answers))
  app.decorateRequest('exchange')
  readBodiesRaw(app)
  refuseFragments(app, answers)
  refuseInOurWords(app, answers)
  app.addHook('onClose', async () => log.flush())
  return { app, operator: { parts, answers, addressOf: clientAddress(parts.limits.trustedProxies) } }
}

/** Health, readiness and metrics, and `more` before them; `schemas` are those that the routes name. */
export function serveRoutes(
  app: FastifyInstance,
  operator: OperatorContext,
  more: readonly RouteOptions[],
  schemas: readonly unknown[],
): void {
  app.register(async (scope) => {
    leaveShapesToUs(scope)
    for (const schema of schemas) scope.addSchema(schema)
    const methodsByUrl = collectMethods(scope)
    for (const route of more) scope.route(route)
    for (const route of operatorRoutes) scope.route(route(operator))
    refuseOtherMethods(scope, methodsByUrl, operator.answers)
  })
}

/** How late a request is found to be late; unless told, half a minute. */
const LATE_LOOK_MS = 1_000
/** Longer than the idle timeout of the usual load balancers (60 s), which must be the first to hang up. */
const KEEP_ALIVE_MS = 72_000

function serverOptions(parts: OperatorParts, answers: Answers) {
  return {
    logger: false,
    bodyLimit: parts.limits.bodyBytesMax,
    requestTimeout: parts.limits.requestMsMax,
    keepAliveTimeout: KEEP_ALIVE_MS,
    forceCloseConnections: 'idle' as const,
    // Requests that arrive while we close are answered as ever, and their connections closed.
    return503OnClosing: false,
    genReqId: requestIds(),
    // We read queries ourselves (read_query.ts); what the router would make of them is not used.
    routerOptions: { querystringParser: () => ({}), maxParamLength: 200 },
    http: {
      // Nothing here depends on Host, and Node's own refusal is not in our envelope.
      requireHostHeader: false,
      // Most requests have no body. A stream for it, read to its end, is a tenth of what they cost.
      optimizeEmptyRequests: true,
      // Of the two limits Node takes the longer one for the whole request: unless told, the head has a minute.
      headersTimeout: parts.limits.requestMsMax,
      connectionsCheckingInterval: LATE_LOOK_MS,
    },
    frameworkErrors: (error: FastifyError, request: FastifyRequest, reply: FastifyReply) =>
      answerError(answers, error, request, reply),
    clientErrorHandler: (error: NodeJS.ErrnoException, socket: Socket) =>
      answerInTurn(socket, malformedHttpProblem(error)),
  }
}

function answerError(answers: Answers, error: unknown, request: FastifyRequest, reply: FastifyReply): void {
  request.exchange ??= openExchange('none')
  // It broke after it had answered: there is nobody left to tell but the log.
  if (reply.raw.headersSent) {
    answers.recordFailure(request, error)
    return
  }
  const problem = error instanceof Error ? problemOf(error, request.raw.readableAborted) : null
  if (problem === null) answers.failure(request, reply, error)
  else answers.problem(request, reply, problem)
}

function refuseInOurWords(app: FastifyInstance, answers: Answers): void {
  app.setErrorHandler((error, request, reply) => answerError(answers, error, request, reply))
  app.setNotFoundHandler((request, reply) => {
    request.exchange ??= openExchange('none')
    answers.problem(request, reply, { code: 'NOT_FOUND', message: 'there is nothing at this path' })
  })
  app.server.on('connect', (_request, socket) => {
    // Node listens no more: an error that nobody listens for ends the process, and who hangs up would not be noticed.
    socket.on('error', () => socket.destroy())
    socket.on('end', () => socket.end()).resume()
    socket.on('timeout', () => socket.destroy())
    answerInTurn(socket as Socket, { code: 'METHOD_NOT_ALLOWED', message: 'this is not a proxy' })
  })
  // `Expect: 100-continue` is answered by Node; any other expectation is ignored, as RFC 9110 allows.
  app.server.on('checkExpectation', (request: IncomingMessage, response: ServerResponse) =>
    app.routing(request, response),
  )
}

/**
 * A fragment never leaves the client (RFC 9112 §3.2). The router would take what is before it for the path, which is
 * another one than the target that was signed.
 */
function refuseFragments(app: FastifyInstance, answers: Answers): void {
  app.addHook('onRequest', (request, reply, done) => {
    if (request.raw.url?.includes('#') !== true) return done()
    request.exchange ??= openExchange('none')
    answers.problem(request, reply, invalidParameters([{ field: 'path', message: 'must not have a #' }]))
  })
}

/** Bodies stay bytes until their signature is checked; where there is no route nobody looks into them at all. */
function readBodiesRaw(app: FastifyInstance): void {
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, body, done) => done(null, body))
  // Of a request that tells of a type and of no body Node has ended the body already, while Fastify would wait for that end for ever.
  app.addHook('preParsing', (request, _reply, body, done) => {
    const isAwaited = request.headers['content-type'] !== undefined && request.raw.readableEnded
    done(null, isAwaited ? Readable.from([]) : body)
  })
}

/** Validation and serialisation are ours. */
function leaveShapesToUs(app: FastifyInstance): void {
  app.setValidatorCompiler(() => () => true)
  app.setSerializerCompiler(() => () => '')
}

/** Also opens the exchange of every route, which knows its pattern. */
function collectMethods(app: FastifyInstance): ReadonlyMap<string, Set<string>> {
  const methodsByUrl = new Map<string, Set<string>>()
  app.addHook('onRoute', (route) => {
    const methods = methodsByUrl.get(route.url) ?? new Set()
    for (const method of [route.method].flat()) methods.add(method)
    methodsByUrl.set(route.url, methods)
    route.onRequest = [opensExchange(route.url), ...[route.onRequest ?? []].flat()]
  })
  return methodsByUrl
}

function opensExchange(url: string) {
  return (request: FastifyRequest, _reply: FastifyReply, done: () => void) => {
    request.exchange = openExchange(url)
    done()
  }
}

function refuseOtherMethods(
  app: FastifyInstance,
  methodsByUrl: ReadonlyMap<string, Set<string>>,
  answers: Answers,
): void {
  for (const [url, methods] of [...methodsByUrl]) {
    const allow = [...methods].join(', ')
    const others = app.supportedMethods.filter((method) => !methods.has(method))
    app.route({
      url,
      method: others,
      schema: { hide: true },
      // Before the body: it would be read for nothing.
      onRequest: (request, reply) =>
        answers.problem(request, reply, {
          code: 'METHOD_NOT_ALLOWED',
          message: `this path takes ${allow}`,
          allow,
        }),
      handler: () => undefined,
    })
  }
}
