import type { SolanaIntent } from '../../domain/payouts/intent.ts'
import { canonicalSolanaAddress } from '../addresses/solana_address.ts'
import { bounded, integer, Malformed, orNull, record, text } from './fields.ts'
import { readIdentity, readKey } from './names.ts'

const UINT64_MAX = 2n ** 64n - 1n
/** What one transaction may use at most: https://solana.com/docs/core/fees#compute-unit-limit */
const COMPUTE_UNITS_MAX = 1_400_000

export function readSolanaIntent(value: unknown): SolanaIntent {
  const names = ['family', 'chain', 'payoutId', 'attempt', 'from', 'payer', 'to', 'units', 'token']
  const more = ['computeUnits', 'unitPriceMicroLamports', 'reference', 'lastHeight']
  const fields = record('intent', value, [...names, ...more])
  const reference = record('intent.reference', fields.reference, ['slot', 'blockhash', 'height'])
  const count = (name: string, given: unknown) => integer(name, given, 0, Number.MAX_SAFE_INTEGER)
  return {
    family: 'solana',
    ...readIdentity(fields, 'solana'),
    from: readKey('intent.from', fields.from),
    payer: readKey('intent.payer', fields.payer),
    to: solanaAddress('intent.to', fields.to),
    units: bounded('intent.units', fields.units, 1n, UINT64_MAX),
    token: orNull(fields.token, (token) => solanaAddress('intent.token', token)),
    computeUnits: integer('intent.computeUnits', fields.computeUnits, 1, COMPUTE_UNITS_MAX),
    unitPriceMicroLamports: bounded(
      'intent.unitPriceMicroLamports',
      fields.unitPriceMicroLamports,
      0n,
      UINT64_MAX,
    ),
    reference: {
      slot: count('intent.reference.slot', reference.slot),
      blockhash: solanaAddress('intent.reference.blockhash', reference.blockhash),
      height: count('intent.reference.height', reference.height),
    },
    lastHeight: count('intent.lastHeight', fields.lastHeight),
  }
}

/** A blockhash is 32 bytes in base58 as well. */
function solanaAddress(name: string, value: unknown): string {
  const address = canonicalSolanaAddress(text(name, value, /^.{32,44}$/))
  if (address === null) throw new Malformed(`${name} is not 32 bytes in base58`)
  return address
}
