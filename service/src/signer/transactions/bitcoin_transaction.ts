import { Address, p2wpkh, Transaction } from '@scure/btc-signer'
import { bytesToHex } from 'viem/utils'
import { bitcoinSpellings } from '../../domain/catalog/bitcoin_spellings.ts'
import type { BitcoinNetwork } from '../../domain/catalog/networks.ts'
import { accept, type Outcome } from '../../domain/outcome.ts'
import type { BitcoinIntent, SignedTx } from '../../domain/payouts/intent.ts'
import type { Keys } from '../derivation.ts'
import { refuseToSign } from '../rejections.ts'
import type { BitcoinSettings } from '../settings.ts'
import type { SignRejection } from '../signer.ts'

/** Signals that the transaction may be replaced (BIP-125) and leaves lock times unused. */
const SEQUENCE = 0xfffffffd

/**
 * The intent's inputs in its order, output 0 the payment, output 1 the change. Nothing is random (RFC 6979, no
 * grinding), so the same intent gives the same bytes for ever. `txHash` is the txid, which signatures do not change.
 */
export function signBitcoin(
  intent: BitcoinIntent,
  keys: Keys,
  settings: BitcoinSettings,
): Outcome<SignedTx, SignRejection> {
  const problem = findProblem(intent, keys, settings)
  if (problem !== null) return refuseToSign('malformed', problem)
  if (intent.feeSatoshi > settings.feeSatoshiMax) {
    return refuseToSign('limit_exceeded', `a fee is at most ${settings.feeSatoshiMax} satoshi`)
  }
  const network = bitcoinSpellings[settings.network]
  const tx = new Transaction({ version: 2, lockTime: 0 })
  for (const { txHash, index, satoshi, key } of intent.inputs) {
    const { script } = p2wpkh(keys.publicKey('bitcoin', key), network)
    tx.addInput({ txid: txHash, index, sequence: SEQUENCE, witnessUtxo: { script, amount: satoshi } })
  }
  tx.addOutputAddress(intent.payment.address, intent.payment.satoshi, network)
  if (intent.change !== null) tx.addOutputAddress(intent.change.address, intent.change.satoshi, network)
  for (const [at, coin] of intent.inputs.entries()) tx.signIdx(keys.privateKey('bitcoin', coin.key), at)
  tx.finalize()
  if (intent.feeSatoshi > settings.feeRateSatPerVbMax * BigInt(tx.vsize)) {
    return refuseToSign('limit_exceeded', `a fee is at most ${settings.feeRateSatPerVbMax} satoshi per vB`)
  }
  return accept({ txHash: tx.id, bytes: bytesToHex(tx.extract()).slice(2) })
}

/** The text as the network writes it, or null when it is no address that can be paid there. */
export function canonicalBitcoinAddress(text: string, network: BitcoinNetwork): string | null {
  const coder = Address(bitcoinSpellings[network])
  try {
    const decoded = coder.decode(text)
    // Anyone may spend from pay-to-anchor.
    return decoded.type === 'p2a' ? null : coder.encode(decoded)
  } catch {
    return null // the library throws on whatever is no address
  }
}

function findProblem(intent: BitcoinIntent, keys: Keys, settings: BitcoinSettings): string | null {
  const { inputs, payment, change } = intent
  if (canonicalBitcoinAddress(payment.address, settings.network) !== payment.address) {
    return `intent.payment.address is not a ${settings.network} address in its canonical form`
  }
  for (const [at, coin] of inputs.entries()) {
    if (keys.address('bitcoin', coin.key) !== coin.address) {
      return `intent.inputs[${at}].address is not the address of its key`
    }
  }
  if (change !== null && keys.address('bitcoin', change.key) !== change.address) {
    return 'intent.change.address is not the address of its key'
  }
  const received = inputs.reduce((sum, coin) => sum + coin.satoshi, 0n)
  if (received !== payment.satoshi + (change?.satoshi ?? 0n) + intent.feeSatoshi) {
    return 'the inputs are not exactly payment, change and fee'
  }
  return null
}
