import { RpcError } from '../json_rpc.ts'

const SATS_PER_BTC = 100_000_000n

/** Decimal text in BTC, exact. */
export function toBtc(sats: bigint): string {
  return `${sats / SATS_PER_BTC}.${String(sats % SATS_PER_BTC).padStart(8, '0')}`
}

/** The node prints at most 8 decimals and 21 million whole coins, which a double holds exactly enough. */
export function fromBtc(btc: number): bigint {
  return BigInt(btc.toFixed(8).replace('.', ''))
}

export function isUnknownTransaction(error: unknown): boolean {
  return error instanceof RpcError && error.code === -5
}
