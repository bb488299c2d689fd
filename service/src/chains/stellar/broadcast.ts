import { Transaction, xdr } from '@stellar/stellar-sdk/base'
import { assert } from '../../domain/assert.ts'
import type { SignedTx } from '../../domain/payouts/intent.ts'
import type { TxStatus } from '../chain.ts'
import type { Fields } from '../replies.ts'
import { readAccount } from './account.ts'
import { type Horizon, NoAnswer } from './horizon.ts'
import { head } from './ledger.ts'
import { textIn } from './replies.ts'

export type Sender = {
  readonly horizon: Horizon
  readonly passphrase: string
  lookup(txHash: string): Promise<TxStatus>
}

/**
 * Told at once, not when a ledger closes:
 * https://developers.stellar.org/docs/data/apis/horizon/api-reference/resources/submit-async-transaction
 * An account has one transaction waiting: what comes meanwhile is told to come again, and nobody says whether these bytes
 * waited before. What a ledger has taken is told the same for nine ledgers (stellar-core, `TransactionQueue`), and so is what was dropped.
 */
export async function broadcast(
  sender: Sender,
  { txHash, bytes }: SignedTx,
): Promise<'accepted' | 'refused' | 'unknown'> {
  const envelope = Buffer.from(bytes, 'hex').toString('base64')
  try {
    const said = await sender.horizon.submit(envelope)
    if (said.hash !== txHash) return 'unknown'
    switch (said.tx_status) {
      case 'PENDING':
      case 'DUPLICATE':
        return 'accepted'
      case 'TRY_AGAIN_LATER':
        return (await sender.lookup(txHash)).where === 'absent' ? 'unknown' : 'accepted'
      case 'ERROR':
        return await judge(sender, txHash, envelope, codeOf(said))
      default:
        return 'unknown'
    }
  } catch (error) {
    if (error instanceof NoAnswer) return 'unknown'
    throw error
  }
}

function codeOf({ error_result_xdr: bytes }: Fields): string {
  const text = textIn(bytes, 'error_result_xdr')
  try {
    return xdr.TransactionResult.fromXdr(text, 'base64').result.type
  } catch {
    throw new NoAnswer('transactions_async', 'its result is none')
  }
}

/** The sequence is used, or the time is over: by this very transaction, or without it. */
const MAYBE_IN_A_LEDGER = new Set(['txBadSeq', 'txTooLate'])
/** Nobody knows why. */
const UNCLEAR = new Set(['txInternalError', 'txSuccess', 'txFeeBumpInnerSuccess'])

async function judge(
  { horizon, passphrase, lookup }: Sender,
  txHash: string,
  envelope: string,
  code: string,
): Promise<'accepted' | 'refused' | 'unknown'> {
  if (UNCLEAR.has(code)) return 'unknown'
  if (!MAYBE_IN_A_LEDGER.has(code)) return 'refused'
  // First what Horizon has seen, then whether this was in it: the other way round it may come in between.
  const isPast = await couldNotBeAnyMore(horizon, new Transaction(envelope, passphrase))
  if ((await lookup(txHash)).where !== 'absent') return 'accepted'
  return isPast ? 'refused' : 'unknown'
}

/** Horizon may be behind the network that refuses: it has to have seen the time or the sequence pass. */
async function couldNotBeAnyMore(
  horizon: Horizon,
  { timeBounds, sequence, source }: Transaction,
): Promise<boolean> {
  assert(timeBounds !== undefined, 'what we sign ends')
  const { closedAtS } = await head(horizon)
  if (BigInt(closedAtS) > BigInt(timeBounds.maxTime)) return true
  const account = await readAccount(horizon, source)
  return account !== null && account.sequence >= BigInt(sequence)
}
