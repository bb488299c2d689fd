import { accept } from '../../domain/outcome.ts'
import type { Signer } from '../../signer/signer.ts'
import type { SigningWorld } from '../world.ts'
import type { BooksStage } from './books_stage.ts'
import { unlimited } from './unlimited.ts'

/** A signer on paper: it has signed nothing yet, and signs whatever it is asked as `tx-` and the payout's name, but for `parts`. */
export function willingSigner(parts: Partial<Signer> = {}): Signer {
  return {
    addresses: async () => [],
    room: unlimited,
    lastSigned: async () => 0,
    lastOutflow: async () => 0,
    sign: async ({ payoutId }) => accept({ txHash: `tx-${payoutId}`, bytes: 'ff' }),
    ...parts,
  }
}

/** The stage's world, and a willing signer but for `parts`. */
export function worldWithSigner({ world }: BooksStage, parts: Partial<Signer> = {}): SigningWorld {
  return { ...world, seal: () => 'seal', signer: willingSigner(parts) }
}

/** The same, where nothing is to be signed: were it asked, that would show as trouble of what it was asked for. */
export function worldSigningNothing(stage: BooksStage): SigningWorld {
  return worldWithSigner(stage, { sign: () => Promise.reject(new Error('the signer was asked')) })
}
