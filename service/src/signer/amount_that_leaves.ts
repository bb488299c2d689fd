import type { AssetId } from '../domain/catalog/assets.ts'
import { type Amount, amountOf, fromChainUnits } from '../domain/money/amount.ts'
import { accept, type Outcome } from '../domain/outcome.ts'
import { type EvmIntent, type Intent, paysSomebody, type TronIntent } from '../domain/payouts/intent.ts'
import { isEosPayee } from './addresses/eos_address.ts'
import { canonicalSolanaAddress } from './addresses/solana_address.ts'
import { canonicalTronAddress } from './addresses/tron_address.ts'
import { addressesIn } from './derive_addresses.ts'
import { assetIn, chainUnitsOf } from './intent_asset.ts'
import { refuseToSign } from './rejections.ts'
import { evmSettingsOf, type SignerSettings } from './settings.ts'
import type { Authority, SignRejection } from './signer.ts'
import { canonicalBitcoinAddress } from './transactions/bitcoin_transaction.ts'
import { type SigningParts, stellarSigning } from './transactions/build_transaction.ts'
import { canonicalEvmAddress } from './transactions/evm_transaction.ts'
import { isXrpPayee } from './transactions/xrp_transaction.ts'

/** Reserve addresses 0 to 15 count as ours; fillers and sweeps go to no other unless `payeeKey` says so. */
const RESERVE_ADDRESSES = 16

/**
 * What the intent takes out of our hands, in ledger units, provided that it goes where it may and is not too much at
 * once; none for what goes from us to us. Asked before anything is signed, and nothing is that it refuses.
 */
export async function amountThatLeaves(
  parts: SigningParts,
  intent: Intent,
  authority: Authority,
): Promise<Outcome<Amount, SignRejection>> {
  const { settings } = parts
  const asset = assetIn(settings, intent)
  if (asset === null) return refuseToSign('malformed', 'intent.token is not a listed contract of its chain')
  if (authority.kind === 'filler') {
    const problem = findFillerProblem(intent, authority)
    if (problem !== null) return problem
  } else if (authority.payeeKey !== null) {
    const problem = findGasProblem(settings, intent, authority)
    if (problem !== null) return problem
  }
  if (!(await isPayeeRight(parts, intent, authority))) {
    return refuseToSign(
      'not_the_destination',
      `a ${authority.kind} of ${authority.orderId} does not go there`,
    )
  }
  if (!isAssetRight(asset, authority)) {
    return refuseToSign(
      'not_the_asset',
      `a ${authority.kind} of ${authority.orderId} is not made in ${asset}`,
    )
  }
  const chainUnits = chainUnitsOf(intent)
  if (!paysSomebody(authority)) return accept(amountOf(asset, 0n))
  if (chainUnits === 0n) return refuseToSign('malformed', `a ${authority.kind} pays something`)
  const amount = fromChainUnits(asset, chainUnits)
  const unitsMax = settings.payoutUnitsMax[asset] ?? 0n
  if (intent.attempt === 1 && amount.units > unitsMax) {
    return refuseToSign('limit_exceeded', `one payout of ${asset} is at most ${unitsMax} ledger units`)
  }
  return accept(amount)
}

async function isPayeeRight(
  { keys, settings }: SigningParts,
  intent: Intent,
  authority: Authority,
): Promise<boolean> {
  if (intent.family === 'xrp') return isXrpPayee(intent, authority, settings.xrp)
  if (intent.family === 'stellar') return (await stellarSigning()).isStellarPayee(intent, authority)
  if (intent.family === 'eos') return isEosPayee(intent, authority)
  const payee = intent.family === 'bitcoin' ? intent.payment.address : intent.to
  const canonical = (text: string) => {
    if (intent.family === 'bitcoin') return canonicalBitcoinAddress(text, settings.bitcoin.network)
    if (intent.family === 'solana') return canonicalSolanaAddress(text)
    return intent.family === 'tron' ? canonicalTronAddress(text) : canonicalEvmAddress(text)
  }
  const addressOf = await addressesIn(keys, settings, intent.family)
  const isReserve = () =>
    Array.from({ length: RESERVE_ADDRESSES }, (_, index) =>
      addressOf({ purpose: 'reserve', index }),
    ).includes(payee)
  switch (authority.kind) {
    case 'payout':
      return canonical(authority.destination) === payee
    case 'refund':
      return authority.refundAddress !== null && canonical(authority.refundAddress) === payee
    case 'sweep':
    case 'filler':
      if (authority.payeeKey !== null) return addressOf(authority.payeeKey) === payee
      return isReserve()
  }
}

/** Under a nonce a filler moves nothing; on coin chains everything comes back, in one output of ours. */
function findFillerProblem(intent: Intent, { payeeKey }: Authority) {
  if (intent.family === 'tron' || intent.family === 'eos' || intent.family === 'solana')
    return refuseToSign('malformed', `on ${intent.chain} nothing waits for a filler`)
  if (intent.family !== 'bitcoin') {
    const movesNothing = intent.family === 'evm' ? isEmptyTransfer(intent) : intent.payment === null
    if (payeeKey === null && movesNothing) return null
    return refuseToSign('malformed', 'a filler moves nothing, and to the reserve')
  }
  if (payeeKey !== null && payeeKey.purpose !== 'change') {
    return refuseToSign('malformed', 'authority.payeeKey is the change key that a filler pays to')
  }
  return intent.change === null ? null : refuseToSign('malformed', 'a filler has one output')
}

function isEmptyTransfer({ units, token }: EvmIntent): boolean {
  return units === 0n && token === null
}

/** Gas for a sweep: native coin from the reserve to a deposit address of ours, and not much of it. */
function findGasProblem(settings: SignerSettings, intent: Intent, { kind, payeeKey }: Authority) {
  if (kind !== 'sweep' || payeeKey?.purpose !== 'deposit' || !needsGas(intent)) {
    return refuseToSign(
      'malformed',
      'authority.payeeKey is the deposit key that a sweep of an account chain brings gas to',
    )
  }
  if (intent.from.purpose !== 'reserve' || intent.token !== null || intent.units === 0n) {
    return refuseToSign('malformed', 'gas for a sweep is native coin from the reserve')
  }
  const capOf = () => evmSettingsOf(settings, intent)?.sweepGasWeiMax
  const unitsMax = (intent.family === 'tron' ? settings.tron?.sweepGasSunMax : capOf()) ?? 0n
  return intent.units > unitsMax
    ? refuseToSign('limit_exceeded', `gas for a sweep is at most ${unitsMax} of the chain's units`)
    : null
}

/** On Solana the reserve pays for a token that leaves a deposit address, and coin pays for itself. */
function needsGas(intent: Intent): intent is EvmIntent | TronIntent {
  return intent.family === 'evm' || intent.family === 'tron'
}

/** What goes from us to us may be any asset: it does not leave. */
function isAssetRight(asset: AssetId, { kind, payoutAsset, depositAsset }: Authority): boolean {
  switch (kind) {
    case 'payout':
      return asset === payoutAsset
    case 'refund':
      return asset === depositAsset
    case 'filler':
    case 'sweep':
      return true
  }
}
