import { isPushOnly, scriptType } from './scripts.ts'
import { type Decoded, isCoinbase, NULL_TXID, type Output } from './transaction.ts'

/** In satoshi for 1000 vbytes, as bitcoind sets out. */
export const MIN_RELAY_SATS = 1_000n
export const INCREMENTAL_SATS = 1_000n
const DUST_RELAY_SATS = 3_000n
const WEIGHT_MAX = 400_000
const SIZE_MIN = 65
const DATA_MAX = 83
const MONEY_MAX = 21_000_000n * 100_000_000n

/** What is wrong with it whatever it spends: `CheckTransaction` in consensus/tx_check.cpp. */
export function formProblem(tx: Decoded): string | undefined {
  if (tx.inputs.length === 0) return 'bad-txns-vin-empty'
  if (tx.outputs.length === 0) return 'bad-txns-vout-empty'
  let total = 0n
  for (const { sats } of tx.outputs) {
    // The wire has no sign; the node reads one.
    if (sats >= 1n << 63n) return 'bad-txns-vout-negative'
    if (sats > MONEY_MAX) return 'bad-txns-vout-toolarge'
    total += sats
    if (total > MONEY_MAX) return 'bad-txns-txouttotal-toolarge'
  }
  const spent = tx.inputs.map(({ txid, vout }) => `${txid}:${vout}`)
  if (new Set(spent).size < spent.length) return 'bad-txns-inputs-duplicate'
  if (isCoinbase(tx)) return 'coinbase'
  return tx.inputs.some(({ txid }) => txid === NULL_TXID) ? 'bad-txns-prevout-null' : undefined
}

/** What a node does not relay, though a miner may take it: `IsStandardTx` in policy/policy.cpp. */
export function standardProblem(tx: Decoded): string | undefined {
  if (tx.version < 1 || tx.version > 3) return 'version'
  if (tx.weight > WEIGHT_MAX) return 'tx-size'
  for (const { scriptSig } of tx.inputs) {
    if (scriptSig.length > 1650) return 'scriptsig-size'
    if (!isPushOnly(scriptSig)) return 'scriptsig-not-pushonly'
  }
  let datas = 0
  for (const output of tx.outputs) {
    const type = scriptType(output.script)
    if (type === 'nonstandard') return 'scriptpubkey'
    if (type === 'nulldata') {
      if (output.script.length > DATA_MAX) return 'scriptpubkey'
      datas += 1
    } else if (output.sats < dustSats(output)) return 'dust-nonanchor'
  }
  if (datas > 1) return 'multi-op-return'
  return (tx.weight - tx.size) / 3 < SIZE_MIN ? 'tx-size-small' : undefined
}

/** Less than it costs to spend three times over: `GetDustThreshold` in policy/policy.cpp. */
function dustSats({ script }: Output): bigint {
  const type = scriptType(script)
  const spending = type.startsWith('witness') || type === 'anchor' ? 67 : 148
  const size = 8 + (script.length < 0xfd ? 1 : 3) + script.length + spending
  return (BigInt(size) * DUST_RELAY_SATS) / 1000n
}

export type NextBlock = { readonly height: number; readonly medianTime: number }

/** https://github.com/bitcoin/bips/blob/master/bip-0113.mediawiki */
export function isFinal({ lockTime, inputs }: Decoded, { height, medianTime }: NextBlock): boolean {
  if (lockTime === 0 || inputs.every(({ sequence }) => sequence === 0xffff_ffff)) return true
  return lockTime < (lockTime < 500_000_000 ? height : medianTime)
}

/**
 * https://github.com/bitcoin/bips/blob/master/bip-0068.mediawiki, by height. One that waits for a time waits for ever.
 */
export function isPastItsLocks(tx: Decoded, coinHeights: readonly number[], { height }: NextBlock): boolean {
  if (tx.version < 2) return true
  return tx.inputs.every(({ sequence }, at) => {
    if (sequence >= 0x8000_0000) return true
    if ((sequence & 0x40_0000) !== 0) return false
    return height >= (coinHeights[at] ?? 0) + (sequence & 0xffff)
  })
}
