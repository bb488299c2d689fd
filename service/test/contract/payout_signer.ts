import { createHmac, createSecretKey, randomBytes } from 'node:crypto'
import { systemClock } from '../../src/clock.ts'
import { type AssetId, assets } from '../../src/domain/catalog/assets.ts'
import { sealText } from '../../src/domain/orders/seal.ts'
import type { Intent, SignedTx } from '../../src/domain/payouts/intent.ts'
import { localSigner } from '../../src/signer/local_signer.ts'
import type { SignerSettings } from '../../src/signer/settings.ts'
import type { Signer } from '../../src/signer/signer.ts'
import { memoryStore } from '../../src/signer/testing/memory_store.ts'

/** Whom and in what an intent pays: the terms of the order that is sealed for it. */
export type Payee = {
  readonly asset: AssetId
  readonly destination: string
  readonly destinationTag: string | null
}

/** The real signer over throw-away keys, for which every payout has an order that was sealed. */
export function payoutSigner(
  settings: Partial<SignerSettings>,
  payeeOf: (intent: Intent) => Payee,
  seed: Uint8Array = randomBytes(64),
): Pick<Signer, 'addresses'> & { pay(intent: Intent): Promise<SignedTx> } {
  const sealKey = createSecretKey(randomBytes(32))
  const signer = localSigner({
    seed,
    store: memoryStore(),
    sealKey,
    clock: systemClock(),
    settings: {
      bitcoin: { network: 'regtest', feeRateSatPerVbMax: 1n, feeSatoshiMax: 1n },
      evm: {},
      contracts: {},
      payoutUnitsMax: Object.fromEntries(assets.map(({ id, maxAmount }) => [id, maxAmount])),
      limits: [],
      ...settings,
    },
  })
  return {
    addresses: signer.addresses,
    pay: async (intent) => {
      const { asset, destination, destinationTag } = payeeOf(intent)
      const orderId = intent.payoutId.split(':')[0] ?? ''
      const where = { destination, destinationTag, refundAddress: null }
      const terms = { orderId, payoutAsset: asset, depositAsset: asset, ...where }
      const seal = createHmac('sha256', sealKey).update(sealText(terms)).digest('hex')
      const signed = await signer.sign(intent, { kind: 'payout', ...terms, payeeKey: null, seal })
      if (!signed.ok) throw new Error(signed.rejection.message)
      return signed.value
    },
  }
}
