import type { TSchema } from 'typebox'
import type { FieldProblem } from '../errors.ts'

export type Reading<Value> =
  | { readonly ok: true; readonly value: Value }
  /** In words that follow the parameter's name: "must be …". */
  | { readonly ok: false; readonly problem: string }

/**
 * One parameter of a request, said once: what the reference shows and what the door checks. `readText` is given the
 * text of a JSON string, number or boolean, or of a query parameter. A list is an array of strings in JSON; in a query, and
 * for `readText`, its items stand between commas, which none of them may have.
 */
export type Parameter<Value> = {
  readonly schema: TSchema
  readonly kind: 'string' | 'number' | 'boolean' | 'list'
  readonly readText: (text: string) => Reading<Value>
  /** What an absent parameter means; null when it must be there. */
  readonly absent: { readonly value: Value } | null
}

export type Parameters = Readonly<Record<string, Parameter<unknown>>>

export type Values<Given extends Parameters> = {
  readonly [Name in keyof Given]: Given[Name] extends Parameter<infer Value> ? Value : never
}

export type ParametersRead<Given extends Parameters> =
  | { readonly ok: true; readonly values: Values<Given> }
  | { readonly ok: false; readonly details: readonly FieldProblem[] }

/** Who makes more mistakes in a query or body makes them on purpose: to tell of thousands takes longer than anything that may be asked. */
export const PROBLEMS_MAX = 50

export function optional<Value>(parameter: Parameter<Value>): Parameter<Value | null> {
  return { ...parameter, absent: { value: null } }
}

export function withDefault<Value extends string | number | boolean | readonly string[]>(
  parameter: Parameter<Value>,
  value: Value,
): Parameter<Value> {
  return { ...parameter, schema: { ...parameter.schema, default: value }, absent: { value } }
}

export function isRequired(parameter: Parameter<unknown>): boolean {
  return parameter.absent === null
}
