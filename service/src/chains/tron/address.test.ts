import { utils } from 'tronweb'
import { expect, test } from 'vitest'
import { base58Of, hexOf, parseAddress } from './address.ts'

/** The field's own client says what an address is; in hex it takes one as well, which is none here. */
const tether = 'TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t'
const none: ReadonlySet<string> = new Set()

test.each([
  ['the contract of Tether', tether, '41a614f803b6fd780986a42c78ec9c7f77e6ded13c'],
  ['an account', 'TJRabPrwbZy45sbavfcjinPJC18kjpRTv8', null],
])('valid: %s', (_, text, hex) => {
  expect(utils.address.isAddress(text)).toBe(true)
  expect(parseAddress(text, none)).toEqual({ ok: true, value: text })
  expect(base58Of(hexOf(text))).toBe(text)
  if (hex !== null) expect(hexOf(text)).toBe(hex)
})

test('a hundred new accounts are written and read as the client does', () => {
  for (let made = 0; made < 100; made += 1) {
    const { address } = utils.accounts.generateAccount()
    expect(parseAddress(address.base58, none).ok).toBe(true)
    expect(hexOf(address.base58)).toBe(address.hex.toLowerCase())
    expect(base58Of(address.hex)).toBe(address.base58)
  }
})

test.each([
  ['an empty text', ''],
  ['a letter changed', `${tether.slice(0, -1)}u`],
  ['a letter missing', tether.slice(0, -1)],
  ['a letter too many', `${tether}t`],
  ['in hex', hexOf(tether)],
  ['in hex with 0x', `0x${hexOf(tether)}`],
  ['in lower case', tether.toLowerCase()],
  ['an EVM address', '0xdAC17F958D2ee523a2206206994597C13D831ec7'],
  ['a Bitcoin address', '1BvBMSEYstWetqTFn5Au4m4GFg7xJaNVN2'],
  ['an address of the XRP Ledger', 'rPT1Sjq2YGrBMTttX4GZHjKu9dyfzbpAYe'],
  ['the address of nobody', 'T9yD14Nj9j7xAB4dbGeiX9h8unkKHxuWwb'],
])('not valid: %s', (_, text) => {
  expect(parseAddress(text, none).ok).toBe(false)
})

test('nothing is paid to the contract of a listed token', () => {
  const parsed = parseAddress(tether, new Set([hexOf(tether)]))
  expect(parsed).toMatchObject({ ok: false, rejection: { code: 'address_unpayable' } })
})
