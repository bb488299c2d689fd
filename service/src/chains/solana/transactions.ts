import type { Fields } from '../replies.ts'
import { integerIn, listIn, objectIn, textIn, unitsIn } from './replies.ts'
import { NoAnswer } from './rpc.ts'

/** What an account holds of a token, as a block tells it. */
export type TokenBalance = {
  /** Which of the transaction's accounts. */
  readonly at: number
  readonly mint: string
  readonly owner: string
  readonly program: string
  readonly units: bigint
}

/** An account that does not hold what it held. `at` is its place in the transaction. */
type Change<Held> = {
  readonly at: number
  readonly address: string
  readonly before: Held
  readonly after: Held
}

/** In lamports. Numbers as JSON tells them: beyond 2^53 they are not exact, and not ours. */
export type CoinChange = Change<number>
/** Null: it was no account of a token then. */
export type TokenChange = Change<TokenBalance | null>

/**
 * What a transaction changed, whether it did what it was to do or only paid for it. What it left as it was is forgotten: most of
 * a block of mainnet, and tens of blocks are remembered.
 */
export type Transaction = {
  readonly txHash: string
  readonly succeeded: boolean
  readonly coins: readonly CoinChange[]
  readonly tokens: readonly TokenChange[]
}

/** With `transactionDetails: 'accounts'`: https://solana.com/docs/rpc/http/getblock */
export function readTransaction(value: unknown): Transaction {
  const { transaction, meta } = objectIn(value, 'transaction')
  const { accountKeys, signatures } = objectIn(transaction, 'transaction')
  const accounts = listIn(accountKeys, 'accountKeys').map((key) =>
    textIn(objectIn(key, 'accountKeys').pubkey, 'accountKeys pubkey'),
  )
  const txHash = textIn(listIn(signatures, 'signatures')[0], 'signatures')
  const balances = readMeta(objectIn(meta, 'meta'), accounts.length)
  const { succeeded } = balances
  return {
    txHash,
    succeeded,
    coins: coinChanges(accounts, balances),
    tokens: tokenChanges(accounts, balances),
  }
}

/** What a transaction found and left, account by account. */
export type Balances = {
  readonly succeeded: boolean
  readonly before: readonly number[]
  readonly after: readonly number[]
  readonly tokensBefore: readonly TokenBalance[]
  readonly tokensAfter: readonly TokenBalance[]
}

function coinChanges(accounts: readonly string[], { before, after }: Balances): readonly CoinChange[] {
  return accounts.flatMap((address, at) => {
    const [was, is] = [before[at] ?? 0, after[at] ?? 0]
    return was === is ? [] : [{ at, address, before: was, after: is }]
  })
}

function tokenChanges(
  accounts: readonly string[],
  { tokensBefore, tokensAfter }: Balances,
): readonly TokenChange[] {
  const change = (before: TokenBalance | null, after: TokenBalance | null): readonly TokenChange[] => {
    const at = after?.at ?? before?.at ?? 0
    return isSame(before, after) ? [] : [{ at, address: accounts[at] ?? '', before, after }]
  }
  const foundIn = (balances: readonly TokenBalance[], { at }: TokenBalance) =>
    balances.find((each) => each.at === at) ?? null
  return [
    ...tokensAfter.flatMap((after) => change(foundIn(tokensBefore, after), after)),
    ...tokensBefore.flatMap((before) => (foundIn(tokensAfter, before) === null ? change(before, null) : [])),
  ]
}

function isSame(one: TokenBalance | null, other: TokenBalance | null): boolean {
  return (
    one?.units === other?.units &&
    one?.mint === other?.mint &&
    one?.owner === other?.owner &&
    one?.program === other?.program
  )
}

/** `err` is there and null when all went well: where it is not there, nobody says so. */
export function hasSucceeded(meta: Fields): boolean {
  if (meta.err === undefined) throw new NoAnswer('meta', 'it does not say what became of the transaction')
  return meta.err === null
}

export function readMeta(meta: Fields, accounts: number): Balances {
  const balances = (value: unknown, what: string) => {
    const list = listIn(value, what).filter((each): each is number => typeof each === 'number')
    if (list.length !== accounts) throw new NoAnswer(what, 'there should be one for each account')
    return list
  }
  return {
    succeeded: hasSucceeded(meta),
    before: balances(meta.preBalances, 'meta preBalances'),
    after: balances(meta.postBalances, 'meta postBalances'),
    tokensBefore: listIn(meta.preTokenBalances, 'meta preTokenBalances').map(readToken),
    tokensAfter: listIn(meta.postTokenBalances, 'meta postTokenBalances').map(readToken),
  }
}

/** Whole or not at all: what does not say whose it is may be ours. Blocks of the first years do not, and are never read. */
function readToken(value: unknown): TokenBalance {
  const { accountIndex, mint, owner, programId, uiTokenAmount } = objectIn(value, 'token balance')
  return {
    at: integerIn(accountIndex, 'token accountIndex'),
    mint: textIn(mint, 'token mint'),
    owner: textIn(owner, 'token owner'),
    program: textIn(programId, 'token programId'),
    units: unitsIn(objectIn(uiTokenAmount, 'token uiTokenAmount').amount, 'token amount'),
  }
}
