import type { Chance } from '../../harness/chance.ts'
import { type Field, isText, mayBeNull } from './operations.ts'
import { type Entry, type Expected, type Form, text } from './request.ts'

/** What was done to a request, and what has to come of it now. */
export type Spoilt<Of> = { readonly what: string; readonly spoilt: Of; readonly expected: Expected }

/** A way to spoil a request that still has parts; null where there is nothing for it to do. */
type FormSpoiler = (form: Form, chance: Chance) => Spoilt<Form> | null
/** The same for one field; of a value, `value` is its text in the query or path and its JSON in the body. */
type FieldSpoiler = (field: Field, value: string, chance: Chance) => Spoilt<string> | null

const ODD_TEXTS: readonly string[] = [
  "' OR '1'='1",
  '"; DROP TABLE orders; --',
  '{{7*7}}#{7*7}',
  '<script>alert(1)</script>',
  '../../etc/passwd',
  '%00',
  '\0',
  'a\nb',
  '\u202eright to left',
  'e\u0301\u0327\u0300'.repeat(20),
  '１２３',
  '\ud800',
  '👩‍👩‍👧‍👦',
  '\ufeffBTC',
  'ВТС',
  ' ',
  'a'.repeat(5_000),
]

const PATH_TEXT = /^[\w./%]{1,100}$/

/** No JSON number, or one that is no plain decimal, or far too long. */
const NO_NUMBERS: readonly string[] = [
  ...['1e400', '1e-400', '1E5', '0x10', '010', '+1', '1.', '.5', 'NaN', 'Infinity', '1_000', '1,5'],
  '1'.repeat(10_000),
  `0.${'0'.repeat(10_000)}1`,
]

const fieldSpoilers: readonly FieldSpoiler[] = [
  /** Another kind of JSON. In a query everything is text. */
  (field, _value, chance) => {
    if (field.where !== 'body') return null
    const others = [
      ...(isText(field) ? ['1', '0', '-1.5', '1e3'] : ['"1"', '""', '"BTC"']),
      ...['true', 'false', '[]', '{}', '[1]', '{"a":1}', '[["a"]]'],
    ]
    return refused('is another kind of JSON', chance.pick(others))
  },
  (field, value, chance) => {
    if (!isText(field) || field.where === 'header') return null
    const odd = chance.pick(ODD_TEXTS)
    const given = chance.happens(0.5) || field.where !== 'body' ? odd : JSON.parse(value) + odd
    const what = 'is odd text'
    const spoilt = field.where === 'body' ? text(given) : given
    // A tag may be any text that has no control characters; and a URL goes on with what a path may hold (RFC 3986 §3.3).
    const goesOn = field.schema.format === 'uri' && given !== odd && PATH_TEXT.test(odd)
    const isPossible = isFreeText(field) || goesOn
    return isPossible ? { what, spoilt, expected: 'either' } : refused(what, spoilt)
  },
  (field, _value, chance) => {
    const { maxLength } = field.schema
    if (!isText(field) || maxLength === undefined) return null
    const long = 'A'.repeat(maxLength + 1 + chance.below(3))
    return refused('is too long', field.where === 'body' ? text(long) : long)
  },
  (field) => {
    if (!isText(field) || field.where === 'path' || field.where === 'header') return null
    const [what, spoilt] = ['is empty', field.where === 'body' ? '""' : '']
    if (field.schema.default === '') return { what, spoilt, expected: 'success' }
    // A tag that is empty is none, which some networks need.
    const mayBeEmpty = isFreeText(field) && field.schema.minLength === undefined
    return mayBeEmpty ? { what, spoilt, expected: 'either' } : refused(what, spoilt)
  },
  (field, _value, chance) => {
    // Where a field may be left out, null is one of its words.
    const words = field.schema.enum?.filter((word) => word !== null)
    if (words === undefined) return null
    const word = chance.pick(words)
    const other = chance.pick([word.toUpperCase(), `${word} `, word.slice(1), words.join(','), 'null'])
    return refused('is not one of the words', field.where === 'body' ? text(other) : other)
  },
  (field, _value, chance) => (isText(field) ? null : refused('is no number', chance.pick(NO_NUMBERS))),
  (field, _value, chance) => {
    const { minimum, maximum, exclusiveMinimum } = field.schema
    if (isText(field)) return null
    const outside = [
      ...(maximum === undefined ? [] : [String(maximum + 1), '9007199254740993', '99999999999999999999']),
      ...(minimum === undefined || minimum === 0 ? [] : [String(minimum - 1), '0']),
      ...(exclusiveMinimum === undefined ? [] : ['0', '0.0', '-0', '0.00000000000000000001']),
      ...(minimum === undefined && exclusiveMinimum === undefined ? ['--1', '1-'] : ['-1', '-0.5']),
    ]
    return refused('is out of its range', chance.pick(outside))
  },
  (field, _value, chance) => {
    if (field.schema.exclusiveMinimum === undefined) return null
    const precise = ['1234567890.1234567', '9007199254740993', '0.1000000000000000055', '123456789012345678']
    return refused('is more exact than a number in JSON can be', chance.pick(precise))
  },
  (field, _value, chance) => {
    if (field.where !== 'body') return null
    const depth = chance.pick([8, 9, 100, 4_000])
    const [open, close] = chance.pick([
      ['[', ']'],
      ['{"a":', '}'],
    ] as const)
    const nested = `${open.repeat(depth)}1${close.repeat(depth)}`
    return refused('is nested deeply', nested.slice(0, 15_000))
  },
  (field) => (field.where === 'body' && !mayBeNull(field) ? refused('is null', 'null') : null),
]

function refused<Of>(what: string, spoilt: Of): Spoilt<Of> {
  return { what, spoilt, expected: 'refusal' }
}

/** Of tags and of labels. */
const FREE_TEXT_LENGTHS: readonly number[] = [256, 100]

function isFreeText({ schema }: Field): boolean {
  return (
    schema.enum === undefined &&
    schema.pattern === undefined &&
    schema.format === undefined &&
    FREE_TEXT_LENGTHS.includes(schema.maxLength ?? 0)
  )
}

const spoilOneField: FormSpoiler = (form, chance) => {
  const fields = form.operation.fields.filter(({ where }) => where !== 'header')
  if (fields.length === 0) return null
  const field = chance.pick(fields)
  const spoilt = chance.pick(fieldSpoilers)(field, givenTo(form, field), chance)
  if (spoilt === null) return null
  return { ...spoilt, what: `${field.name} ${spoilt.what}`, spoilt: withValue(form, field, spoilt.spoilt) }
}

const formSpoilers: readonly FormSpoiler[] = [
  (form, chance) => {
    const needed = form.operation.fields.filter(({ isRequired, where }) => isRequired && where !== 'path')
    if (needed.length === 0) return null
    const { name } = chance.pick(needed)
    const without = (entries: readonly Entry[]) => entries.filter(([each]) => each !== name)
    return refused(`${name} is missing`, { ...form, query: without(form.query), body: without(form.body) })
  },
  (form, chance) => {
    const name = chance.pick([
      'extra',
      'fee',
      '__proto__',
      'constructor',
      'prototype',
      'FROM',
      'amount ',
      '',
      '\u0000',
      '💰',
    ])
    const where = form.operation.hasBody && chance.happens(0.7) ? 'body' : 'query'
    const entry = [name, where === 'body' ? chance.pick(['1', '{}', 'null', '"x"']) : '1'] as const
    return refused(`there is an unknown field ${name}`, { ...form, [where]: [...form[where], entry] })
  },
  (form, chance) => {
    const where = form.operation.hasBody ? 'body' : 'query'
    if (form[where].length === 0) return null
    const again = chance.pick(form[where])
    const entries = chance.happens(0.5) ? [...form[where], again] : [again, ...form[where]]
    return refused(`${again[0]} is there twice`, { ...form, [where]: entries })
  },
  (form, chance) => {
    if (!form.operation.fields.some(({ name }) => name === 'Idempotency-Key')) return null
    const key = chance.pick(['', 'a'.repeat(65), "a'b", 'a b', 'é', 'a,b', 'a;b', '../x'])
    const others = form.headers.filter(([name]) => name !== 'Idempotency-Key')
    return refused('Idempotency-Key is odd', { ...form, headers: [...others, ['Idempotency-Key', key]] })
  },
]

/** One wrong thing about the parts of a request. */
export function spoilForm(form: Form, chance: Chance): Spoilt<Form> | null {
  return chance.happens(0.6) ? spoilOneField(form, chance) : chance.pick(formSpoilers)(form, chance)
}

function givenTo(form: Form, { name, where }: Field): string {
  if (where === 'path') return form.path[name] ?? ''
  const entries = where === 'body' ? form.body : form.query
  return entries.find(([each]) => each === name)?.[1] ?? (where === 'body' ? '""' : '')
}

function withValue(form: Form, { name, where }: Field, value: string): Form {
  if (where === 'path') return { ...form, path: { ...form.path, [name]: value } }
  const put = (entries: readonly Entry[]) => [
    ...entries.filter(([each]) => each !== name),
    [name, value] as const,
  ]
  return where === 'body' ? { ...form, body: put(form.body) } : { ...form, query: put(form.query) }
}
