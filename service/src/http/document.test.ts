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
