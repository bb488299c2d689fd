import { expect, test } from 'vitest'
import { openApiDocument } from './document.ts'

/**
 * What: what generators of clients make of the document holds what the interface says.
 * How: the document with everything in it, read as they read it.
 */
type Node = Readonly<Record<string, unknown>>

const document = await openApiDocument({ withSandbox: true })

/** Every object in the document, each with where it stands. */
function nodesIn(value: unknown, at = ''): readonly (readonly [string, Node])[] {
  if (value === null || typeof value !== 'object') return []
  const inside = Object.entries(value).flatMap(([key, each]) => nodesIn(each, `${at}/${key}`))
  return Array.isArray(value) ? inside : [[at, value as Node], ...inside]
}

test('every number that is not whole is a double: a float has too few digits for money', () => {
  const numbers = nodesIn(document).filter(([, { type }]) => [type].flat().includes('number'))
  expect(numbers.length).toBeGreaterThan(40)
  expect(numbers.filter(([, { format }]) => format !== 'double')).toEqual([])
})

test('which of several errors an answer is, its code says: each of them has its own', () => {
  const { schemas } = (document as Document).components
  const choices = nodesIn(document).filter(([, { oneOf }]) => oneOf !== undefined)
  expect(choices.length).toBeGreaterThan(10)
  for (const [at, { oneOf, discriminator }] of choices) {
    const codes = (oneOf as readonly { readonly $ref: string }[]).map(({ $ref }) => [
      schemas[$ref.replace('#/components/schemas/', '')]?.properties.error_code?.const,
      $ref,
    ])
    expect(discriminator, at).toEqual({ propertyName: 'error_code', mapping: Object.fromEntries(codes) })
    expect(new Set(codes.map(([code]) => code)).size, at).toBe(codes.length)
  }
})

test('what v1 may grow by is no enum, which older clients would refuse', () => {
  const { Order, OrderEvent } = (document as Document).components.schemas
  const open = nodesIn([Order, OrderEvent]).filter(([, node]) => 'x-extensible-enum' in node)
  expect(open.map(([at, { type, enum: closed }]) => [at.split('/properties/').at(-1), type, closed])).toEqual(
    [
      ['reasons/items', 'string', undefined],
      ['type', 'string', undefined],
      ['reasons/items', 'string', undefined],
    ],
  )
})

test('an answer of bytes is one of bytes, not of text', () => {
  const images = nodesIn(document).flatMap(([, node]) => ('image/png' in node ? [node['image/png']] : []))
  const bytes = { schema: { type: 'string', format: 'binary', contentMediaType: 'image/png' } }
  expect(images).toEqual([bytes])
})

type Named = { readonly properties: Readonly<Record<string, { readonly const?: string }>> }
type Document = { readonly components: { readonly schemas: Readonly<Record<string, Named>> } }
