import { createHash } from 'node:crypto'
import { Keypair, xdr } from '@stellar/stellar-sdk/base'
import type { Block, Included, OpenBlock, Rules } from '../simulated/chain.ts'
import type { Change } from '../simulated/state.ts'
import { PASSPHRASE, type StellarTransaction } from './decode_transaction.ts'
import { accountKey, type LedgerEntry } from './entries.ts'
import { BASE_FEE, BASE_RESERVE } from './reserves.ts'
import { runTransaction, type StellarResult } from './run_transaction.ts'

export type LedgerSeal = {
  readonly hash: string
  /** What the hash is made of: https://developers.stellar.org/docs/learn/fundamentals/stellar-data-structures/ledgers */
  readonly headerXdr: string
  /** All fees that were ever paid, in stroops. */
  readonly feePool: bigint
  readonly bucketListHash: string
}

export type Stellar = { entry: LedgerEntry; tx: StellarTransaction; result: StellarResult; seal: LedgerSeal }
export type Ledger = Block<Stellar>

/** Holds everything at first, on every Stellar network: its seed is the hash of the network's name. */
export const genesisKey = Keypair.master(PASSPHRASE)
export const ALL_STROOPS = 1_000_000_000_000_000_000n
/** The least time between two ledgers, by what they say. */
export const LEDGER_MS_MIN = 1_000
export const PROTOCOL_VERSION = 23
export const MAX_TX_SET_SIZE = 1_000

export const stellarRules: Rules<Stellar> = {
  firstHeight: 1,
  blockStepMs: LEDGER_MS_MIN,
  afterReorg: 'no reorganisations',
  genesis: (state) =>
    state.set(accountKey(genesisKey.publicKey()), {
      type: 'account',
      id: genesisKey.publicKey(),
      balance: ALL_STROOPS,
      sequence: 0n,
      sequenceLedger: 1,
      subentries: 0,
      ledger: 1,
    }),
  run: (tx, draft, place) => {
    const outcome = runTransaction(tx, draft, place)
    return 'included' in outcome ? outcome : 'void'
  },
  seal: (block, draft, parent) => closeLedger(block, parent, draft.changes()),
}

function closeLedger(
  block: OpenBlock<Stellar>,
  parent: Ledger | undefined,
  changes: readonly Change<LedgerEntry>[],
): LedgerSeal {
  const fees = block.included.reduce((sum, { result }) => sum + result.feeCharged, 0n)
  const feePool = (parent?.seal.feePool ?? 0n) + fees
  const bucketListHash = changesHash(parent?.seal.bucketListHash ?? '', changes)
  const header = new xdr.LedgerHeader({
    ledgerVersion: PROTOCOL_VERSION,
    previousLedgerHash: Buffer.from(block.parentHash, 'hex'),
    scpValue: new xdr.StellarValue({
      txSetHash: sha256(block.parentHash, ...block.included.map(({ tx }) => tx.envelope)),
      closeTime: BigInt(Math.floor(block.timeMs / 1000)),
      upgrades: [],
      ext: xdr.StellarValueExt.stellarValueBasic(),
    }),
    txSetResultHash: resultsHash(block.included),
    bucketListHash: Buffer.from(bucketListHash, 'hex'),
    ledgerSeq: block.height,
    totalCoins: ALL_STROOPS,
    feePool,
    inflationSeq: 0,
    idPool: 0n,
    baseFee: Number(BASE_FEE),
    baseReserve: Number(BASE_RESERVE),
    maxTxSetSize: MAX_TX_SET_SIZE,
    skipList: Array.from({ length: 4 }, () => Buffer.alloc(32)),
    ext: xdr.LedgerHeaderExt.v0(),
  }).toXdr()
  const headerXdr = Buffer.from(header).toString('base64')
  return { hash: sha256(header).toString('hex'), headerXdr, feePool, bucketListHash }
}

function resultsHash(included: readonly Included<Stellar>[]): Buffer {
  const results = included.map(
    ({ tx, result }) =>
      new xdr.TransactionResultPair({
        transactionHash: Buffer.from(tx.id, 'hex'),
        result: xdr.TransactionResult.fromXdr(result.xdr, 'base64'),
      }),
  )
  return sha256(new xdr.TransactionResultSet({ results }).toXdr())
}

/** Not the hash of all entries: of the hash before and what changed since. */
function changesHash(before: string, changes: readonly Change<LedgerEntry>[]): string {
  const spelt = JSON.stringify(changes, (_key, value) => (typeof value === 'bigint' ? String(value) : value))
  return sha256(before, spelt).toString('hex')
}

function sha256(...parts: readonly (string | Uint8Array)[]): Buffer {
  const hash = createHash('sha256')
  for (const part of parts) hash.update(part)
  return hash.digest()
}
