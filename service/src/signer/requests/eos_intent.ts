import { EOS_MEMO_BYTES_MAX, eosName } from '../../domain/payouts/eos_transfer.ts'
import type { EosIntent } from '../../domain/payouts/intent.ts'
import { bounded, integer, record, text, UINT32_MAX } from './fields.ts'
import { readIdentity, readKey } from './names.ts'

/** What a token contract counts in: https://github.com/AntelopeIO/cdt, asset::max_amount */
const EOS_UNITS_MAX = 2n ** 62n - 1n
/** In bytes it is counted where it is signed. */
const memoShape = new RegExp(`^\\P{Cc}{0,${EOS_MEMO_BYTES_MAX}}$`, 'u')

export function readEosIntent(value: unknown): EosIntent {
  const names = ['family', 'chain', 'chainId', 'payoutId', 'attempt', 'from', 'account', 'payment']
  const fields = record('intent', value, [...names, 'reference', 'expirationMs', 'netWordsMax'])
  const payment = record('intent.payment', fields.payment, ['to', 'memo', 'units'])
  const reference = record('intent.reference', fields.reference, ['id', 'timeMs'])
  const time = (name: string, given: unknown) => integer(name, given, 0, Number.MAX_SAFE_INTEGER)
  return {
    family: 'eos',
    ...readIdentity(fields, 'eos'),
    chainId: text('intent.chainId', fields.chainId, /^[0-9a-f]{64}$/),
    from: readKey('intent.from', fields.from),
    account: text('intent.account', fields.account, eosName),
    payment: {
      to: text('intent.payment.to', payment.to, eosName),
      memo: text('intent.payment.memo', payment.memo, memoShape),
      units: bounded('intent.payment.units', payment.units, 1n, EOS_UNITS_MAX),
    },
    reference: {
      id: text('intent.reference.id', reference.id, /^[0-9a-f]{64}$/),
      timeMs: time('intent.reference.timeMs', reference.timeMs),
    },
    expirationMs: time('intent.expirationMs', fields.expirationMs),
    netWordsMax: integer('intent.netWordsMax', fields.netWordsMax, 1, UINT32_MAX),
  }
}
