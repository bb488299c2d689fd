import swaggerUi from '@fastify/swagger-ui'
import type { FastifyInstance } from 'fastify'
import { type Answers, openExchange } from '../answers/answers.ts'

const contentPolicy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self' 'unsafe-inline'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ')

/** The reference as a page, from files of our own: it asks nobody else for anything. */
export function registerDocs(app: FastifyInstance, answers: Answers): void {
  app.register(async (scope) => {
    scope.addHook('onRequest', (request, reply, done) => {
      request.exchange = openExchange('/docs')
      answers.limitTaking(request)
      reply.headers({
        'X-Request-Id': request.id,
        'X-Content-Type-Options': 'nosniff',
        'X-Frame-Options': 'DENY',
        'Referrer-Policy': 'no-referrer',
      })
      done()
    })
    scope.addHook('onResponse', (request, reply, done) => {
      answers.record(request, reply.statusCode)
      done()
    })
    await scope.register(swaggerUi, {
      routePrefix: '/docs',
      staticCSP: true,
      transformStaticCSP: () => contentPolicy,
      theme: {
        title: 'Cambist API',
        // The bar offers to load other documents; this page is about one.
        css: [{ filename: 'cambist.css', content: '.swagger-ui .topbar { display: none }' }],
      },
      uiConfig: {
        // The default sends the document to a validator on the internet.
        validatorUrl: null,
        deepLinking: true,
        docExpansion: 'list',
        defaultModelsExpandDepth: 2,
        tryItOutEnabled: false,
      },
    })
  })
}
