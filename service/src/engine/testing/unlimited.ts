import type { Signer } from '../../signer/signer.ts'

/** Of a signer that has no limits. */
export const unlimited: Signer['room'] = async () => ({ onePayout: 10n ** 40n, together: null })
