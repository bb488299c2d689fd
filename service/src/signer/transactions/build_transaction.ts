import { assert } from '../../domain/assert.ts'
import { assetOf } from '../../domain/catalog/assets.ts'
import type { Outcome } from '../../domain/outcome.ts'
import type { Intent, SignedTx } from '../../domain/payouts/intent.ts'
import type { Keys } from '../derivation.ts'
import { assetIn } from '../intent_asset.ts'
import { loadInTurn } from '../load_in_turn.ts'
import { refuseToSign } from '../rejections.ts'
import { evmSettingsOf, type SignerSettings } from '../settings.ts'
import type { SignRejection } from '../signer.ts'
import { signBitcoin } from './bitcoin_transaction.ts'
import { signEvm } from './evm_transaction.ts'
import { signTron } from './tron_transaction.ts'
import { signXrp } from './xrp_transaction.ts'

/** What a transaction follows from, beside its intent. */
export type SigningParts = { readonly keys: Keys; readonly settings: SignerSettings }

/**
 * The signed transaction of an intent, of which `amountThatLeaves` has said before that it may leave. Refused above the
 * caps of its chain, and where that is not configured.
 */
export async function buildTransaction(
  { keys, settings }: SigningParts,
  intent: Intent,
): Promise<Outcome<SignedTx, SignRejection>> {
  if (intent.family === 'bitcoin') return signBitcoin(intent, keys, settings.bitcoin)
  if (intent.family === 'xrp') return signXrp(intent, keys, settings.xrp)
  if (intent.family === 'stellar') return (await stellarSigning()).signStellar(intent, keys, settings.stellar)
  if (intent.family === 'tron') return signTron(intent, keys, settings.tron)
  if (intent.family === 'eos') {
    const { signEos } = await loadInTurn(() => import('./eos_transaction.ts'))
    return signEos(intent, keys, settings.eos)
  }
  if (intent.family === 'solana') {
    const asset = assetIn(settings, intent)
    assert(asset !== null, 'what leaves was looked at before')
    const { signSolana } = await loadInTurn(() => import('./solana_transaction.ts'))
    return signSolana(intent, keys, settings.solana, assetOf(asset).chainDecimals)
  }
  const chain = evmSettingsOf(settings, intent)
  if (chain === undefined) return refuseToSign('malformed', `${intent.chain} is not configured`)
  return signEvm(intent, keys, chain)
}

/** Its library is slow to load, and not every service pays on Stellar. */
export const stellarSigning = () => loadInTurn(() => import('./stellar_transaction.ts'))
