import Type from 'typebox'

/** The three headers belong together; what they carry is said once, in the security schemes. */
export const signedSecurity = [{ apiKey: [], apiSign: [], apiTimestamp: [] }]

/** What an Idempotency-Key looks like. */
export const IDEMPOTENCY_KEY = '^[A-Za-z0-9_-]{1,64}$'

export const idempotencyHeaders = Type.Object({
  'Idempotency-Key': Type.Optional(
    Type.String({
      pattern: IDEMPOTENCY_KEY,
      description: 'Makes a retry safe for 24 hours: the same key and body give the first answer again.',
    }),
  ),
})

const signature = [
  'Lowercase hex HMAC-SHA256 with the API secret over',
  '`timestamp + "\\n" + METHOD + "\\n" + request target + "\\n" + raw body`.',
  'The request target is path and query exactly as sent; the body of a GET is empty.',
].join(' ')

export const securitySchemes = {
  apiKey: { type: 'apiKey', in: 'header', name: 'X-API-KEY', description: 'The id of your API key.' },
  apiSign: { type: 'apiKey', in: 'header', name: 'X-API-SIGN', description: signature },
  apiTimestamp: {
    type: 'apiKey',
    in: 'header',
    name: 'X-API-TIMESTAMP',
    description: 'Epoch seconds, within 300 s of our clock.',
  },
  session: {
    type: 'apiKey',
    in: 'cookie',
    name: '__Host-cambist_session',
    description: 'Set by signing in. `cambist_session` where the service is reached over plain http.',
  },
  orderToken: {
    type: 'apiKey',
    in: 'header',
    name: 'X-ORDER-TOKEN',
    description: 'The token of one order, as told when it was created. Reads that order and nothing else.',
  },
  orderTokenQuery: { type: 'apiKey', in: 'query', name: 'token', description: 'The same, for links.' },
} as const
