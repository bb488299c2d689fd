import type { XrpIntent } from '../../domain/payouts/intent.ts'
import { bounded, integer, orNull, record, text, UINT32_MAX } from './fields.ts'
import { readIdentity, readKey } from './names.ts'

const DROPS_MAX = 10n ** 17n

export function readXrpIntent(value: unknown): XrpIntent {
  const names = ['family', 'chain', 'networkId', 'payoutId', 'attempt', 'from', 'sequence', 'payment']
  const fields = record('intent', value, [...names, 'feeDrops', 'lastLedgerSequence'])
  return {
    family: 'xrp',
    ...readIdentity(fields, 'xrp'),
    networkId: integer('intent.networkId', fields.networkId, 0, UINT32_MAX),
    from: readKey('intent.from', fields.from),
    sequence: integer('intent.sequence', fields.sequence, 0, UINT32_MAX),
    payment: orNull(fields.payment, (payment) => {
      const parts = record('intent.payment', payment, ['to', 'tag', 'drops'])
      return {
        to: text('intent.payment.to', parts.to, /^r[1-9A-HJ-NP-Za-km-z]{24,34}$/),
        tag: orNull(parts.tag, (tag) => integer('intent.payment.tag', tag, 0, UINT32_MAX)),
        drops: bounded('intent.payment.drops', parts.drops, 1n, DROPS_MAX),
      }
    }),
    feeDrops: bounded('intent.feeDrops', fields.feeDrops, 1n, DROPS_MAX),
    lastLedgerSequence: integer('intent.lastLedgerSequence', fields.lastLedgerSequence, 1, UINT32_MAX),
  }
}
