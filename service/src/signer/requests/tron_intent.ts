import type { TronIntent } from '../../domain/payouts/intent.ts'
import { canonicalTronAddress } from '../addresses/tron_address.ts'
import { bounded, integer, Malformed, orNull, record, text } from './fields.ts'
import { readIdentity, readKey } from './names.ts'

/** What JSON says exactly: nine billion TRX, or as many USDT. */
const SUN_MAX = 2n ** 53n - 1n

export function readTronIntent(value: unknown): TronIntent {
  const names = ['family', 'chain', 'payoutId', 'attempt', 'from', 'to', 'units', 'token', 'feeLimitSun']
  const fields = record('intent', value, [...names, 'reference', 'expirationMs', 'timestampMs'])
  const reference = record('intent.reference', fields.reference, ['id', 'timeMs'])
  const time = (name: string, given: unknown) => integer(name, given, 0, Number.MAX_SAFE_INTEGER)
  return {
    family: 'tron',
    ...readIdentity(fields, 'tron'),
    from: readKey('intent.from', fields.from),
    to: tronAddress('intent.to', fields.to),
    units: bounded('intent.units', fields.units, 1n, SUN_MAX),
    token: orNull(fields.token, (token) => tronAddress('intent.token', token)),
    feeLimitSun: bounded('intent.feeLimitSun', fields.feeLimitSun, 0n, SUN_MAX),
    reference: {
      id: text('intent.reference.id', reference.id, /^[0-9a-f]{64}$/),
      timeMs: time('intent.reference.timeMs', reference.timeMs),
    },
    expirationMs: time('intent.expirationMs', fields.expirationMs),
    timestampMs: time('intent.timestampMs', fields.timestampMs),
  }
}

function tronAddress(name: string, value: unknown): string {
  const address = canonicalTronAddress(text(name, value, /^T.{33}$/))
  if (address === null) throw new Malformed(`${name} is not an address of TRON`)
  return address
}
