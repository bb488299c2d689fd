import Type, { type TSchema } from 'typebox'
import { type ErrorCode, problems } from '../errors.ts'

const details = Type.Array(
  Type.Object({
    field: Type.String({ description: 'The parameter.' }),
    message: Type.String({ description: 'What is wrong with it.' }),
  }),
  { description: 'Every problem at once.' },
)

const amountLimit = (which: string) =>
  Type.Number({
    format: 'double',
    description: `The ${which} amount, in the currency in which the amount was given.`,
  })

const extraFields = {
  INVALID_PARAMETER: { details: Type.Optional(details) },
  AMOUNT_OUT_OF_RANGE: {
    min_amount: amountLimit('least'),
    max_amount: amountLimit('greatest'),
    currency: Type.Optional(Type.String({ description: 'The currency of both limits.', examples: ['BTC'] })),
  },
  TIMESTAMP_EXPIRED: {
    server_time: Type.Integer({ description: 'Our clock, in epoch seconds.', examples: [1_790_000_000] }),
  },
  RATE_LIMITED: {
    retry_after: Type.Integer({ description: 'Seconds to wait, as in Retry-After.', examples: [12] }),
  },
  INTERNAL_ERROR: { request_id: Type.String({ description: 'Tell it to the operator.' }) },
} satisfies Partial<Record<ErrorCode, Readonly<Record<string, TSchema>>>>

function errorSchema(code: ErrorCode): TSchema {
  const extra: Readonly<Record<string, TSchema>> = Object.hasOwn(extraFields, code)
    ? extraFields[code as keyof typeof extraFields]
    : {}
  return Type.Object(
    {
      error: Type.Unsafe({ type: 'boolean', const: true }),
      error_code: Type.Unsafe({ type: 'string', const: code }),
      message: Type.String({ description: 'For a person; may change.' }),
      ...('details' in extra ? {} : { details: Type.Optional(details) }),
      ...extra,
    },
    { $id: schemaName(code), title: code, description: problems[code].meaning },
  )
}

/** INVALID_PAIR → InvalidPairError */
function schemaName(code: ErrorCode): string {
  const words = code.split('_').map((word) => word.charAt(0) + word.slice(1).toLowerCase())
  return `${words.join('')}Error`
}

/** One named schema per code, for the reference. */
export const errorSchemas: readonly TSchema[] = (Object.keys(problems) as ErrorCode[]).map(errorSchema)

/** What may come with any request, whatever its route. */
const everywhere: readonly ErrorCode[] = ['INVALID_PARAMETER', 'INTERNAL_ERROR']

/** The error answers of a route, by status. */
export function errorAnswers(...codes: readonly ErrorCode[]): Record<number, unknown> {
  const byStatus = new Map<number, ErrorCode[]>()
  for (const code of new Set([...codes, ...everywhere])) {
    const { status } = problems[code]
    byStatus.set(status, [...(byStatus.get(status) ?? []), code])
  }
  return Object.fromEntries([...byStatus].map(([status, those]) => [status, answerFor(those)]))
}

function answerFor(codes: readonly ErrorCode[]): unknown {
  const description = codes.map((code) => `${code}: ${problems[code].meaning}`).join('\n\n')
  return { description, content: { 'application/json': { schema: oneOfErrors(codes) } } }
}

/** With the code that says which of several it is: else a generated client has to try one after the other. */
function oneOfErrors(codes: readonly ErrorCode[]): TSchema {
  const refs = codes.map((code) => Type.Ref(schemaName(code)))
  const [only] = refs
  if (only !== undefined && refs.length === 1) return only
  const mapping = Object.fromEntries(codes.map((code) => [code, `#/components/schemas/${schemaName(code)}`]))
  return Type.Unsafe({ oneOf: refs, discriminator: { propertyName: 'error_code', mapping } })
}
