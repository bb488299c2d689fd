import Type, { type TSchema } from 'typebox'

/**
 * An exact decimal: goes out as a JSON number, written from decimal text. It has 15 significant digits at most, which a `double`
 * holds exactly. Of a number without a format, or with one that they do not know, some generators make a 32-bit float, which does not.
 */
export function decimal(description: string, example: number): TSchema {
  return Type.Number({ format: 'double', description, examples: [example] })
}

/** Goes out as ISO 8601 in UTC, given as epoch milliseconds. */
export function instant(description: string): TSchema {
  return Type.String({ format: 'date-time', description, examples: ['2026-01-31T12:00:00.000Z'] })
}

export function text(description: string, example: string): TSchema {
  return Type.String({ description, examples: [example] })
}

/** An enum, not a union of literals: that is what generators and readers understand best. */
export function oneOf(values: readonly string[], description: string): TSchema {
  return Type.Unsafe({ type: 'string', enum: values, description })
}

/** As `oneOf`, but v1 may grow by further ones: a client that was generated from an enum would refuse all of what brings one. */
export function oneOfSoFar(values: readonly string[], description: string): TSchema {
  const known = `${description} So far ${values.join(', ')}; others may come.`
  return Type.Unsafe({ type: 'string', 'x-extensible-enum': values, description: known })
}

export function nullable(schema: TSchema): TSchema {
  const { type, enum: values, ...rest } = schema as TSchema & { type: string; enum?: readonly string[] }
  return Type.Unsafe({ ...rest, type: [type, 'null'], ...(values && { enum: [...values, null] }) })
}

/** The envelope around every successful JSON answer. */
export function success(data: TSchema): TSchema {
  return Type.Object({ success: Type.Unsafe({ type: 'boolean', const: true }), data })
}
