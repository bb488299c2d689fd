/** What a benchmark found out, with the limit it is held to. */
export type Figure = {
  readonly name: string
  readonly value: number
  /** What the value is a number of: `of bare node:http`, `times float`, `µs of processor`. */
  readonly unit: string
  readonly limit?: { readonly atLeast: number } | { readonly atMost: number }
  /** What stands behind the value, for whoever doubts it. */
  readonly detail?: string
}

/** The one way a benchmark says what it found: `name: value unit (limit …) met`. */
export function tell(figure: Figure): void {
  const { name, value, unit, detail } = figure
  console.log(`${name}: ${shown(value)} ${unit}${verdict(figure)}`)
  if (detail !== undefined) console.log(`  ${detail}`)
  process.send?.(figure)
}

export function isMet({ value, limit }: Figure): boolean {
  if (limit === undefined) return true
  return 'atLeast' in limit ? value >= limit.atLeast : value <= limit.atMost
}

function verdict(figure: Figure): string {
  const { limit } = figure
  if (limit === undefined) return ''
  const words = 'atLeast' in limit ? `at least ${shown(limit.atLeast)}` : `at most ${shown(limit.atMost)}`
  return ` (limit: ${words}) ${isMet(figure) ? 'met' : 'missed'}`
}

function shown(value: number): string {
  if (Number.isInteger(value)) return String(value)
  if (value < 0.1) return String(Number(value.toPrecision(2)))
  return value >= 100 ? value.toFixed(0) : value >= 20 ? value.toFixed(1) : value.toFixed(2)
}
