import { createHash } from 'node:crypto'
import { Name, PackedTransaction, Serializer } from '@wharfkit/antelope'
import { EOS_SYMBOL, readTransfer } from '../../../src/chains/eos/transfer_action.ts'
import type { DatedTx } from './dated_node.ts'

/** A transfer of EOS. It has no fee. */
export function readEosTx(bytes: string): DatedTx | null {
  try {
    const tx = Serializer.decode({ data: bytes, type: PackedTransaction }).getTransaction()
    const untilMs = tx.expiration.toMilliseconds()
    const [action] = tx.actions
    const transfer = action === undefined ? null : readTransfer(action.data.hexString)
    if (!action?.account.equals('eosio.token') || transfer?.symbol !== EOS_SYMBOL) return null
    return {
      txHash: String(tx.id),
      from: nameOf(transfer.from),
      sequence: null,
      payment: {
        to: nameOf(transfer.to),
        tag: transfer.memo === '' ? null : transfer.memo,
        units: transfer.units,
      },
      fee: 0n,
      isInTime: ({ timeMs }) => timeMs <= untilMs,
    }
  } catch {
    return null // the library throws on whatever is no transaction
  }
}

function nameOf(hex: string): string {
  return String(Serializer.decode({ data: hex, type: Name }))
}

const LETTERS = 'abcdefghijklmnopqrstuvwxyz12345'

/** The account of a person outside. */
export function eosAddress(of: string): string {
  const digest = createHash('sha256').update(of).digest()
  return [...digest.subarray(0, 12)].map((byte) => LETTERS[byte % LETTERS.length]).join('')
}
