import type { AssetId } from '../../domain/catalog/assets.ts'
import { fromChainUnits } from '../../domain/money/amount.ts'
import type { FindOurs, Transfer } from '../chain.ts'
import { holdingOf, TOKEN_PROGRAM } from './address.ts'
import type { SolanaBlock } from './blocks.ts'
import { lamportsIn } from './replies.ts'
import type { Reward } from './rewards.ts'
import type { CoinChange, TokenBalance, TokenChange } from './transactions.ts'

export type Listed = {
  readonly native: AssetId
  /** Listed assets by their mint. */
  readonly tokens: ReadonlyMap<string, AssetId>
}

/**
 * What reached us: what accounts of ours hold more of after a transaction that succeeded than before, whatever program moved
 * it. Of a token only what lies where a wallet keeps it (its associated account) is ours to move; anything else that says
 * it is ours is told as unlisted. What the block gives by itself is told as the block's: no transaction brought it.
 */
export async function transfersToOurs(
  { hash, transactions, rewards }: Pick<SolanaBlock, 'hash' | 'transactions' | 'rewards'>,
  listed: Listed,
  findOurs: FindOurs,
): Promise<readonly Transfer[]> {
  const grown = transactions
    .filter(({ succeeded }) => succeeded)
    .map(({ txHash, coins, tokens }) => ({
      txHash,
      coins: coins.filter(({ before, after }) => after > before),
      tokens: tokens.flatMap(growthOf),
    }))
  const given = rewards.filter(({ lamports }) => lamports > 0)
  const candidates = new Set([
    ...given.map(({ address }) => address),
    ...grown.flatMap(({ coins, tokens }) => [
      ...coins.map(({ address }) => address),
      ...tokens.map(({ owner }) => owner),
    ]),
  ])
  if (candidates.size === 0) return []
  const ours = await findOurs([...candidates])
  const transfers = given
    .filter(({ address }) => ours.has(address))
    .map((reward) => rewardTransfer(hash, reward, listed))
  for (const { txHash, coins, tokens } of grown) {
    for (const coin of coins) if (ours.has(coin.address)) transfers.push(coinTransfer(txHash, coin, listed))
    for (const token of tokens)
      if (ours.has(token.owner)) transfers.push(await tokenTransfer(txHash, token, listed))
  }
  return transfers
}

type Growth = TokenBalance & { readonly address: string }

/** `units` is how much more it is. What was another token or another owner's before was not ours. */
function growthOf({ address, before, after }: TokenChange): readonly Growth[] {
  if (after === null) return []
  const isSameHolding = before?.mint === after.mint && before.owner === after.owner
  const units = after.units - (isSameHolding ? before.units : 0n)
  return units > 0n ? [{ ...after, address, units }] : []
}

function coinTransfer(
  txHash: string,
  { at, address, before, after }: CoinChange,
  { native }: Listed,
): Transfer {
  const lamports = lamportsIn(after, 'postBalances') - lamportsIn(before, 'preBalances')
  const { units } = fromChainUnits(native, lamports)
  return { id: `${txHash}:sol:${at}`, txHash, to: address, asset: native, units }
}

function rewardTransfer(txHash: string, { at, address, lamports }: Reward, { native }: Listed): Transfer {
  const { units } = fromChainUnits(native, lamportsIn(lamports, 'reward lamports'))
  return { id: `${txHash}:reward:${at}`, txHash, to: address, asset: native, units, isOfBlock: true }
}

async function tokenTransfer(txHash: string, token: Growth, { tokens }: Listed): Promise<Transfer> {
  const { at, address, mint, owner: to, program, units } = token
  const asset = program === TOKEN_PROGRAM ? tokens.get(mint) : undefined
  const id = `${txHash}:token:${at}`
  if (asset === undefined) return { id, txHash, to, asset: { unlisted: mint }, units }
  if (address !== (await holdingOf(to, mint)))
    return { id, txHash, to, asset: { unlisted: `${mint} in ${address}` }, units }
  return { id, txHash, to, asset, units: fromChainUnits(asset, units).units }
}
