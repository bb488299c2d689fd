import type { Draft, State } from '../simulated/state.ts'
import { isUnspendable } from './scripts.ts'
import { type Decoded, toHex } from './transaction.ts'

/** An output that nobody has spent. */
export type Coin = {
  readonly sats: bigint
  readonly script: string
  readonly height: number
  readonly isCoinbase: boolean
}

export const COINBASE_MATURITY = 100
const PREFIX = 'coin:'

export function coinKey(txid: string, vout: number): string {
  return `${PREFIX}${txid}:${vout}`
}

export function allCoins(state: State<Coin>): { txid: string; vout: number; coin: Coin }[] {
  return state.keys(PREFIX).flatMap((key) => {
    const [, txid = '', vout] = key.split(':')
    const coin = state.get(key)
    return coin === undefined ? [] : [{ txid, vout: Number(vout), coin }]
  })
}

export function addOutputs(state: Draft<Coin>, tx: Decoded, height: number, isCoinbase: boolean): void {
  for (const [vout, { sats, script }] of tx.outputs.entries()) {
    if (isUnspendable(script)) continue
    state.set(coinKey(tx.txid, vout), { sats, script: toHex(script), height, isCoinbase })
  }
}
