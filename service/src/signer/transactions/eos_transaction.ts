import {
  type ABIDef,
  Asset,
  Bytes,
  Int64,
  KeyType,
  PackedTransaction,
  PrivateKey,
  Serializer,
  SignedTransaction,
  Transaction,
} from '@wharfkit/antelope'
import { accept, type Outcome } from '../../domain/outcome.ts'
import { EOS_MEMO_BYTES_MAX, EOS_TOKEN_CONTRACT } from '../../domain/payouts/eos_transfer.ts'
import type { EosIntent, SignedTx } from '../../domain/payouts/intent.ts'
import type { Keys } from '../derivation.ts'
import { refuseToSign } from '../rejections.ts'
import type { EosSettings } from '../settings.ts'
import type { SignRejection } from '../signer.ts'

/** https://github.com/AntelopeIO/reference-contracts, eosio.token: nothing but its `transfer` is ever called. */
const TRANSFER: ABIDef = {
  structs: [
    {
      name: 'transfer',
      base: '',
      fields: [
        { name: 'from', type: 'name' },
        { name: 'to', type: 'name' },
        { name: 'quantity', type: 'asset' },
        { name: 'memo', type: 'string' },
      ],
    },
  ],
}

/** What the chain takes at most: https://github.com/AntelopeIO/leap, config.hpp, default_max_trx_lifetime */
const LIFE_MS_MAX = 3_600_000
const SECOND_MS = 1_000
/**
 * A transfer takes less than one. Whoever is paid may run code of theirs in it, on the CPU of our account: without a limit one
 * payout could take the 150 of a whole transaction, and a few of them all that the account has for a day.
 */
const CPU_MS_MAX = 5

/** A transfer of EOS out of our account. The same every time (the library looks for the first canonical signature). */
export function signEos(
  intent: EosIntent,
  keys: Keys,
  settings: EosSettings | undefined,
): Outcome<SignedTx, SignRejection> {
  if (settings === undefined) return refuseToSign('malformed', 'EOS is not configured')
  const problem = findProblem(intent, settings)
  if (problem !== null) return refuseToSign('malformed', problem)
  const key = privateKeyOf(keys)
  if (!key.toPublic().equals(settings.publicKey))
    return refuseToSign('malformed', `our key is ${key.toPublic()}, and the account is there for another`)
  const transaction = transactionOf(intent)
  const signature = key.signDigest(transaction.signingDigest(intent.chainId))
  const signed = SignedTransaction.from({ ...transaction, signatures: [signature] })
  const bytes = Serializer.encode({ object: PackedTransaction.fromSigned(signed, 0) }).hexString
  return accept({ txHash: String(transaction.id), bytes })
}

function findProblem(
  { chainId, account, from, payment, reference, expirationMs }: EosIntent,
  settings: EosSettings,
): string | null {
  if (chainId !== settings.chainId) return `intent.chainId is not ${settings.chainId}`
  if (account !== settings.account) return `intent.account is not ${settings.account}`
  if (from.purpose !== 'reserve' || from.index !== 0)
    return 'intent.from: everything leaves from the account of the reserve'
  if (Buffer.byteLength(payment.memo) > EOS_MEMO_BYTES_MAX)
    return `intent.payment.memo has more than ${EOS_MEMO_BYTES_MAX} bytes`
  if (expirationMs % SECOND_MS !== 0) return 'intent.expirationMs is of whole seconds'
  const lifeMs = expirationMs - reference.timeMs
  return lifeMs > 0 && lifeMs <= LIFE_MS_MAX
    ? null
    : 'intent.expirationMs is within an hour after intent.reference'
}

/** A block is referred to by the end of its number and the middle of its id: TAPOS, https://docs.antelope.io/docs/latest/advanced-topics/transactions-protocol */
function transactionOf({ account, payment, reference, expirationMs, netWordsMax }: EosIntent): Transaction {
  const { to, memo, units } = payment
  const params = { from: account, to, quantity: Asset.fromUnits(Int64.from(String(units)), '4,EOS'), memo }
  const id = Buffer.from(reference.id, 'hex')
  return Transaction.from({
    expiration: new Date(expirationMs).toISOString().slice(0, 19),
    ref_block_num: id.readUInt16BE(2),
    ref_block_prefix: id.readUInt32LE(8),
    max_net_usage_words: netWordsMax,
    max_cpu_usage_ms: CPU_MS_MAX,
    context_free_actions: [],
    actions: [
      {
        account: EOS_TOKEN_CONTRACT,
        name: 'transfer',
        authorization: [{ actor: account, permission: 'active' }],
        data: Serializer.encode({ object: params, type: 'transfer', abi: TRANSFER }),
      },
    ],
  })
}

/** What the account has to obey. */
export function eosPublicKey(keys: Keys): string {
  return String(privateKeyOf(keys).toPublic())
}

function privateKeyOf(keys: Keys): PrivateKey {
  return new PrivateKey(KeyType.K1, Bytes.from(keys.privateKey('eos', { purpose: 'reserve', index: 0 })))
}
