import { createHash } from 'node:crypto'
import { base58 } from '@scure/base'
import { getCompiledTransactionMessageDecoder, getTransactionDecoder } from '@solana/kit'
import { solanaFee } from '../../../src/domain/payouts/solana_fee.ts'
import { solanaAddress as addressOfKey } from '../../../src/signer/addresses/solana_address.ts'
import type { DatedTx } from './dated_node.ts'

/**
 * So many blocks are made for each that is told here. A transaction lives for 151 of them, and each that a watcher reads is
 * a dozen statements: the rules are the same with fewer to read.
 */
export const BLOCKS_EACH = 15
/** MAX_PROCESSING_AGE: https://github.com/anza-xyz/agave, sdk/clock */
const BLOCKS_OF_LIFE = 151

const SYSTEM = '1'.repeat(32)
const BUDGET = 'ComputeBudget111111111111111111111111111111'

/** A transfer of SOL, paid for by who sends it. */
export function readSolanaTx(bytes: string): DatedTx | null {
  try {
    const tx = getTransactionDecoder().decode(Buffer.from(bytes, 'hex'))
    const message = getCompiledTransactionMessageDecoder().decode(tx.messageBytes)
    if (!('instructions' in message) || !('staticAccounts' in message)) return null
    const { staticAccounts: accounts, instructions, lifetimeToken } = message
    const calls = instructions.map(({ programAddressIndex, accountIndices = [], data = [] }) => ({
      program: String(accounts[programAddressIndex]),
      accounts: accountIndices.map((index) => String(accounts[index])),
      data: Buffer.from(Uint8Array.from(data)),
    }))
    const transfer = calls.find(({ program, data }) => program === SYSTEM && data.readUInt32LE() === 2)
    const [from, to] = transfer?.accounts ?? []
    const [signature] = Object.values(tx.signatures)
    if (transfer === undefined || from === undefined || to === undefined || !signature) return null
    const budget = (kind: number) =>
      calls.find(({ program, data }) => program === BUDGET && data[0] === kind)?.data
    const [units, price] = [budget(2)?.readUInt32LE(1) ?? 0, budget(3)?.readBigUInt64LE(1) ?? 0n]
    const reference = Buffer.from(base58.decode(lifetimeToken)).toString('hex')
    return {
      txHash: base58.encode(Uint8Array.from(signature)),
      from,
      sequence: null,
      payment: { to, tag: null, units: transfer.data.readBigUInt64LE(4) },
      fee: solanaFee(1, units, price),
      isInTime: ({ height, heightOf }) => {
        const from = heightOf(reference)
        return from !== null && BLOCKS_EACH * height <= BLOCKS_EACH * from + BLOCKS_OF_LIFE
      },
    }
  } catch {
    return null // the library throws on whatever is no transaction
  }
}

/** As Solana writes the hash of a block. */
export function blockhashOf(hash: string): string {
  return base58.encode(Buffer.from(hash, 'hex'))
}

/** The address of a person outside, who has a key. */
export function solanaAddress(of: string): string {
  const key = createHash('sha256').update(of).digest()
  return addressOfKey({ privateKey: () => key }, { purpose: 'deposit', index: 0 })
}
