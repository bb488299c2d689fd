const SATS_PER_BTC = 100_000_000n

declare global {
  interface JSON {
    /** https://github.com/tc39/proposal-json-parse-with-source */
    rawJSON(text: string): unknown
  }
}

/** A JSON number with all its 8 decimals, as bitcoind prints it: never 1e-8. */
export function btc(sats: bigint): unknown {
  return JSON.rawJSON(decimals(sats))
}

export function decimals(sats: bigint): string {
  const size = sats < 0n ? -sats : sats
  const fraction = String(size % SATS_PER_BTC).padStart(8, '0')
  return `${sats < 0n ? '-' : ''}${size / SATS_PER_BTC}.${fraction}`
}

/** As the node's reasons say it: at least two decimals and no more than needed. */
export function shortly(sats: bigint): string {
  return decimals(sats).replace(/(\.\d\d\d*?)0+$/, '$1')
}

export function feeRate(sats: bigint, vsize: number): string {
  return `${decimals((sats * 1000n) / BigInt(vsize))} BTC/kvB`
}

/** undefined: no amount of bitcoin. */
export function satsOf(amount: unknown): bigint | undefined {
  const text = typeof amount === 'number' ? amount.toFixed(8) : amount
  const [, whole, fraction = ''] =
    (typeof text === 'string' && /^(\d{1,8})(?:\.(\d{1,8}))?$/.exec(text)) || []
  return whole === undefined ? undefined : BigInt(whole) * SATS_PER_BTC + BigInt(fraction.padEnd(8, '0'))
}
