import { base58 } from '@scure/base'
import type { Included } from '../simulated/chain.ts'
import { decodeTransaction } from './decode_transaction.ts'
import type { Account } from './entries.ts'
import { type Solana, type SolanaBlock, slotOf } from './rules.ts'
import type { TokenBalance } from './run_transaction.ts'
import { uiAmount } from './token_accounts.ts'

const JSON_NUMBER_MAX = BigInt(Number.MAX_SAFE_INTEGER)

/** A node tells lamports as JSON numbers. Nobody here holds more than one says exactly. */
export function numberOf(lamports: bigint): number {
  if (lamports > JSON_NUMBER_MAX) throw new Error(`${lamports} lamports are no exact number`)
  return Number(lamports)
}

export function accountAnswer(account: Account | undefined) {
  if (account === undefined) return null
  const { lamports, owner, data } = account
  return {
    data: [data, 'base64'],
    executable: false,
    lamports: numberOf(lamports),
    owner,
    rentEpoch: 0,
    space: Buffer.from(data, 'base64').length,
  }
}

function tokenAnswer({ accountIndex, mint, owner, programId, units, decimals }: TokenBalance) {
  return { accountIndex, mint, owner, programId, uiTokenAmount: uiAmount(units, decimals) }
}

type Details = 'full' | 'accounts' | 'signatures' | 'none'

function statusOf(err: unknown) {
  return err === null ? { Ok: null } : { Err: err }
}

export function transactionAnswer({ tx, result }: Included<Solana>, details: 'full' | 'accounts') {
  const decoded = decodeTransaction(tx.wire)
  const meta = {
    err: result.err,
    status: statusOf(result.err),
    fee: numberOf(result.fee),
    preBalances: result.preBalances.map(numberOf),
    postBalances: result.postBalances.map(numberOf),
    preTokenBalances: result.preTokenBalances.map(tokenAnswer),
    postTokenBalances: result.postTokenBalances.map(tokenAnswer),
  }
  if (details === 'accounts') {
    const accountKeys = decoded.accounts.map(({ address, signer, writable }) => ({
      pubkey: address,
      signer,
      writable,
      source: 'transaction',
    }))
    return { meta, transaction: { accountKeys, signatures: decoded.signatures }, version: decoded.version }
  }
  const { header } = decoded
  return {
    meta: {
      ...meta,
      computeUnitsConsumed: result.unitsConsumed,
      innerInstructions: [],
      loadedAddresses: { readonly: [], writable: [] },
      logMessages: result.logs,
      rewards: [],
    },
    transaction: {
      message: {
        accountKeys: decoded.accounts.map(({ address }) => address),
        header: {
          numRequiredSignatures: header.signers,
          numReadonlySignedAccounts: header.readonlySigners,
          numReadonlyUnsignedAccounts: header.readonlyOthers,
        },
        instructions: decoded.instructions.map(({ program, accounts, data }) => ({
          programIdIndex: program,
          accounts,
          data: base58.encode(data),
          stackHeight: null,
        })),
        recentBlockhash: decoded.blockhash,
      },
      signatures: decoded.signatures,
    },
    version: decoded.version,
  }
}

/** Nobody earns anything here, so that there are never any rewards. */
export function blockAnswer(block: SolanaBlock, details: Details, withRewards: boolean) {
  const { height, parentHash, seal, timeMs, included } = block
  return {
    blockHeight: height,
    blockTime: Math.floor(timeMs / 1000),
    blockhash: seal.hash,
    parentSlot: height === 0 ? 0 : slotOf(height - 1),
    previousBlockhash: height === 0 ? '1'.repeat(32) : parentHash,
    ...(details === 'signatures' && { signatures: included.map(({ tx }) => tx.id) }),
    ...((details === 'full' || details === 'accounts') && {
      transactions: included.map((each) => transactionAnswer(each, details)),
    }),
    ...(withRewards && { rewards: [] }),
  }
}

export function statusAnswer({ result, block }: Included<Solana> & { block: SolanaBlock }, isFinal: boolean) {
  return {
    slot: slotOf(block.height),
    confirmations: isFinal ? null : 0,
    err: result.err,
    status: statusOf(result.err),
    confirmationStatus: isFinal ? 'finalized' : 'confirmed',
  }
}
