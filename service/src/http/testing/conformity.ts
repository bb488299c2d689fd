import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'
import ajvFormats from 'ajv-formats'
import type { Answer } from './answer.ts'

type Json = Readonly<Record<string, unknown>>

/** Throws unless the answer is exactly what the served document promises for the route, the method and the status. */
export type Conformity = (method: string, target: string, answer: Answer) => void

/** The document allows fields and values that it does not name, because v1 grows; a test must not. */
export function conformity(document: Json): Conformity {
  // That the document's schemas are such is not asked of every test: to compile what would say so costs as much as the rest.
  const ajv = new Ajv2020({ strict: false, allErrors: true, meta: false, validateSchema: false })
  ajvFormats.default(ajv)
  ajv.addSchema(withoutGrowth(document) as Json, 'document')
  const validators = new Map<string, ValidateFunction>()
  const check = (pointer: string, body: unknown) => {
    const validate = validators.get(pointer) ?? ajv.compile({ $ref: `document#${pointer}` })
    validators.set(pointer, validate)
    if (!validate(body))
      throw new Error(`${pointer}: ${ajv.errorsText(validate.errors)}\n${JSON.stringify(body)}`)
  }
  return (method, target, answer) => {
    if (method === 'HEAD' || answer.status === 304) return
    const path = pathOf(document, target)
    const operation = path === null ? undefined : at(document, ['paths', path, method.toLowerCase()])
    const type = answer.headers.get('content-type')?.split(';')[0] ?? ''
    if (path !== null && operation !== undefined) {
      const steps = ['paths', path, method.toLowerCase(), 'responses', String(answer.status), 'content', type]
      const told = answer.status === 204 ? steps.slice(0, -2) : steps
      if (at(document, told) === undefined) {
        throw new Error(`${method} ${path} answered ${answer.status} ${type}, which is not documented`)
      }
      if (answer.json !== undefined) check(pointerTo([...steps, 'schema']), answer.json)
    } else if (answer.json?.error_code !== undefined) {
      check(pointerTo(['components', 'schemas', schemaName(answer.json.error_code)]), answer.json)
    }
  }
}

function pathOf(document: Json, target: string): string | null {
  const path = target.split('?')[0] ?? ''
  const matches = Object.keys(document.paths as Json).filter((template) =>
    new RegExp(`^${template.replace(/\{[^}]+\}/g, '[^/]+')}$`).test(path),
  )
  return matches.find((template) => !template.includes('{')) ?? matches[0] ?? null
}

function at(document: unknown, steps: readonly string[]): unknown {
  return steps.reduce<unknown>((value, step) => (value as Json | undefined)?.[step], document)
}

function pointerTo(steps: readonly string[]): string {
  return steps
    .map((step) => `/${encodeURIComponent(step.replaceAll('~', '~0').replaceAll('/', '~1'))}`)
    .join('')
}

function schemaName(code: string): string {
  return `${code.replaceAll(/([A-Z])([A-Z]*)_?/g, (_, first, rest) => first + rest.toLowerCase())}Error`
}

function withoutGrowth(node: unknown): unknown {
  if (Array.isArray(node)) return node.map(withoutGrowth)
  if (node === null || typeof node !== 'object') return node
  const copy = Object.fromEntries(
    Object.entries(node).map(([key, value]) => [
      key === 'x-extensible-enum' ? 'enum' : key,
      withoutGrowth(value),
    ]),
  )
  const isObjectSchema = copy.type === 'object' && copy.properties !== undefined
  return isObjectSchema ? { additionalProperties: false, ...copy } : copy
}
