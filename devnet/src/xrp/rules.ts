import { ledgerHash, transactionTreeHash } from 'ripple-binary-codec/dist/ledger-hashes.js'
import { deriveAddress, deriveKeypair } from 'ripple-keypairs'
import type { Block, Included, OpenBlock, Rules } from '../simulated/chain.ts'
import type { Change } from '../simulated/state.ts'
import type { XrpTransaction } from './decode_transaction.ts'
import { accountKey, type LedgerEntry, sha512Half } from './entries.ts'
import type { Metadata } from './metadata.ts'
import { mayGetIn, runTransaction } from './run_transaction.ts'

/** https://xrpl.org/docs/references/protocol/ledger-data/ledger-header */
export type LedgerHeader = {
  readonly hash: string
  readonly transaction_hash: string
  readonly account_hash: string
  readonly total_coins: string
  readonly close_time: number
  readonly parent_close_time: number
}

export type Xrp = { entry: LedgerEntry; tx: XrpTransaction; result: Metadata; seal: LedgerHeader }
export type Ledger = Block<Xrp>

/** Above 1024, so every transaction has to name it, and none of another network is valid here. */
export const NETWORK_ID = 31_344

/** Holds everything at first, on every XRP Ledger: its secret is `masterpassphrase`. */
export const genesisKeys = deriveKeypair('snoPBrXtMeMyMHUVTgbuqAfg1SUTb')
export const genesisAccount = deriveAddress(genesisKeys.publicKey)
const ALL_DROPS = 100_000_000_000_000_000n

/** Between the start of our time and of theirs, 2000-01-01. */
const RIPPLE_EPOCH_SECONDS = 946_684_800
export const CLOSE_TIME_RESOLUTION = 10

export const xrpRules: Rules<Xrp> = {
  firstHeight: 1,
  blockStepMs: 1_000,
  afterReorg: 'no reorganisations',
  genesis: (state) =>
    state.set(accountKey(genesisAccount), {
      LedgerEntryType: 'AccountRoot',
      Account: genesisAccount,
      Balance: String(ALL_DROPS),
      Flags: 0,
      OwnerCount: 0,
      Sequence: 1,
    }),
  run: (tx, draft, place) => {
    const { from = 0, until = Number.POSITIVE_INFINITY } = tx.held ?? {}
    if (place.height < from) return 'waits'
    if (place.height > until) return 'void'
    const { code, metadata } = runTransaction(tx, draft, place, NETWORK_ID)
    if (metadata !== undefined) return { included: metadata }
    const isTooLate = place.height >= (tx.fields.LastLedgerSequence ?? Number.POSITIVE_INFINITY)
    return mayGetIn(code) && !isTooLate ? 'waits' : 'void'
  },
  seal: (block, draft, parent) => closeLedger(block, parent, draft.changes()),
}

function closeLedger(
  block: OpenBlock<Xrp>,
  parent: Ledger | undefined,
  changes: readonly Change<LedgerEntry>[],
): LedgerHeader {
  const burnt = block.included.reduce((sum, { tx }) => sum + BigInt(tx.fields.Fee), 0n)
  const close_time = Math.floor(block.timeMs / 1000) - RIPPLE_EPOCH_SECONDS
  const header = {
    transaction_hash: transactionsHash(block.included),
    account_hash: changesHash(parent?.seal.account_hash ?? '', changes),
    total_coins: String(BigInt(parent?.seal.total_coins ?? ALL_DROPS) - burnt),
    close_time,
    parent_close_time: parent?.seal.close_time ?? close_time,
  }
  const hash = ledgerHash({
    ...header,
    ledger_index: block.height,
    parent_hash: block.parentHash,
    close_time_resolution: CLOSE_TIME_RESOLUTION,
    close_flags: 0,
  })
  return { ...header, hash: hash.toHex() }
}

function transactionsHash(included: readonly Included<Xrp>[]): string {
  const items = included.map(({ tx, result }) => ({ ...tx.fields, hash: tx.id, metaData: result }))
  return transactionTreeHash(items as never).toHex()
}

/** Not the hash of the tree of all accounts: of the hash before and what changed since. */
function changesHash(before: string, changes: readonly Change<LedgerEntry>[]): string {
  return sha512Half(before, Buffer.from(JSON.stringify(changes)).toString('hex'))
}
