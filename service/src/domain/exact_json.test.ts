import fc from 'fast-check'
import { expect, test } from 'vitest'
import { parseExact, stringifyExact } from './exact_json.ts'

const exactValue = fc.letrec<{ value: unknown }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 4 },
    fc.constant(null),
    fc.boolean(),
    fc.bigInt(),
    fc.double({ noNaN: true, noDefaultInfinity: true }).map((number) => number + 0),
    fc.string({ unit: 'binary' }),
    fc.constantFrom('$bigint', '123n', '{"$bigint":"1"}', '123'),
    fc.array(tie('value'), { maxLength: 5 }),
    fc.dictionary(
      fc.string().filter((key) => key !== '$bigint' && key !== '__proto__'),
      tie('value'),
      { maxKeys: 5, noNullPrototype: true },
    ),
  ),
})).value

test('every value comes back as it was, whatever its strings look like', () => {
  fc.assert(
    fc.property(exactValue, (value) => {
      expect(parseExact(stringifyExact(value))).toStrictEqual(value)
    }),
    { numRuns: 1_000 },
  )
})

test('different values have different texts', () => {
  fc.assert(
    fc.property(exactValue, exactValue, (left, right) => {
      if (stringifyExact(left) !== stringifyExact(right)) return
      expect(left).toStrictEqual(right)
    }),
    { numRuns: 1_000 },
  )
  expect(stringifyExact(1n)).not.toBe(stringifyExact('1'))
  expect(stringifyExact(1n)).not.toBe(stringifyExact(1))
})

test('integers beyond what a float carries stay exact', () => {
  expect(parseExact(stringifyExact({ wei: 9007199254740993n }))).toStrictEqual({ wei: 9007199254740993n })
  expect(stringifyExact({ wei: -5n })).toBe('{"wei":{"$bigint":"-5"}}')
})

test.each([
  ['undefined', undefined],
  ['a missing property', { a: undefined }],
  ['a hole', new Array(1)],
  ['NaN', Number.NaN],
  ['infinity', Number.POSITIVE_INFINITY],
  ['minus zero', -0],
  ['a date', new Date(0)],
  ['a map', new Map()],
  ['bytes', new Uint8Array(1)],
  ['a function', () => 1],
  ['a symbol', Symbol('s')],
  ['the tag', { $bigint: '1' }],
  ['__proto__', JSON.parse('{"__proto__":1}')],
])('%s is refused rather than bent', (_, value) => {
  expect(() => stringifyExact(value)).toThrow('exact JSON')
  expect(() => stringifyExact([{ deep: value }])).toThrow('exact JSON')
})

test.each([
  '{"$bigint":1}',
  '{"$bigint":""}',
  '{"$bigint":"0x10"}',
  '{"$bigint":"01"}',
  '{"$bigint":"-0"}',
  '{"$bigint":"+1"}',
  '{"$bigint":" 1"}',
  '{"$bigint":"1\\n"}',
  '{"$bigint":"1","b":2}',
  '{"__proto__":{"a":1}}',
  '-0',
  `${'['.repeat(200)}${']'.repeat(200)}`,
])('%s was not written by us and is refused', (text) => {
  expect(() => parseExact(text)).toThrow('exact JSON')
})

test.each([
  ['lists', (inner: unknown) => [inner]],
  ['objects', (inner: unknown) => ({ inner })],
])('a hundred %s in each other come back, and one more is refused on either way', (_, wrap) => {
  const nested = (count: number): unknown => (count === 0 ? null : wrap(nested(count - 1)))
  expect(parseExact(stringifyExact(nested(100)))).toStrictEqual(nested(100))
  expect(() => stringifyExact(nested(101))).toThrow('nested deeper')
  expect(() => parseExact(JSON.stringify(nested(101)))).toThrow('nested deeper')
})

test('an object without a prototype is written like any other', () => {
  expect(stringifyExact(Object.assign(Object.create(null), { units: 1n }))).toBe('{"units":{"$bigint":"1"}}')
})

test('what is refused is named', () => {
  expect(() => stringifyExact(new Date(0))).toThrow('a Date has no exact text')
  expect(() => stringifyExact(() => 1)).toThrow('a function has no exact text')
  expect(() => stringifyExact(Object.create(Object.create(null)))).toThrow('a object has no exact text')
})

test('text that is no JSON is refused', () => {
  for (const text of ['', '{', '1n', 'undefined']) expect(() => parseExact(text)).toThrow(SyntaxError)
})
