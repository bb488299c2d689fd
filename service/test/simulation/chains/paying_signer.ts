import { type AssetId, nativeAsset } from '../../../src/domain/catalog/assets.ts'
import type { AddressFamily } from '../../../src/domain/catalog/networks.ts'
import type { Intent, KeyPath } from '../../../src/domain/payouts/intent.ts'
import { type Payee, payoutSigner } from '../../contract/payout_signer.ts'
import { accountRules } from './account_chain.ts'
import { simulatedSignerSettings } from './signer_settings.ts'

/** The real signer over the keys of the simulation, for which every payout has an order that was sealed. */
export function payingSigner() {
  const signer = payoutSigner(simulatedSignerSettings, payeeOf, Buffer.alloc(64, 7))
  return {
    pay: signer.pay,
    address: async (family: AddressFamily, purpose: KeyPath['purpose'], index: number) =>
      (await signer.addresses(family, purpose, index, 1))[0] ?? '',
  }
}

function payeeOf(intent: Intent): Payee {
  return { asset: paidAsset(intent), destination: destinationOf(intent), destinationTag: tagOf(intent) }
}

function tagOf(intent: Intent): string | null {
  // A payment of EOS has a memo in any case.
  if (intent.family === 'eos') return intent.payment.memo
  if (intent.family === 'stellar') return intent.payment?.memo ?? null
  const tag = intent.family === 'xrp' ? (intent.payment?.tag ?? null) : null
  return tag === null ? null : String(tag)
}

function destinationOf(intent: Intent): string {
  if (intent.family === 'bitcoin') return intent.payment.address
  if (intent.family === 'evm' || intent.family === 'tron' || intent.family === 'solana') return intent.to
  if (intent.payment === null) throw new Error('a payout pays somebody')
  return intent.payment.to
}

function paidAsset(intent: Intent): AssetId {
  if (intent.family !== 'evm' || intent.token === null) return nativeAsset(intent.chain).id
  const asset = Object.entries(accountRules.ETH.tokens).find(([contract]) => contract === intent.token)?.[1]
  if (asset === undefined) throw new Error('a listed token is paid')
  return asset
}
