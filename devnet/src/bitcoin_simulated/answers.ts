import type { View } from '../simulated/chain.ts'
import { btc } from './amounts.ts'
import type { Coin } from './coins.ts'
import type { BitcoinNode } from './node.ts'
import { BITS, type Bitcoin, type BitcoinBlock, medianTime, type Spent, TARGET } from './rules.ts'
import { addressOfScript, asm, scriptType } from './scripts.ts'
import { type Decoded, decodedOf, isCoinbase, toHex } from './transaction.ts'

export type Answer = Record<string, unknown>

export const DIFFICULTY = 4.656542373906925e-10

export function scriptJson(script: Uint8Array): Answer {
  const address = addressOfScript(script)
  return {
    asm: asm(script),
    hex: toHex(script),
    ...(address !== undefined && { address }),
    type: scriptType(script),
  }
}

/** `spent` where it was asked for, and is known. */
export function transactionJson(tx: Decoded, spent?: Spent): Answer {
  const { txid, wtxid, version, size, vsize, weight, lockTime } = tx
  return {
    txid,
    hash: wtxid,
    version,
    size,
    vsize,
    weight,
    locktime: lockTime,
    vin: tx.inputs.map((input, at) => {
      const { scriptSig, sequence, witness } = input
      const items = witness.length === 0 ? {} : { txinwitness: witness.map(toHex) }
      if (isCoinbase(tx)) return { coinbase: toHex(scriptSig), ...items, sequence }
      const coin = spent?.coins[at]
      return {
        txid: input.txid,
        vout: input.vout,
        scriptSig: { asm: asm(scriptSig), hex: toHex(scriptSig) },
        ...items,
        ...(coin !== undefined && { prevout: coinJson(coin) }),
        sequence,
      }
    }),
    vout: tx.outputs.map(({ sats, script }, n) => ({
      value: btc(sats),
      n,
      scriptPubKey: scriptJson(script),
    })),
    ...(spent !== undefined && !isCoinbase(tx) && { fee: btc(spent.feeSats) }),
  }
}

function coinJson({ isCoinbase: generated, height, sats, script }: Coin): Answer {
  return {
    generated,
    height,
    value: btc(sats),
    scriptPubKey: scriptJson(Buffer.from(script, 'hex')),
  }
}

/** -1 for a block that lost, as seen by `view`. */
export function confirmations(view: View<Bitcoin>, block: BitcoinBlock): number {
  const isThere = view.block(block.height)?.seal.hash === block.seal.hash
  return isThere ? view.head.height - block.height + 1 : -1
}

export function headerJson(view: View<Bitcoin>, block: BitcoinBlock): Answer {
  const { seal, height, included } = block
  const header = Buffer.from(seal.header, 'hex')
  const version = header.readUInt32LE(0)
  const next = confirmations(view, block) > 0 ? view.block(height + 1)?.seal.hash : undefined
  return {
    hash: seal.hash,
    confirmations: confirmations(view, block),
    height,
    version,
    versionHex: version.toString(16).padStart(8, '0'),
    merkleroot: Buffer.from(header.subarray(36, 68)).reverse().toString('hex'),
    time: header.readUInt32LE(68),
    mediantime: medianTime(seal.times),
    nonce: header.readUInt32LE(76),
    bits: BITS,
    target: TARGET,
    difficulty: DIFFICULTY,
    chainwork: chainWork(height),
    nTx: included.length + 1,
    ...(height > 0 && { previousblockhash: block.parentHash }),
    ...(next !== undefined && { nextblockhash: next }),
  }
}

/** Each block is worth two hashes. */
export function chainWork(height: number): string {
  return (2 * (height + 1)).toString(16).padStart(64, '0')
}

export function blockTransactions({ seal, included }: BitcoinBlock): Decoded[] {
  return [seal.coinbase, ...included.map(({ tx }) => tx)].map(decodedOf)
}

export function blockHex({ seal, included }: BitcoinBlock): string {
  const count = included.length + 1
  const size = Buffer.alloc(count < 0xfd ? 1 : 3, 0xfd)
  if (count < 0xfd) size.writeUInt8(count)
  else size.writeUInt16LE(count, 1)
  return [seal.header, size.toString('hex'), seal.coinbase.hex, ...included.map(({ tx }) => tx.hex)].join('')
}

/** `verbosity` 1: hashes; 2: transactions with fees; 3: and with what they spent. */
export function blockJson(node: BitcoinNode, block: BitcoinBlock, verbosity: number): Answer {
  const txs = blockTransactions(block)
  const size = blockHex(block).length / 2
  const weight = txs.reduce(
    (sum, tx) => sum + tx.weight,
    (size - txs.reduce((sum, tx) => sum + tx.size, 0)) * 4,
  )
  return {
    ...headerJson(node.told(), block),
    strippedsize: (weight - size) / 3,
    size,
    weight,
    tx: txs.map((tx, at) => {
      if (verbosity === 1) return tx.txid
      const item = block.included[at - 1]
      const spent = item && (verbosity > 2 ? item.result : { ...item.result, coins: [] })
      return { ...transactionJson(tx, spent), hex: at === 0 ? block.seal.coinbase.hex : item?.tx.hex }
    }),
  }
}
