import Type, { type TSchema } from 'typebox'
import type { FieldProblem } from '../errors.ts'
import { nullable } from '../json/schema.ts'
import type { JsonNumber, JsonObject, JsonValue } from '../json/strict_json.ts'
import {
  isRequired,
  type Parameter,
  type Parameters,
  type ParametersRead,
  PROBLEMS_MAX,
  type Reading,
  type Values,
} from './parameter.ts'
import { shownName } from './read_query.ts'

/** Reads a JSON object: every problem at once, no field that is not declared. Null says "not given". */
export function readBody<Given extends Parameters>(
  parameters: Given,
  body: JsonValue,
): ParametersRead<Given> {
  if (!(body instanceof Map)) {
    return { ok: false, details: [{ field: 'body', message: 'must be a JSON object' }] }
  }
  const fields = body as JsonObject
  const details: FieldProblem[] = []
  const values: Record<string, unknown> = Object.create(null)
  for (const [name, parameter] of Object.entries(parameters)) {
    const reading = readField(parameter, fields.get(name))
    if (reading.ok) values[name] = reading.value
    else details.push({ field: name, message: reading.problem })
  }
  for (const name of fields.keys()) {
    if (Object.hasOwn(parameters, name)) continue
    if (details.length >= PROBLEMS_MAX) break
    details.push({ field: shownName(name), message: 'is not a known field' })
  }
  return details.length === 0 ? { ok: true, values: values as Values<Given> } : { ok: false, details }
}

function readField(parameter: Parameter<unknown>, value: JsonValue | undefined): Reading<unknown> {
  if (value === undefined || (value === null && !isRequired(parameter))) {
    return parameter.absent === null
      ? { ok: false, problem: 'is required' }
      : { ok: true, ...parameter.absent }
  }
  const text = textOf(parameter.kind, value)
  if (text !== null) return parameter.readText(text)
  if (parameter.kind === 'list')
    return { ok: false, problem: 'must be a JSON array of strings without commas' }
  return { ok: false, problem: `must be a JSON ${parameter.kind}, not ${kindOf(value)}` }
}

function textOf(kind: Parameter<unknown>['kind'], value: JsonValue): string | null {
  switch (kind) {
    case 'string':
      return typeof value === 'string' ? value : null
    case 'number':
      return isNumber(value) ? value.numberText : null
    case 'boolean':
      return typeof value === 'boolean' ? String(value) : null
    case 'list':
      return Array.isArray(value) && value.every(isItem) ? value.join(',') : null
  }
}

/** An empty one would be no item at all between its commas. */
function isItem(value: JsonValue): value is string {
  return typeof value === 'string' && value !== '' && !value.includes(',')
}

function isNumber(value: JsonValue): value is JsonNumber {
  return typeof value === 'object' && value !== null && 'numberText' in value
}

function kindOf(value: JsonValue): string {
  if (value === null) return 'null'
  if (typeof value === 'string') return 'a string'
  if (typeof value === 'boolean') return 'a boolean'
  if (isNumber(value)) return 'a number'
  return Array.isArray(value) ? 'an array' : 'an object'
}

/** What the reference says of such a body or query. */
export function parametersSchema(parameters: Parameters, where: 'query' | 'body'): TSchema {
  const properties = Object.entries(parameters).map(([name, parameter]): [string, TSchema] => {
    if (isRequired(parameter)) return [name, parameter.schema]
    return [name, Type.Optional(where === 'body' ? nullable(parameter.schema) : parameter.schema)]
  })
  const hasList = Object.values(parameters).some(({ kind }) => kind === 'list')
  return Type.Object(Object.fromEntries(properties), {
    additionalProperties: false,
    // `a,b`, not `?status=a&status=b`: a parameter that is given twice is refused. Said of the whole query, because from
    // there it comes to each parameter of the reference; for one that is no list it changes nothing.
    ...(where === 'query' && hasList && { style: 'form', explode: false }),
  })
}
