import type { DecimalInput } from './types.ts'

/** The decimal as JSON number text, digit by digit as given; the service reads it from there, exactly. */
export function decimalText(value: DecimalInput, name: string): string {
  const text = typeof value === 'number' ? withoutExponent(String(value)) : value
  if (/^(?:0|[1-9]\d*)(?:\.\d+)?$/.test(text)) return text
  throw new TypeError(`${name} must be a plain decimal such as '0.05', not ${JSON.stringify(value) ?? value}`)
}

/** `1e-7` and `1.5e+21`, as JavaScript writes small and large numbers, in plain digits. */
function withoutExponent(text: string): string {
  const match = /^(\d+)(?:\.(\d+))?e([+-]\d+)$/.exec(text)
  if (match === null) return text
  const [, whole = '', fraction = '', exponentText = '0'] = match
  const exponent = Number(exponentText)
  if (exponent < 0) return `0.${'0'.repeat(-exponent - whole.length)}${whole}${fraction}`
  return whole + fraction.padEnd(exponent, '0')
}
