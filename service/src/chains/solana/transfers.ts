import type { AssetId } from '../../domain/catalog/assets.ts'
import { fromChainUnits } from '../../domain/money/amount.ts'
import type { FindOurs, Transfer } from '../chain.ts'
import { holdingOf, TOKEN_PROGRAM } from './address.ts'
import { lamportsIn } from './replies.ts'
import type { TokenBalance, Transaction } from './transactions.ts'

export type Listed = {
  readonly native: AssetId
  /** Listed assets by their mint. */
  readonly tokens: ReadonlyMap<string, AssetId>
}

/**
 * What reached us: what accounts of ours hold more of after a transaction that succeeded than before, whatever program moved
 * it. Of a token only what lies where a wallet keeps it (its associated account) is ours to move; anything else that says
 * it is ours is told as unlisted.
 */
export async function transfersToOurs(
  transactions: readonly Transaction[],
  listed: Listed,
  findOurs: FindOurs,
): Promise<readonly Transfer[]> {
  const good = transactions.filter(({ succeeded }) => succeeded)
  const grown = good.map((transaction) => ({
    transaction,
    coins: transaction.accounts.flatMap((_, at) =>
      (transaction.after[at] ?? 0) > (transaction.before[at] ?? 0) ? [at] : [],
    ),
    tokens: transaction.tokensAfter.filter((now) => now.units > unitsBefore(transaction, now)),
  }))
  const candidates = new Set(
    grown.flatMap(({ transaction, coins, tokens }) => [
      ...coins.map((at) => transaction.accounts[at] ?? ''),
      ...tokens.map(({ owner }) => owner),
    ]),
  )
  if (candidates.size === 0) return []
  const ours = await findOurs([...candidates])
  const transfers: Transfer[] = []
  for (const { transaction, coins, tokens } of grown) {
    for (const at of coins)
      if (ours.has(transaction.accounts[at] ?? '')) transfers.push(coinTransfer(transaction, at, listed))
    for (const token of tokens)
      if (ours.has(token.owner)) transfers.push(await tokenTransfer(transaction, token, listed))
  }
  return transfers
}

/** Nothing, when it was another token or another owner's before: what was there then was not ours. */
function unitsBefore({ tokensBefore }: Transaction, { at, mint, owner }: TokenBalance): bigint {
  const before = tokensBefore.find((each) => each.at === at)
  return before?.mint === mint && before.owner === owner ? before.units : 0n
}

function coinTransfer(
  { txHash, accounts, before, after }: Transaction,
  at: number,
  { native }: Listed,
): Transfer {
  const lamports = lamportsIn(after[at], 'postBalances') - lamportsIn(before[at], 'preBalances')
  const { units } = fromChainUnits(native, lamports)
  return { id: `${txHash}:sol:${at}`, txHash, to: accounts[at] ?? '', asset: native, units }
}

async function tokenTransfer(
  transaction: Transaction,
  token: TokenBalance,
  { tokens }: Listed,
): Promise<Transfer> {
  const { txHash, accounts } = transaction
  const { at, mint, owner: to, program } = token
  const units = token.units - unitsBefore(transaction, token)
  const asset = program === TOKEN_PROGRAM ? tokens.get(mint) : undefined
  const id = `${txHash}:token:${at}`
  if (asset === undefined) return { id, txHash, to, asset: { unlisted: mint }, units }
  const place = accounts[at] ?? ''
  if (place !== (await holdingOf(to, mint)))
    return { id, txHash, to, asset: { unlisted: `${mint} in ${place}` }, units }
  return { id, txHash, to, asset, units: fromChainUnits(asset, units).units }
}
