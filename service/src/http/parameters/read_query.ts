import type { FieldProblem } from '../errors.ts'
import { shown } from '../json/strict_json.ts'
import type { Parameter, Parameters, ParametersRead, Values } from './parameter.ts'

/** Reads a raw query string (without `?`): every parameter at most once, none that is not declared. */
export function readQuery<Given extends Parameters>(parameters: Given, query: string): ParametersRead<Given> {
  const details: FieldProblem[] = []
  const values: Record<string, unknown> = Object.create(null)
  readGiven(parameters, query, values, details)
  for (const name in parameters) {
    if (name in values) continue
    const { absent } = parameters[name] as Parameter<unknown>
    if (absent === null) details.push({ field: name, message: 'is required' })
    else values[name] = absent.value
  }
  return details.length === 0 ? { ok: true, values: values as Values<Given> } : { ok: false, details }
}

function readGiven(
  parameters: Parameters,
  query: string,
  values: Record<string, unknown>,
  details: FieldProblem[],
): void {
  if (query === '') return
  for (const pair of query.split('&')) {
    if (pair === '') continue
    const equals = pair.indexOf('=')
    const name = decode(equals === -1 ? pair : pair.slice(0, equals))
    const text = equals === -1 ? '' : decode(pair.slice(equals + 1))
    if (name === null || text === null) {
      details.push({ field: shownName(name ?? pair), message: 'is not valid percent-encoded UTF-8' })
      if (name !== null) values[name] = undefined
      continue
    }
    const parameter = Object.hasOwn(parameters, name) ? parameters[name] : undefined
    if (parameter === undefined) {
      details.push({ field: shownName(name), message: 'is not a known parameter' })
    } else if (name in values) {
      details.push({ field: name, message: 'is given more than once' })
    } else {
      const reading = parameter.readText(text)
      values[name] = reading.ok ? reading.value : undefined
      if (!reading.ok) details.push({ field: name, message: reading.problem })
    }
  }
}

/** Percent-encoding and `+` for a space, as forms and URLSearchParams write them; null when it is malformed. */
function decode(text: string): string | null {
  if (!text.includes('%') && !text.includes('+')) return text
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
