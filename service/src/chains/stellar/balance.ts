import type { AssetId } from '../../domain/catalog/assets.ts'
import { fromChainUnits } from '../../domain/money/amount.ts'
import { readAccount } from './account.ts'
import { type Horizon, NoAnswer } from './horizon.ts'
import { endOf, head, ledgerOf } from './ledger.ts'
import { movementsIn } from './movements.ts'
import { bigintIn, integerIn, readAll, textIn } from './replies.ts'

/** Ledger units. Many addresses may be one account, which is asked once. */
export async function balance(
  horizon: Horizon,
  asset: AssetId,
  accounts: ReadonlySet<string>,
  height: number | undefined,
): Promise<bigint> {
  const held = await Promise.all(
    [...accounts].map((account) =>
      height === undefined ? balanceNow(horizon, account) : balanceAt(horizon, account, height),
    ),
  )
  return fromChainUnits(
    asset,
    held.reduce((sum, stroops) => sum + stroops, 0n),
  ).units
}

async function balanceNow(horizon: Horizon, id: string): Promise<bigint> {
  return (await readAccount(horizon, id))?.stroops ?? 0n
}

/**
 * Horizon tells the newest balance alone. What happened to the account since is taken back: all of it is in the ledgers
 * up to the one that changed it last.
 */
async function balanceAt(horizon: Horizon, id: string, height: number): Promise<bigint> {
  const newest = await head(horizon)
  if (newest.height < height) throw new NoAnswer('balance', `ledger ${height} is yet to come`)
  const account = await readAccount(horizon, id)
  if (account === null || account.changedAt <= height) return account?.stroops ?? 0n
  const isSince = (operation: unknown) => ledgerOf(bigintIn(operation, 'paging_token')) <= account.changedAt
  const after = endOf(height)
  const payments = await readAll(horizon, `/accounts/${id}/payments?join=transactions`, after)
  const transactions = await readAll(horizon, `/accounts/${id}/transactions?include_failed=true`, after)
  let stroops = account.stroops
  for (const { paging_token: token, ledger, fee_account: payer, fee_charged: fee } of transactions) {
    if (!isSince(token) || textIn(payer, 'fee_account') !== id) continue
    if (integerIn(ledger, 'transaction ledger') > height) stroops += bigintIn(fee, 'fee_charged')
  }
  for (const payment of payments.filter(({ id: operation }) => isSince(operation))) {
    for (const { from, to, moved } of movementsIn(payment)) {
      if (from !== id && to !== id) continue
      const { asset, stroops: arrived, spentStroops } = moved()
      if (to === id && asset === null) stroops -= arrived
      if (from === id) stroops += spentStroops
    }
  }
  return stroops
}
