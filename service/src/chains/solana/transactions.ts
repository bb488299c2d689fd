import { integerIn, listIn, objectIn, textIn, unitsIn } from './replies.ts'
import { type Fields, isObject, NoAnswer } from './rpc.ts'

/** What an account holds of a token, as a block tells it. */
export type TokenBalance = {
  /** Which of the transaction's accounts. */
  readonly at: number
  readonly mint: string
  readonly owner: string
  readonly program: string
  readonly units: bigint
}

/** What a transaction left behind, whether it did what it was to do or only paid for it. */
export type Transaction = {
  readonly txHash: string
  readonly succeeded: boolean
  readonly accounts: readonly string[]
  /** In lamports, account by account. Numbers as JSON tells them: beyond 2^53 they are not exact, and not ours. */
  readonly before: readonly number[]
  readonly after: readonly number[]
  readonly tokensBefore: readonly TokenBalance[]
  readonly tokensAfter: readonly TokenBalance[]
}

/** With `transactionDetails: 'accounts'`: https://solana.com/docs/rpc/http/getblock */
export function readTransaction(value: unknown): Transaction {
  const { transaction, meta } = objectIn(value, 'transaction')
  const { accountKeys, signatures } = objectIn(transaction, 'transaction')
  const accounts = listIn(accountKeys, 'accountKeys').map((key) =>
    textIn(objectIn(key, 'accountKeys').pubkey, 'accountKeys pubkey'),
  )
  const txHash = textIn(listIn(signatures, 'signatures')[0], 'signatures')
  return { txHash, accounts, ...readMeta(objectIn(meta, 'meta'), accounts.length) }
}

/** `err` is there and null when all went well: where it is not there, nobody says so. */
export function hasSucceeded(meta: Fields): boolean {
  if (meta.err === undefined) throw new NoAnswer('meta', 'it does not say what became of the transaction')
  return meta.err === null
}

export function readMeta(meta: Fields, accounts: number) {
  const balances = (value: unknown, what: string) => {
    const list = listIn(value, what).filter((each): each is number => typeof each === 'number')
    if (list.length !== accounts) throw new NoAnswer(what, 'there should be one for each account')
    return list
  }
  return {
    succeeded: hasSucceeded(meta),
    before: balances(meta.preBalances, 'meta preBalances'),
    after: balances(meta.postBalances, 'meta postBalances'),
    tokensBefore: listIn(meta.preTokenBalances, 'meta preTokenBalances').flatMap(readToken),
    tokensAfter: listIn(meta.postTokenBalances, 'meta postTokenBalances').flatMap(readToken),
  }
}

/** Blocks of the first years do not say whose a token is; nothing of ours is in them. */
function readToken(value: unknown): readonly TokenBalance[] {
  const { accountIndex, mint, owner, programId, uiTokenAmount } = objectIn(value, 'token balance')
  if (owner === undefined || !isObject(uiTokenAmount)) return []
  return [
    {
      at: integerIn(accountIndex, 'token accountIndex'),
      mint: textIn(mint, 'token mint'),
      owner: textIn(owner, 'token owner'),
      program: textIn(programId, 'token programId'),
      units: unitsIn(uiTokenAmount.amount, 'token amount'),
    },
  ]
}
