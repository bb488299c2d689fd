import type { StellarIntent } from '../../domain/payouts/intent.ts'
import { STELLAR_MEMO_BYTES_MAX } from '../../domain/payouts/stellar_memo.ts'
import { boolean, bounded, integer, orNull, record, text, UINT32_MAX } from './fields.ts'
import { readIdentity, readKey } from './names.ts'

const INT64_MAX = 2n ** 63n - 1n
/** In bytes it is counted where it is signed. */
const memoShape = new RegExp(`^\\P{Cc}{1,${STELLAR_MEMO_BYTES_MAX}}$`, 'u')

export function readStellarIntent(value: unknown): StellarIntent {
  const names = ['family', 'chain', 'passphrase', 'payoutId', 'attempt', 'from', 'sequence', 'payment']
  const fields = record('intent', value, [...names, 'feeStroops', 'maxTimeS'])
  return {
    family: 'stellar',
    ...readIdentity(fields, 'stellar'),
    passphrase: text('intent.passphrase', fields.passphrase, /^[ -~]{8,200}$/),
    from: readKey('intent.from', fields.from),
    sequence: bounded('intent.sequence', fields.sequence, 1n, INT64_MAX),
    payment: orNull(fields.payment, (payment) => {
      const parts = record('intent.payment', payment, ['to', 'memo', 'stroops', 'creates'])
      return {
        to: text('intent.payment.to', parts.to, /^(G[A-Z2-7]{55}|M[A-Z2-7]{68})$/),
        memo: orNull(parts.memo, (memo) => text('intent.payment.memo', memo, memoShape)),
        stroops: bounded('intent.payment.stroops', parts.stroops, 1n, INT64_MAX),
        creates: boolean('intent.payment.creates', parts.creates),
      }
    }),
    feeStroops: bounded('intent.feeStroops', fields.feeStroops, 1n, BigInt(UINT32_MAX)),
    // A transaction that never ends could come back any time.
    maxTimeS: integer('intent.maxTimeS', fields.maxTimeS, 1, Number.MAX_SAFE_INTEGER),
  }
}
