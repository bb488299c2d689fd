import type { AssetId } from '../../domain/catalog/assets.ts'
import { fromChainUnits } from '../../domain/money/amount.ts'
import type { Fields } from '../replies.ts'
import { readReserves } from './fees.ts'
import { dropsIn, integerIn, objectIn } from './replies.ts'
import { NoAnswer, NodeRefusal, type Rpc } from './rpc.ts'

/** What a node says of an account in a ledger, or null when there is none. */
export async function askAccount(rpc: Rpc, account: string, parameters: Fields): Promise<Fields | null> {
  try {
    return await rpc.call('account_info', { account, ...parameters })
  } catch (error) {
    if (error instanceof NodeRefusal && error.code === 'actNotFound') return null
    throw error
  }
}

/** What a validated ledger has of an account, or null when there is none. `ledger` names one by its index. */
export async function readAccount(
  rpc: Rpc,
  account: string,
  ledger: number | 'validated' = 'validated',
): Promise<Fields | null> {
  const told = await askAccount(rpc, account, { ledger_index: ledger })
  return told && objectIn(told.account_data, 'account_info account_data')
}

/** Ledger units. Many addresses may be one account, which is asked once. */
export async function balance(
  rpc: Rpc,
  asset: AssetId,
  accounts: ReadonlySet<string>,
  height: number | undefined,
): Promise<bigint> {
  const held = await Promise.all(
    [...accounts].map(async (account) => {
      const data = await readAccount(rpc, account, height)
      return data === null ? 0n : dropsIn(data.Balance, 'account_info Balance')
    }),
  )
  return fromChainUnits(
    asset,
    held.reduce((sum, drops) => sum + drops, 0n),
  ).units
}

/** Of what an account holds, what no payment of ours can move: what it has to keep for itself and for what it owns, and the fee. */
export async function lockedDrops(rpc: Rpc, account: string, feeDropsMax: bigint): Promise<bigint> {
  const { base, perObject } = await readReserves(rpc)
  const data = await readAccount(rpc, account)
  const owned = data === null ? 0 : integerIn(data.OwnerCount, 'account_info OwnerCount')
  if (owned < 0) throw new NoAnswer('account_info OwnerCount', 'nobody owns less than nothing')
  return base + BigInt(owned) * perObject + feeDropsMax
}

/** The sequence of the next transaction; an account that was never paid has none yet. */
export async function nextSequence(rpc: Rpc, account: string): Promise<number> {
  const told = await askAccount(rpc, account, { ledger_index: 'validated' })
  return told === null ? 0 : sequenceIn(told)
}

export function sequenceIn({ account_data: data }: Fields): number {
  return integerIn(objectIn(data, 'account_info account_data').Sequence, 'account_info Sequence')
}
