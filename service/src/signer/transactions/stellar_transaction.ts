import {
  Account,
  Asset,
  Keypair,
  Memo,
  MuxedAccount,
  Operation,
  StrKey,
  TransactionBuilder,
} from '@stellar/stellar-sdk/base'
import { formatDecimal } from '../../domain/money/decimal.ts'
import { accept, type Outcome } from '../../domain/outcome.ts'
import type { SignedTx, StellarIntent } from '../../domain/payouts/intent.ts'
import { STELLAR_MEMO_BYTES_MAX, stellarMemoKind } from '../../domain/payouts/stellar_memo.ts'
import type { Keys } from '../derivation.ts'
import { refuseToSign } from '../rejections.ts'
import type { StellarSettings } from '../settings.ts'
import type { Authority, SignRejection } from '../signer.ts'

/** A payment of lumens or the account that it makes, or a BumpSequence to where the sequence is anyway. Deterministic (RFC 8032). */
export function signStellar(
  intent: StellarIntent,
  keys: Keys,
  settings: StellarSettings | undefined,
): Outcome<SignedTx, SignRejection> {
  if (settings === undefined) return refuseToSign('malformed', 'XLM is not configured')
  const { passphrase, from, payment, feeStroops, sequence, maxTimeS } = intent
  if (passphrase !== settings.passphrase)
    return refuseToSign('malformed', `intent.passphrase is not "${settings.passphrase}"`)
  if (from.purpose !== 'reserve' || from.index !== 0)
    return refuseToSign('malformed', 'intent.from: everything leaves from the account of the reserve')
  if (feeStroops > settings.feeStroopsMax)
    return refuseToSign('limit_exceeded', `a fee is at most ${settings.feeStroopsMax} stroops`)
  if (payment !== null && !isPayable(payment))
    return refuseToSign('malformed', 'intent.payment is none that Stellar knows')
  const key = Keypair.fromRawEd25519Seed(keys.privateKey('stellar', from))
  // The library writes the sequence after the one that it is told.
  const builder = new TransactionBuilder(new Account(key.publicKey(), String(sequence - 1n)), {
    fee: String(feeStroops),
    networkPassphrase: passphrase,
    timebounds: { minTime: 0, maxTime: maxTimeS },
  })
  builder.addOperation(actionOf(intent))
  if (payment !== null && payment.memo !== null) builder.addMemo(memoOf(payment.memo))
  const transaction = builder.build()
  transaction.sign(key)
  const bytes = Buffer.from(transaction.toEnvelope().toXdr('base64'), 'base64').toString('hex')
  return accept({ txHash: Buffer.from(transaction.hash()).toString('hex'), bytes })
}

function actionOf({ payment, sequence }: StellarIntent) {
  if (payment === null) return Operation.bumpSequence({ bumpTo: String(sequence) })
  const { to: destination, stroops, creates } = payment
  const amount = formatDecimal(stroops, 7)
  return creates
    ? Operation.createAccount({ destination, startingBalance: amount })
    : Operation.payment({ destination, asset: Asset.native(), amount })
}

type Payment = NonNullable<StellarIntent['payment']>

/** A muxed address has its memo inside, and makes no account. */
function isPayable({ to, memo, creates }: Payment): boolean {
  if (StrKey.isValidMed25519PublicKey(to)) return memo === null && !creates
  return (
    StrKey.isValidEd25519PublicKey(to) && (memo === null || Buffer.byteLength(memo) <= STELLAR_MEMO_BYTES_MAX)
  )
}

function memoOf(text: string): Memo {
  return stellarMemoKind(text) === 'id' ? Memo.id(text) : Memo.text(text)
}

/** Whether the intent pays whom the order names: account and memo, or a muxed address, whose id its tag repeats. */
export function isStellarPayee(
  { payment }: StellarIntent,
  { kind, destination, destinationTag, refundAddress }: Authority,
): boolean {
  if (kind === 'filler') return payment === null
  if (payment === null || kind === 'sweep') return false
  const named =
    kind === 'payout' ? { to: destination, tag: destinationTag } : { to: refundAddress, tag: null }
  if (payment.to !== named.to) return false
  if (!StrKey.isValidMed25519PublicKey(payment.to)) return payment.memo === named.tag
  const id = MuxedAccount.fromAddress(payment.to, '0').id()
  return payment.memo === null && (named.tag === null || named.tag === id)
}
