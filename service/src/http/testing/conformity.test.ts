import { Ajv2020 } from 'ajv/dist/2020.js'
import { expect, test } from 'vitest'
import { openApiDocument } from '../document.ts'

/** What `conformity` does not ask of the document each time. */
test('every schema of the document is one of JSON Schema 2020-12', async () => {
  const ajv = new Ajv2020({ strict: false, allErrors: true })
  const { components, paths } = (await openApiDocument({ withSandbox: true })) as {
    readonly components: { readonly schemas: Readonly<Record<string, object>> }
    readonly paths: object
  }
  const schemas = [...Object.values(components.schemas), ...schemasIn(paths)]
  expect(schemas.length).toBeGreaterThan(100)
  for (const schema of schemas) {
    ajv.validateSchema(schema)
    expect([schema, ajv.errors]).toEqual([schema, null])
  }
  expect(ajv.validateSchema({ type: 'strnig' })).toBe(false)
})

function schemasIn(node: unknown): readonly object[] {
  if (node === null || typeof node !== 'object') return []
  return Object.entries(node).flatMap(([key, value]) => (key === 'schema' ? [value] : schemasIn(value)))
}
