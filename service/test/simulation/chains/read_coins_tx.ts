import { Address, Transaction } from '@scure/btc-signer'
import { addressOfScript } from '../../../src/chains/bitcoin/addresses.ts'
import { networkFacts } from '../../../src/chains/bitcoin/settings.ts'

/** `spends` are outpoints, `txid:n`. */
export type CoinsTx = {
  readonly txHash: string
  readonly spends: readonly string[]
  readonly outputs: readonly { readonly address: string; readonly satoshi: bigint }[]
  readonly feeSatoshi: bigint
  readonly vbytes: bigint
}

/** The transaction in these bytes but its fee, which only its coins tell; null when there is none. */
export function readCoinsTx(bytes: string): Omit<CoinsTx, 'feeSatoshi'> | null {
  const tx = decode(bytes)
  if (tx === null) return null
  const spends: string[] = []
  for (let at = 0; at < tx.inputsLength; at += 1) {
    const { txid, index } = tx.getInput(at)
    spends.push(`${Buffer.from(txid ?? []).toString('hex')}:${index}`)
  }
  const outputs: { address: string; satoshi: bigint }[] = []
  for (let at = 0; at < tx.outputsLength; at += 1) {
    const { script, amount } = tx.getOutput(at)
    const address = addressOfScript('regtest', script ?? new Uint8Array())
    outputs.push({ address: address ?? 'nobody', satoshi: amount ?? 0n })
  }
  return { txHash: tx.id, spends, outputs, vbytes: BigInt(tx.vsize) }
}

function decode(bytes: string): Transaction | null {
  try {
    return Transaction.fromRaw(Buffer.from(bytes, 'hex'), { allowUnknownOutputs: true })
  } catch {
    return null // the library throws on whatever is no transaction
  }
}

/** The address of a person outside, whose key nobody has: 20 bytes, in hex. */
export function coinsAddress(hash: string): string {
  return Address(networkFacts.regtest.spelling).encode({ type: 'wpkh', hash: Buffer.from(hash, 'hex') })
}
