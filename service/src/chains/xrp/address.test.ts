import { classicAddressToXAddress } from 'ripple-address-codec'
import { expect, test } from 'vitest'
import { parsePlace, parseTagged, textOf } from './address.ts'

const account = 'rPT1Sjq2YGrBMTttX4GZHjKu9dyfzbpAYe'
const main = { isMain: true }
const test31337 = { isMain: false }
const xOf = (tag: number | false, isTest = false) => classicAddressToXAddress(account, tag, isTest)

test.each([
  ['a classic address', account, { account, tag: null }],
  ['a classic address of Bitstamp', 'rvYAfWj5gh67oV6fW32ZzP3Aw4Eubs59B', null],
  // XLS-5, https://xrpaddress.info
  ['an X-address with a tag', 'XV5sbjUmgPpvXv4ixFWZ5ptAYZ6PD28Sq49uo34VyjnmK5H', null],
  ['an X-address without one', xOf(false), { account, tag: null }],
  ['an X-address with tag 0', xOf(0), { account, tag: 0 }],
  ['an X-address with the last tag', xOf(2 ** 32 - 1), { account, tag: 2 ** 32 - 1 }],
])('valid: %s', (_, text, place) => {
  const parsed = parsePlace(text, main)
  expect(parsed).toMatchObject({ ok: true, ...(place !== null && { value: place }) })
  // One text for one place, whatever it was written as.
  if (parsed.ok) expect(parsePlace(textOf(parsed.value, main), main)).toEqual(parsed)
})

test.each([
  ['an empty text', ''],
  ['a letter changed', 'rPT1Sjq2YGrBMTttX4GZHjKu9dyfzbpAYf'],
  ['a letter missing', account.slice(0, -1)],
  ['in capitals', account.toUpperCase()],
  ['an X-address of the test network', xOf(7, true)],
  ['an X-address with a letter changed', `${xOf(7).slice(0, -1)}${xOf(7).endsWith('1') ? '2' : '1'}`],
  ['ACCOUNT_ZERO', 'rrrrrrrrrrrrrrrrrrrrrhoLvTp'],
  ['ACCOUNT_ONE', 'rrrrrrrrrrrrrrrrrrrrBZbvji'],
  ['an X-address of ACCOUNT_ZERO', classicAddressToXAddress('rrrrrrrrrrrrrrrrrrrrrhoLvTp', 1, false)],
  ['a Bitcoin address', '1BvBMSEYstWetqTFn5Au4m4GFg7xJaNVN2'],
  ['a seed', 'sn259rEFXrQrWyx3Q7XneWcwV6dfL'],
  ['a Stellar address', 'GA7QYNF7SOWQ3GLR2BGMZEHXAVIRZA4KVWLTJJFC7MGXUA74P7UJVSGZ'],
])('not valid: %s', (_, text) => {
  expect(parsePlace(text, main).ok).toBe(false)
})

test('each network has its own X-addresses', () => {
  expect(parsePlace(xOf(7, true), test31337)).toEqual({ ok: true, value: { account, tag: 7 } })
  expect(parsePlace(xOf(7), test31337).ok).toBe(false)
})

test.each([
  ['beside a classic address', account, '48213', { address: account, tag: '48213' }],
  ['inside an X-address', xOf(48_213), null, { address: account, tag: '48213' }],
  ['in both, the same', xOf(48_213), '48213', { address: account, tag: '48213' }],
  ['beside an X-address that has none', xOf(false), '1', { address: account, tag: '1' }],
  ['nought', account, '0', { address: account, tag: '0' }],
  ['the last one', account, '4294967295', { address: account, tag: '4294967295' }],
  ['missing', account, null, 'tag_required'],
  ['missing in an X-address', xOf(false), null, 'tag_required'],
  ['in both, and not the same', xOf(48_213), '48214', 'tag_malformed'],
  ['empty', account, '', 'tag_malformed'],
  ['too large', account, '4294967296', 'tag_malformed'],
  ['negative', account, '-1', 'tag_malformed'],
  ['with a sign', account, '+1', 'tag_malformed'],
  ['with nought before it', account, '048213', 'tag_malformed'],
  ['hexadecimal', account, '0x10', 'tag_malformed'],
  ['a fraction', account, '1.5', 'tag_malformed'],
  ['words', account, 'my memo', 'tag_malformed'],
  ['of an address that is none', 'rNobody', '1', 'address_malformed'],
])('a tag %s', (_, text, tag, wanted) => {
  const parsed = parseTagged(text, tag, main)
  expect(parsed.ok ? parsed.value : parsed.rejection.code).toEqual(wanted)
})
