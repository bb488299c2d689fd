import type { Draft } from '../simulated/state.ts'
import { type Decoded, decodeTransaction, type SolanaTransaction } from './decode_transaction.ts'
import {
  type Account,
  isSeen,
  keys,
  readAccount,
  readReference,
  type SolanaEntry,
  type SolanaState,
} from './entries.ts'
import { readHolding, readMint, type TokenHolding } from './token_accounts.ts'
import type { Vm } from './vm.ts'

/** A transaction can be in the 151 blocks after the one that it refers to: Agave counts its age from zero to 150. */
export const BLOCKHASH_BLOCKS = 151

export type TokenBalance = TokenHolding & { readonly accountIndex: number; readonly decimals: number }

export type SolanaResult = {
  /** In the words of a node; null when all went well. */
  readonly err: unknown
  readonly fee: bigint
  readonly logs: readonly string[]
  readonly unitsConsumed: number
  readonly preBalances: readonly bigint[]
  readonly postBalances: readonly bigint[]
  readonly preTokenBalances: readonly TokenBalance[]
  readonly postTokenBalances: readonly TokenBalance[]
}

/** It is in no block, and nobody is charged. `err` is what a node calls it. */
export class Refused extends Error {
  readonly err: unknown
  constructor(err: unknown, message: string) {
    super(message)
    this.err = err
  }
}

/** These are found out before anything runs. */
const NEVER_INCLUDED = [
  'AccountNotFound',
  'InsufficientFundsForFee',
  'InvalidAccountForFee',
  'SanitizeFailure',
]

/** Throws Refused when no block takes it. A transaction that fails is included, and charged. */
export function runTransaction(
  tx: SolanaTransaction,
  draft: Draft<SolanaEntry>,
  height: number,
  vm: Vm,
): SolanaResult {
  const decoded = decodeTransaction(tx.wire)
  const reference = readReference(draft, decoded.blockhash)
  if (reference === undefined || height - reference > BLOCKHASH_BLOCKS)
    throw new Refused('BlockhashNotFound', 'Blockhash not found')
  if (isSeen(draft, tx.id))
    throw new Refused('AlreadyProcessed', 'This transaction has already been processed')
  const before = look(draft, decoded)
  const { err, logs, unitsConsumed } = execute(tx, decoded, draft, vm)
  draft.set(keys.seen(tx.id), { height })
  const after = look(draft, decoded)
  return {
    err,
    fee: decoded.fee,
    logs,
    unitsConsumed,
    preBalances: before.lamports,
    postBalances: after.lamports,
    preTokenBalances: before.tokens,
    postTokenBalances: after.tokens,
  }
}

function execute(tx: SolanaTransaction, decoded: Decoded, draft: Draft<SolanaEntry>, vm: Vm) {
  const written = decoded.accounts.filter(({ writable }) => writable).map(({ address }) => address)
  const outcome = vm.run({
    wire: tx.wire,
    accounts: decoded.accounts.map(({ address }) => [address, readAccount(draft, address) ?? null]),
    written,
  })
  if (typeof outcome.err === 'string' && NEVER_INCLUDED.includes(outcome.err))
    throw new Refused(outcome.err, `Transaction simulation failed: ${outcome.err}`)
  const err = outcome.err ?? tx.failWith ?? null
  if (err === null) {
    for (const [index, address] of written.entries()) write(draft, address, outcome.accounts[index] ?? null)
    return outcome
  }
  charge(draft, decoded)
  return { ...outcome, err }
}

function write(draft: Draft<SolanaEntry>, address: string, account: Account | null): void {
  if (account !== null) draft.set(keys.account(address), account)
  else if (readAccount(draft, address) !== undefined) draft.delete(keys.account(address))
}

/** Who pays the fee is the first account, also for what failed. */
function charge(draft: Draft<SolanaEntry>, { accounts, fee }: Decoded): void {
  const payer = accounts[0]?.address ?? ''
  const account = readAccount(draft, payer)
  if (account === undefined || account.lamports < fee)
    throw new Refused('InsufficientFundsForFee', 'Insufficient funds for fee')
  write(draft, payer, account.lamports === fee ? null : { ...account, lamports: account.lamports - fee })
}

function look(state: SolanaState, { accounts }: Decoded) {
  return {
    lamports: accounts.map(({ address }) => readAccount(state, address)?.lamports ?? 0n),
    tokens: accounts.flatMap(({ address }, accountIndex): TokenBalance[] => {
      const holding = readHolding(state, address)
      const mint = holding && readMint(state, holding.mint)
      return holding && mint ? [{ accountIndex, ...holding, decimals: mint.decimals }] : []
    }),
  }
}
