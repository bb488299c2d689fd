import { Account, Keypair, Operation, TransactionBuilder, xdr } from '@stellar/stellar-sdk/base'
import { expect, test } from 'vitest'
import type { TxStatus } from '../chain.ts'
import { broadcast } from './broadcast.ts'
import { NoAnswer } from './horizon.ts'
import { ledgerAt, pageOf, type Script, scriptedHorizon } from './testing/scripted_horizon.ts'

const passphrase = 'Standalone Network ; February 2017'
const keys = Keypair.master(passphrase)
const MAX_TIME_S = 1_060
const SEQUENCE = 8n

const transaction = new TransactionBuilder(new Account(keys.publicKey(), String(SEQUENCE - 1n)), {
  fee: '100',
  networkPassphrase: passphrase,
  timebounds: { minTime: 0, maxTime: MAX_TIME_S },
})
  .addOperation(Operation.bumpSequence({ bumpTo: '0' }))
  .build()
const txHash = Buffer.from(transaction.hash()).toString('hex')
const bytes = Buffer.from(transaction.toEnvelope().toXdr('base64'), 'base64').toString('hex')

function refusedBy(code: 'txBadSeq' | 'txTooLate' | 'txInsufficientFee' | 'txBadAuth' | 'txInternalError') {
  const result = new xdr.TransactionResult({
    feeCharged: 0n,
    result: xdr.TransactionResultResult[code](),
    ext: xdr.TransactionResultExt.v0(),
  })
  return { tx_status: 'ERROR', hash: txHash, error_result_xdr: result.toXdr('base64') }
}

/** The newest ledger closed so many seconds into our minute, and our account is at a sequence. */
const seen = (second: number, sequence: bigint): Script => ({
  '/ledgers': pageOf(ledgerAt(second)),
  [`/accounts/${keys.publicKey()}`]: () => ({
    account_id: keys.publicKey(),
    sequence: String(sequence),
    last_modified_ledger: 1,
    subentry_count: 0,
    balances: [{ asset_type: 'native', balance: '10.0000000' }],
  }),
})
const absent: TxStatus = { where: 'absent' }
const waiting: TxStatus = { where: 'mempool' }
const silent = () => {
  throw new NoAnswer('it', 'cut')
}
const status = (tx_status: string) => () => ({ tx_status, hash: txHash })

test.each<[string, string, () => unknown, Script, TxStatus | (() => never)]>([
  ['accepted', 'it waits', status('PENDING'), {}, absent],
  ['accepted', 'it waits already', status('DUPLICATE'), {}, absent],
  ['unknown', 'another of ours waits', status('TRY_AGAIN_LATER'), {}, absent],
  ['accepted', 'a ledger has just taken it', status('TRY_AGAIN_LATER'), {}, waiting],
  ['unknown', 'nobody can say whether one has', status('TRY_AGAIN_LATER'), {}, silent],
  ['unknown', 'a word that nobody knows', status('NEW'), {}, absent],
  ['unknown', 'no answer', silent, {}, absent],
  ['unknown', 'an answer about another one', () => ({ tx_status: 'PENDING', hash: 'ab' }), {}, absent],
  [
    'unknown',
    'a problem of Horizon itself',
    () => ({ title: 'Rate Limit Exceeded', status: 429 }),
    {},
    absent,
  ],
  ['refused', 'the fee is too low', () => refusedBy('txInsufficientFee'), {}, absent],
  ['refused', 'the signature is wrong', () => refusedBy('txBadAuth'), {}, absent],
  ['unknown', 'the network failed', () => refusedBy('txInternalError'), {}, absent],
  ['unknown', 'its result is none', () => ({ ...refusedBy('txBadSeq'), error_result_xdr: '' }), {}, absent],
  ['accepted', 'its sequence is used by itself', () => refusedBy('txBadSeq'), seen(1, 8n), waiting],
  ['refused', 'its sequence is used by another', () => refusedBy('txBadSeq'), seen(1, 8n), absent],
  ['unknown', 'an earlier one is missing', () => refusedBy('txBadSeq'), seen(1, 6n), absent],
  ['unknown', 'Horizon is behind its network', () => refusedBy('txTooLate'), seen(60, 7n), absent],
  ['refused', 'its time is over', () => refusedBy('txTooLate'), seen(61, 7n), absent],
  [
    'accepted',
    'its time is over, and it is in a ledger',
    () => refusedBy('txTooLate'),
    seen(61, 8n),
    waiting,
  ],
  [
    'unknown',
    'it is used, and then nobody can say by whom',
    () => refusedBy('txBadSeq'),
    seen(1, 8n),
    silent,
  ],
])('%s: %s', async (answer, _, said, script, found) => {
  const sender = {
    horizon: scriptedHorizon(script, said),
    passphrase,
    lookup: async () => (typeof found === 'function' ? found() : found),
  }
  expect(await broadcast(sender, { txHash, bytes })).toBe(answer)
})
