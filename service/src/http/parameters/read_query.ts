import type { FieldProblem } from '../errors.ts'
import { shown } from '../json/strict_json.ts'
import {
  type Parameter,
  type Parameters,
  type ParametersRead,
  PROBLEMS_MAX,
  type Reading,
  type Values,
} from './parameter.ts'

/** Reads a raw query string (without `?`): every parameter at most once, none that is not declared. */
export function readQuery<Given extends Parameters>(parameters: Given, query: string): ParametersRead<Given> {
  const details: FieldProblem[] = []
  const given: Readings = {}
  const decode = /[%+]/.test(query) ? percentDecoded : asItIs
  for (let start = 0; start < query.length; ) {
    const ampersand = query.indexOf('&', start)
    const end = ampersand === -1 ? query.length : ampersand
    if (end > start) readPair(parameters, query.slice(start, end), decode, given, details)
    if (details.length >= PROBLEMS_MAX) return { ok: false, details }
    start = end + 1
  }
  const values: Record<string, unknown> = {}
  for (const name in parameters) {
    const reading = given[name]
    const { absent } = parameters[name] as Parameter<unknown>
    if (reading !== undefined) values[name] = reading.ok ? reading.value : undefined
    else if (absent !== null) values[name] = absent.value
    else details.push({ field: name, message: 'is required' })
  }
  return details.length === 0 ? { ok: true, values: values as Values<Given> } : { ok: false, details }
}

/** Only declared names ever become its keys. */
type Readings = Record<string, Reading<unknown>>

function readPair(
  parameters: Parameters,
  pair: string,
  decode: Decode,
  given: Readings,
  details: FieldProblem[],
): void {
  const equals = pair.indexOf('=')
  const sent = decode(equals === -1 ? pair : pair.slice(0, equals))
  const name = sent === null ? undefined : declaredName(parameters, sent)
  const parameter = name === undefined ? undefined : parameters[name]
  if (name === undefined || parameter === undefined) {
    const message = sent === null ? 'is not valid percent-encoded UTF-8' : 'is not a known parameter'
    details.push({ field: shownName(sent ?? pair), message })
    return
  }
  if (given[name] !== undefined) {
    details.push({ field: name, message: 'is given more than once' })
    return
  }
  const text = equals === -1 ? '' : decode(pair.slice(equals + 1))
  const reading = text === null ? malformed : parameter.readText(text)
  given[name] = reading
  if (!reading.ok) details.push({ field: name, message: reading.problem })
}

/** Our own string for what was sent: an object is asked by it several times faster than by one just read. */
function declaredName(parameters: Parameters, sent: string): string | undefined {
  for (const name in parameters) if (name === sent) return name
  return undefined
}

const malformed: Reading<never> = { ok: false, problem: 'is not valid percent-encoded UTF-8' }

/** Null when it is malformed. */
type Decode = (text: string) => string | null

function asItIs(text: string): string {
  return text
}

/** Percent-encoding and `+` for a space, as forms and URLSearchParams write them. */
function percentDecoded(text: string): string | null {
  try {
    return decodeURIComponent(text.replaceAll('+', ' '))
  } catch {
    return null // malformed is the only way it fails
  }
}

/** The client's own spelling, without the quotes. */
export function shownName(name: string): string {
  return shown(name).slice(1, -1)
}
