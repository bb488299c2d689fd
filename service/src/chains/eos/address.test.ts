import { expect, test } from 'vitest'
import { parsePlace, parseTagged, textOf } from './address.ts'

test('an account is one with or without a memo, and is written as it was read', () => {
  for (const [text, account, memo] of [
    ['binancecleos', 'binancecleos', null],
    ['a', 'a', null],
    ['a.b..c', 'a.b..c', null],
    ['mycambist123/4294967295', 'mycambist123', '4294967295'],
    ['krakenkraken/user_7:b.c-d', 'krakenkraken', 'user_7:b.c-d'],
  ] as const) {
    const place = parsePlace(text)
    expect(place).toEqual({ ok: true, value: { account, memo } })
    expect(textOf({ account, memo })).toBe(text)
  }
})

test.each([
  ['no letters', ''],
  ['a dot first', '.abc'],
  ['a dot last', 'abc.'],
  ['a digit beyond 5', 'abc6'],
  ['0', 'abc0'],
  ['thirteen letters', 'abcdefghijklm'],
  ['a capital', 'aBc'],
  ['two slashes', 'abc/1/2'],
  ['no account', '/1'],
  ['a memo of 65 letters', `abc/${'1'.repeat(65)}`],
])('%s is no account', (_, text) => {
  expect(parsePlace(text)).toMatchObject({ ok: false, rejection: { code: 'address_malformed' } })
})

test.each(['eosio', 'eosio.token', 'eosio.null', 'eosio.token/7'])('%s is not paid to', (text) => {
  expect(parsePlace(text)).toMatchObject({ ok: false, rejection: { code: 'address_unpayable' } })
  expect(parsePlace(text.replace('eosio', 'eosia')).ok).toBe(true)
})

test.each([
  ['beside the name', 'abc', '7', { address: 'abc', tag: '7' }],
  ['behind it', 'abc/7', null, { address: 'abc', tag: '7' }],
  ['both, the same', 'abc/7', '7', { address: 'abc', tag: '7' }],
  ['words', 'abc', 'für Zoë', { address: 'abc', tag: 'für Zoë' }],
  ['256 bytes', 'abc', 'ä'.repeat(128), { address: 'abc', tag: 'ä'.repeat(128) }],
  ['none', 'abc', null, 'tag_required'],
  ['both, and not the same', 'abc/7', '8', 'tag_malformed'],
  ['empty', 'abc', '', 'tag_malformed'],
  ['257 bytes', 'abc', `${'ä'.repeat(128)}a`, 'tag_malformed'],
  ['a line feed', 'abc', 'a\nb', 'tag_malformed'],
  ['a space behind it', 'abc', '7 ', 'tag_malformed'],
  ['in front what nobody sees', 'abc', '\u200b7', 'tag_malformed'],
  ['half a character', 'abc', '\ud800', 'tag_malformed'],
  ['no account', 'Abc', '7', 'address_malformed'],
])('a memo: %s', (_, text, tag, expected) => {
  const parsed = parseTagged(text, tag)
  expect(parsed.ok ? parsed.value : parsed.rejection.code).toEqual(expected)
})
