import { expect, test } from 'vitest'
import { parseAddress } from './address.ts'

const USDT = '0xdAC17F958D2ee523a2206206994597C13D831ec7'

test("a listed token's contract is no address to pay to, in any spelling", () => {
  const contracts = new Set([USDT.toLowerCase()])
  for (const text of [USDT, USDT.toLowerCase()]) {
    expect(parseAddress(text, contracts)).toMatchObject({
      ok: false,
      rejection: { code: 'address_unpayable' },
    })
    expect(parseAddress(text, new Set())).toEqual({ ok: true, value: USDT })
  }
})

// The examples of https://eips.ethereum.org/EIPS/eip-55
const examples = [
  '0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed',
  '0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359',
  '0xdbF03B407c01E7cD3CBea99509d93f8DDDC8C6FB',
  '0xD1220A0cf47c7B9Be7A2E6BA89F429762e7b9aDb',
]
test.each(examples)('%s is accepted, and with any one letter in the other case it is not', (text) => {
  expect(parseAddress(text, new Set())).toEqual({ ok: true, value: text })
  for (let at = 2; at < text.length; at += 1) {
    const letter = text.charAt(at)
    const other = letter === letter.toLowerCase() ? letter.toUpperCase() : letter.toLowerCase()
    if (other === letter) continue
    const mistyped = text.slice(0, at) + other + text.slice(at + 1)
    expect(parseAddress(mistyped, new Set())).toMatchObject({ rejection: { code: 'address_checksum' } })
  }
})
