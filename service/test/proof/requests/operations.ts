type Json = Readonly<Record<string, unknown>>

/** The part of JSON Schema that the document's parameters use. */
export type FieldSchema = {
  readonly type: string | readonly string[]
  readonly enum?: readonly string[]
  readonly pattern?: string
  readonly format?: string
  readonly minLength?: number
  readonly maxLength?: number
  readonly minimum?: number
  readonly maximum?: number
  readonly exclusiveMinimum?: number
  readonly default?: unknown
}

export type Field = {
  readonly name: string
  readonly where: 'path' | 'query' | 'header' | 'body'
  readonly schema: FieldSchema
  readonly isRequired: boolean
}

/** One operation as the OpenAPI document tells it. */
export type Operation = {
  readonly id: string
  readonly method: string
  /** `/v1/order/{order_id}` */
  readonly path: string
  readonly fields: readonly Field[]
  readonly hasBody: boolean
}

export function readOperations(document: Json): Operation[] {
  return Object.entries(document.paths as Record<string, Json>).flatMap(([path, byMethod]) =>
    Object.entries(byMethod).map(([method, told]) => readOperation(method, path, told as Json)),
  )
}

type Parameter = { name: string; in: Field['where']; schema: FieldSchema; required?: boolean }
type Body = { required?: readonly string[]; properties?: Record<string, FieldSchema> }

function readOperation(method: string, path: string, told: Json): Operation {
  const parameters = (told.parameters ?? []) as readonly Parameter[]
  const content = (told.requestBody as Json | undefined)?.content as Record<string, Json> | undefined
  const body = content?.['application/json']?.schema as Body | undefined
  const fromBody = Object.entries(body?.properties ?? {}).map(
    ([name, schema]): Field => ({
      name,
      where: 'body',
      schema,
      isRequired: body?.required?.includes(name) === true,
    }),
  )
  const fromParameters = parameters.map(
    ({ name, in: where, schema, required }): Field => ({
      name,
      where,
      schema,
      isRequired: required === true,
    }),
  )
  return {
    id: String(told.operationId),
    method: method.toUpperCase(),
    path,
    fields: [...fromParameters, ...fromBody],
    hasBody: body !== undefined,
  }
}

export function isText({ schema }: Field): boolean {
  return [schema.type].flat().includes('string')
}

export function mayBeNull({ schema }: Field): boolean {
  return [schema.type].flat().includes('null')
}
