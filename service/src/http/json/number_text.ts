/** Digits that survive a JSON number in every client (IEEE 754 double). */
export const SIGNIFICANT_DIGITS_MAX = 15

const CHARACTERS_MAX = 60

/** A plain decimal as JSON writes one, but without a sign or an exponent. */
const plainDecimal = /^(?:0|[1-9]\d*)(?:\.\d+)?$/

export function isPlainDecimal(text: string): boolean {
  return plainDecimal.test(text)
}

export function significantDigits(text: string): number {
  const withoutFractionZeros = text.includes('.') ? text.replace(/0+$/, '') : text
  return withoutFractionZeros.replace('.', '').replace(/^0+/, '').replace(/0+$/, '').length
}

/** What is wrong with an amount's text, in words that follow the field's name; null when nothing is. */
export function amountTextProblem(text: string): string | null {
  if (!isPlainDecimal(text)) return 'must be a plain decimal number such as 0.05, without sign or exponent'
  if (!/[1-9]/.test(text)) return 'must be greater than zero'
  if (text.length <= SIGNIFICANT_DIGITS_MAX) return null
  if (text.length > CHARACTERS_MAX) return `must have at most ${CHARACTERS_MAX} characters`
  return significantDigits(text) > SIGNIFICANT_DIGITS_MAX
    ? `must have at most ${SIGNIFICANT_DIGITS_MAX} significant digits`
    : null
}
