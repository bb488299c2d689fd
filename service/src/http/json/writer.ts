import type { TSchema } from 'typebox'
import { assert } from '../../domain/assert.ts'
import { isPlainDecimal } from './number_text.ts'

/**
 * Writes a value as its schema says and nothing else: a field the schema does not name stays inside.
 * Numbers (of the format `double`) are given as decimal text and written as they are, because a float in between
 * would round them; strings with format `date-time` are given as epoch milliseconds.
 */
export type JsonWriter = (value: unknown) => string

type Schema = {
  readonly type?: string | readonly string[]
  readonly format?: string
  readonly properties?: Readonly<Record<string, Schema>>
  readonly required?: readonly string[]
  readonly items?: Schema
  readonly additionalProperties?: Schema | boolean
  readonly $ref?: string
  readonly anyOf?: readonly Schema[]
}

/** Compiled once a route. `named` are the schemas that a `$ref` may name. */
export function compileWriter(schema: TSchema, named: Readonly<Record<string, TSchema>> = {}): JsonWriter {
  return writerFor(schema as Schema, named as Readonly<Record<string, Schema>>)
}

function writerFor(schema: Schema, named: Readonly<Record<string, Schema>>): JsonWriter {
  if (schema.$ref !== undefined) {
    const target = named[schema.$ref]
    assert(target !== undefined, `the schema ${schema.$ref} is known`)
    return writerFor(target, named)
  }
  if (schema.anyOf !== undefined) return nullOr(schema.anyOf, named)
  if (schema.type !== undefined && typeof schema.type !== 'string') {
    const bare = schema.type.filter((type) => type !== 'null')
    assert(bare.length === 1, 'a type list is a type and null')
    return orNull(writerFor({ ...schema, type: bare[0] ?? '' }, named))
  }
  switch (schema.type) {
    case 'number':
      assert(schema.format === 'double', 'a number in an answer is exact decimal text')
      return writeDecimal
    case 'integer':
      return writeInteger
    case 'boolean':
      return (value) => (value === true ? 'true' : 'false')
    case 'string':
      return schema.format === 'date-time' ? writeInstant : writeText
    case 'array':
      return writeItems(writerFor(schema.items ?? {}, named))
    case 'object':
      return schema.properties === undefined ? mapWriter(schema, named) : objectWriter(schema, named)
    default:
      throw new Error(`no writer for a schema of type ${schema.type}`)
  }
}

/** In one piece: JSON is put together of many, and what is sent more than once would be joined every time. */
export function joined(json: string): string {
  // V8 joins the pieces of a string to count its bytes, and keeps it so.
  Buffer.byteLength(json)
  return json
}

function nullOr(choices: readonly Schema[], named: Readonly<Record<string, Schema>>): JsonWriter {
  const bare = choices.filter((choice) => choice.type !== 'null')
  const [only] = bare
  assert(only !== undefined && bare.length === 1, 'a choice is one schema and null')
  return orNull(writerFor(only, named))
}

function orNull(write: JsonWriter): JsonWriter {
  return (value) => (value === null ? 'null' : write(value))
}

type Fields = Readonly<Record<string, unknown>>

type FieldWriter = {
  readonly name: string
  readonly prefix: string
  readonly isRequired: boolean
  readonly write: JsonWriter
}

function fieldWriters(schema: Schema, named: Readonly<Record<string, Schema>>): readonly FieldWriter[] {
  const required = new Set(schema.required)
  return Object.entries(schema.properties ?? {}).map(([name, field]) => ({
    name,
    prefix: `${JSON.stringify(name)}:`,
    isRequired: required.has(name),
    write: writerFor(field, named),
  }))
}

function objectWriter(schema: Schema, named: Readonly<Record<string, Schema>>): JsonWriter {
  const fields = fieldWriters(schema, named)
  return (value) => {
    let json = ''
    for (const field of fields) json += writeField(field, value as Fields, json === '' ? '' : ',')
    return `{${json}}`
  }
}

function writeField({ name, prefix, isRequired, write }: FieldWriter, object: Fields, comma: string): string {
  const field = object[name]
  if (field !== undefined) return comma + prefix + write(field)
  assert(!isRequired, `the answer has the field ${name}`)
  return ''
}

/**
 * As `compileWriter`, for an object whose fields come from two: those that are not `varying` from a `steady` one that
 * comes again and again, and is put into words once. The first field must be varying and required.
 */
export function compileSteadyWriter(
  schema: TSchema,
  varyingNames: readonly string[],
): (steady: object, varying: object) => string {
  const fields = fieldWriters(schema as Schema, {})
  const varying = fields.filter(({ name }) => varyingNames.includes(name))
  const [first] = varying
  assert(first !== undefined && first === fields[0] && first.isRequired, 'the first field is always there')
  // The steady fields after each varying one.
  const runs = varying.map((field, index) => {
    const next = varying[index + 1]
    return fields.slice(fields.indexOf(field) + 1, next === undefined ? fields.length : fields.indexOf(next))
  })
  const known = new WeakMap<object, readonly string[]>()
  const writeSteady = (steady: object): readonly string[] => {
    const texts = runs.map((run) => run.map((field) => writeField(field, steady as Fields, ',')).join(''))
    known.set(steady, texts)
    return texts
  }
  return (steady, values) => {
    const texts = known.get(steady) ?? writeSteady(steady)
    let json = ''
    for (let index = 0; index < varying.length; index += 1) {
      const field = varying[index]
      if (field !== undefined)
        json += writeField(field, values as Fields, index === 0 ? '' : ',') + texts[index]
    }
    return `{${json}}`
  }
}

function mapWriter(schema: Schema, named: Readonly<Record<string, Schema>>): JsonWriter {
  const values = schema.additionalProperties
  if (typeof values !== 'object') return () => '{}'
  const write = writerFor(values, named)
  return (value) => {
    const entries = Object.entries(value as Readonly<Record<string, unknown>>)
    return `{${entries.map(([name, entry]) => `${writeText(name)}:${write(entry)}`).join(',')}}`
  }
}

function writeItems(write: JsonWriter): JsonWriter {
  return (value) => `[${(value as readonly unknown[]).map((item) => write(item)).join(',')}]`
}

export function writeDecimal(value: unknown): string {
  assert(typeof value === 'string' && isPlainDecimal(value), 'a number in an answer is a plain decimal')
  return value
}

function writeInteger(value: unknown): string {
  assert(Number.isSafeInteger(value), 'an integer in an answer is a safe integer')
  return String(value)
}

/** Nothing in it needs escaping: the common case, and several times faster than asking JSON.stringify. */
const plainText = /^[\x20\x21\x23-\x5b\x5d-\x7e]*$/

export function writeText(value: unknown): string {
  assert(typeof value === 'string', 'a text in an answer is a string')
  return plainText.test(value) ? `"${value}"` : JSON.stringify(value)
}

/** ISO 8601, UTC, with milliseconds. */
export function writeInstant(value: unknown): string {
  assert(Number.isSafeInteger(value), 'a time in an answer is epoch milliseconds')
  return `"${new Date(value as number).toISOString()}"`
}
