import { encodeMuxedAccount, encodeMuxedAccountToAddress } from '@stellar/stellar-sdk/base'
import { expect, test } from 'vitest'
import { parsePlace, parseTagged, textOf } from './address.ts'

// The examples of SEP-23, https://stellar.org/protocol/sep-23
const account = 'GA7QYNF7SOWQ3GLR2BGMZEHXAVIRZA4KVWLTJJFC7MGXUA74P7UJVSGZ'
const lastButOne = 'MA7QYNF7SOWQ3GLR2BGMZEHXAVIRZA4KVWLTJJFC7MGXUA74P7UJVAAAAAAAAAAAAAJLK'
const nought = 'MA7QYNF7SOWQ3GLR2BGMZEHXAVIRZA4KVWLTJJFC7MGXUA74P7UJUAAAAAAAAAAAACJUQ'
const muxed = (id: string) => encodeMuxedAccountToAddress(encodeMuxedAccount(account, id))

test.each([
  ['an account', account, { account, id: null }],
  ['a muxed address of id 0', nought, { account, id: '0' }],
  ['one of an id beyond 2^63', lastButOne, { account, id: '9223372036854775808' }],
  ['one of the last id', muxed('18446744073709551615'), { account, id: '18446744073709551615' }],
])('valid: %s', (_, text, place) => {
  expect(parsePlace(text)).toEqual({ ok: true, value: place })
  // One text for one place.
  expect(textOf(place)).toBe(text)
})

test.each([
  ['an empty text', ''],
  // SEP-23, invalid test cases
  ['an account with a wrong checksum', 'GA7QYNF7SOWQ3GLR2BGMZEHXAVIRZA4KVWLTJJFC7MGXUA74P7UJVSGA'],
  ['an account with unused bits set', 'GA7QYNF7SOWQ3GLR2BGMZEHXAVIRZA4KVWLTJJFC7MGXUA74P7UJVSGZ='],
  ['an account that is too long', 'GAAAAAAAACGC6'],
  [
    'a muxed address of wrong length',
    'MA7QYNF7SOWQ3GLR2BGMZEHXAVIRZA4KVWLTJJFC7MGXUA74P7UJUAAAAAAAAAAAACJUR',
  ],
  ['one that is cut', nought.slice(0, -2)],
  ['one that is padded', 'MA7QYNF7SOWQ3GLR2BGMZEHXAVIRZA4KVWLTJJFC7MGXUA74P7UJVAAAAAAAAAAAAAJLKA===='],
  ['a contract', 'CA3D5KRYM6CB7OWQ6TWYRR3Z4T7GNZLKERYNZGGA5SOAOPIFY6YQGAXE'],
  ['a hash to sign with', 'XBU2RRGLXH3E5CQHTD3ODLDF2BWDCYUSSBLLZ5GNW7JXHDIYKXZWGTOG'],
  ['a secret', 'SBGWSG6BTNCKCOB3DIFBGCVMUPQFYPA2G4O34RMTB343OYPXU5DJDVMN'],
  ['in small letters', account.toLowerCase()],
  ['the account whose key is nought', 'GAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAWHF'],
  ['a federated name', 'bob*example.com'],
  ['a Bitcoin address', '1BvBMSEYstWetqTFn5Au4m4GFg7xJaNVN2'],
  ['a classic XRP address', 'rPT1Sjq2YGrBMTttX4GZHjKu9dyfzbpAYe'],
])('not valid: %s', (_, text) => {
  expect(parsePlace(text).ok).toBe(false)
})

test.each([
  ['a number beside an account', account, '48213', { address: account, tag: '48213' }],
  ['the last number', account, '18446744073709551615', { address: account, tag: '18446744073709551615' }],
  ['words', account, 'my memo', { address: account, tag: 'my memo' }],
  ['28 bytes', account, 'ä'.repeat(14), { address: account, tag: 'ä'.repeat(14) }],
  ['inside a muxed address', muxed('7'), null, { address: muxed('7'), tag: '7' }],
  ['in both, the same', muxed('7'), '7', { address: muxed('7'), tag: '7' }],
  ['in both, and not the same', muxed('7'), '8', 'tag_malformed'],
  ['in both, in words', muxed('7'), 'seven', 'tag_malformed'],
  ['missing', account, null, 'tag_required'],
  ['empty', account, '', 'tag_malformed'],
  ['29 bytes', account, 'ä'.repeat(14).concat('x'), 'tag_malformed'],
  ['half a character', account, '\ud83e', 'tag_malformed'],
  ['a line break', account, 'a\nb', 'tag_malformed'],
  ['a number and a space, which would be words', account, '48213 ', 'tag_malformed'],
  ['a number after what nobody sees', account, '\u200b48213', 'tag_malformed'],
  ['a number after a space of another width', account, '\u00a048213', 'tag_malformed'],
  ['one space', account, ' ', 'tag_malformed'],
  ['of an address that is none', 'GNOBODY', '1', 'address_malformed'],
])('a memo: %s', (_, text, tag, wanted) => {
  const parsed = parseTagged(text, tag)
  expect(parsed.ok ? parsed.value : parsed.rejection.code).toEqual(wanted)
})
