import Type from 'typebox'
import { expect, test } from 'vitest'
import { decimal, instant, nullable, text } from './schema.ts'
import { compileSteadyWriter, compileWriter } from './writer.ts'

test('numbers go out as they are written, digit for digit', () => {
  const write = compileWriter(Type.Object({ a: decimal('', 1), b: decimal('', 1) }))
  expect(write({ a: '0.10', b: '123456789012345678.000000001' })).toBe(
    '{"a":0.10,"b":123456789012345678.000000001}',
  )
})

test.each(['', '1e5', '-1', 'NaN', '1,"b":2', '01', 0.1, null])('%j never goes out as a number', (value) => {
  const write = compileWriter(Type.Object({ a: decimal('', 1) }))
  expect(() => write({ a: value })).toThrow('assertion failed')
})

test('only what the schema names goes out, in its order', () => {
  const write = compileWriter(Type.Object({ b: text('', ''), a: Type.Optional(text('', '')) }))
  expect(write({ secret: 'x', a: '1', b: '2' })).toBe('{"b":"2","a":"1"}')
  expect(write({ b: '2' })).toBe('{"b":"2"}')
  expect(() => write({ a: '1' })).toThrow('the answer has the field b')
})

test('text is escaped, times are ISO 8601 in UTC, null is null', () => {
  const write = compileWriter(Type.Object({ a: text('', ''), b: instant(''), c: nullable(text('', '')) }))
  const json = write({ a: '"\\\n\u2028é', b: 1_790_000_000_000, c: null })
  expect(JSON.parse(json)).toEqual({ a: '"\\\n\u2028é', b: '2026-09-21T14:13:20.000Z', c: null })
})

test('an object of two halves is written as if it were one, and the steady half once', () => {
  const schema = Type.Object({
    a: decimal('', 1),
    b: text('', ''),
    c: text('', ''),
    d: Type.Optional(instant('')),
    e: text('', ''),
  })
  const [whole, halves] = [compileWriter(schema), compileSteadyWriter(schema, ['a', 'c', 'd'])]
  let asked = 0
  const steady = {
    get b() {
      asked += 1
      return 'é'
    },
    e: 'e',
    secret: 'x',
  }
  for (const varying of [
    { a: '0.10', c: '' },
    { a: '1', c: '"', d: 1_790_000_000_000, e: 'not mine' },
  ]) {
    expect(halves(steady, varying)).toBe(whole({ ...varying, b: 'é', e: 'e' }))
  }
  expect(asked).toBe(1)
  expect(() => halves(steady, { c: '' })).toThrow('the answer has the field a')
  expect(() => halves({ b: '' }, { a: '1', c: '' })).toThrow('the answer has the field e')
})
