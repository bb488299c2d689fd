import fc from 'fast-check'
import { expect, test } from 'vitest'
import { type JsonValue, parseStrictJson } from './strict_json.ts'

const parse = (text: string) => parseStrictJson(Buffer.from(text))

function problemOf(text: string | Buffer): string {
  const parsed = parseStrictJson(Buffer.from(text))
  if (parsed.ok) throw new Error(`${text} was accepted`)
  return parsed.problem
}

/** As JSON.parse would have it, but for rounding. */
function plain(value: JsonValue): unknown {
  if (value === null || typeof value !== 'object') return value
  if (value instanceof Map) return Object.fromEntries([...value].map(([name, field]) => [name, plain(field)]))
  if (Array.isArray(value)) return value.map(plain)
  return JSON.parse((value as { numberText: string }).numberText)
}

test.each(['0.1', '9007199254740993', '1e400', '-0', '0.10', '123456789012345678901234567890'])(
  'the number %s keeps its source text',
  (text) => {
    const parsed = parse(`{"amount": ${text}}`)
    expect(parsed).toEqual({ ok: true, value: new Map([['amount', { numberText: text }]]) })
  },
)

test.each([
  ['', 'is empty'],
  [' \n', 'is empty'],
  ['{"a":1,"a":2}', 'has the field "a" twice'],
  ['{"a":{"b":1,"\\u0062":2}}', 'has the field "b" twice'],
  ['{"__proto__":{}}', 'must not have a field named __proto__'],
  ['{"a":{"constructor":1}}', 'must not have a field named constructor'],
  ['{"\\u005f_proto__":1}', 'must not have a field named __proto__'],
  [`${'['.repeat(9)}${']'.repeat(9)}`, 'is nested deeper than 8 levels'],
  ['{"a":"\\ud800"}', 'has text that is not valid Unicode'],
  ['{"a":1,}', 'is not valid JSON: property name expected at line 1, column 8'],
  ['{"a":1}\n{}', 'is not valid JSON: nothing may follow the value at line 2, column 1'],
])('%s is refused: %s', (text, problem) => {
  expect(problemOf(text)).toBe(problem)
})

test.each([
  '{a:1}',
  "{'a':1}",
  '{"a":01}',
  '{"a":+1}',
  '{"a":.5}',
  '{"a":1.}',
  '{"a":0x10}',
  '{"a":NaN}',
  '{"a":Infinity}',
  '{"a":1}/* */',
  '// x\n{}',
  '{"a" 1}',
  '{"a":1 "b":2}',
  '[1,]',
  '{',
  '"',
  '{"a":"\t"}',
  '\ufeff{}',
  '{"a":"\\x"}',
  '{"a":tru}',
  'nul',
  '\u00a0{}',
  '{"a":1}\u0000',
])('%j is not JSON', (text) => {
  expect(() => JSON.parse(text)).toThrow()
  expect(problemOf(text)).toMatch(/^is not valid JSON/)
})

test('bytes that are not UTF-8 are refused', () => {
  expect(problemOf(Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x7d]))).toBe('is not valid UTF-8')
  expect(problemOf(Buffer.from([0xc0, 0x80]))).toBe('is not valid UTF-8')
})

test('a hundred thousand brackets do not exhaust the stack', () => {
  expect(problemOf('['.repeat(100_000))).toBe('is nested deeper than 8 levels')
  expect(problemOf('{"a":'.repeat(100_000))).toBe('is nested deeper than 8 levels')
})

test('whatever JSON.stringify writes is read as it was', () => {
  const flat = fc.oneof(
    fc.string({ unit: 'grapheme' }),
    fc.integer(),
    fc.double({ noNaN: true }),
    fc.boolean(),
  )
  const names = fc.string().filter((name) => !['__proto__', 'constructor', 'prototype'].includes(name))
  const value = fc.dictionary(names, fc.oneof(flat, fc.constant(null), fc.array(flat)), {
    noNullPrototype: true,
  })
  fc.assert(
    fc.property(value, (written) => {
      const text = JSON.stringify(written)
      const parsed = parse(text)
      expect(parsed.ok && plain(parsed.value)).toEqual(JSON.parse(text))
    }),
  )
})

test('nothing is accepted that JSON.parse refuses', () => {
  const pieces = [
    '{',
    '}',
    '[',
    ']',
    ':',
    ',',
    '"a"',
    '"',
    '1',
    '-',
    '.',
    'e',
    '0',
    'true',
    'null',
    ' ',
    '\n',
    '/',
    '*',
    '\\',
  ]
  const soup = fc.array(fc.constantFrom(...pieces), { maxLength: 12 }).map((parts) => parts.join(''))
  fc.assert(
    fc.property(soup, (text) => {
      if (!parse(text).ok) return
      expect(() => JSON.parse(text)).not.toThrow()
    }),
    { numRuns: 3000 },
  )
})
