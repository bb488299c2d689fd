import type { AssetId } from '../../domain/catalog/assets.ts'
import { fromChainUnits } from '../../domain/money/amount.ts'
import { type Account, inPortions, readAccounts, readHolding } from './accounts.ts'
import { holdingOf } from './address.ts'
import type { Blocks } from './blocks.ts'
import { lamportsIn } from './replies.ts'
import type { Reward } from './rewards.ts'
import { NoAnswer, type Rpc } from './rpc.ts'
import type { Transaction } from './transactions.ts'

/** Further than a node and its watcher are ever apart. */
const SLOTS_APART_MAX = 200

/** Where the money of an address lies: for coin in its account, for a token in the associated one. */
type Place = { readonly address: string; readonly owner: string }

/**
 * A node knows what an account holds in the newest final slot. At any other it is that, and what the blocks between say that
 * it held before or after.
 */
export async function balance(
  { rpc, blocks }: { readonly rpc: Rpc; readonly blocks: Blocks },
  asset: AssetId,
  /** The token's mint; null for SOL. */
  mint: string | null,
  addresses: readonly string[],
  height: number | undefined,
): Promise<bigint> {
  const places = await placesOf(mint, [...new Set(addresses)])
  const owners = new Map(places.map(({ address, owner }) => [address, owner]))
  let sum = 0n
  for (const portion of inPortions([...owners.keys()])) {
    const { slot, accounts } = await readAccounts(rpc, portion)
    const held = new Map(
      portion.map((address, index) => [
        address,
        unitsOf(accounts[index] ?? null, mint, owners.get(address) ?? ''),
      ]),
    )
    if (height !== undefined) await move(blocks, held, mint, slot, height)
    sum += [...held.values()].reduce((total, units) => total + units, 0n)
  }
  return fromChainUnits(asset, sum).units
}

/** One after the other: deriving a hundred at once would keep everybody else waiting. */
async function placesOf(mint: string | null, owners: readonly string[]): Promise<readonly Place[]> {
  const places: Place[] = []
  for (const owner of owners) {
    places.push({ owner, address: mint === null ? owner : await holdingOf(owner, mint) })
  }
  return places
}

function unitsOf(account: Account | null, mint: string | null, owner: string): bigint {
  if (account === null) return 0n
  return mint === null ? account.lamports : (readHolding(account, mint, owner)?.units ?? 0n)
}

/** From what is held in slot `from` to what is held in slot `to`, whichever of them is the later one. */
async function move(
  blocks: Blocks,
  held: Map<string, bigint>,
  mint: string | null,
  from: number,
  to: number,
): Promise<void> {
  const [lower, upper] = from < to ? [from, to] : [to, from]
  if (upper - lower > SLOTS_APART_MAX)
    throw new NoAnswer('balance', `slot ${to} is too far from the newest, ${from}`)
  const isBack = to < from
  for (let step = 0; step < upper - lower; step += 1) {
    const slot = isBack ? upper - step : lower + 1 + step
    const block = await blocks.at(slot)
    if (block === null) throw new NoAnswer('balance', `slot ${slot} is not final yet`)
    const transactions = isBack ? block.transactions.toReversed() : block.transactions
    if (mint === null) followRewards(held, block.rewards, isBack ? 'at the end' : 'before', isBack)
    for (const transaction of transactions) follow(held, transaction, mint, isBack)
    if (mint === null) followRewards(held, block.rewards, isBack ? 'before' : 'at the end', isBack)
  }
}

/** Transactions tell what was held before and after them, and rewards how much came. */
function followRewards(
  held: Map<string, bigint>,
  rewards: readonly Reward[],
  when: 'before' | 'at the end',
  isBack: boolean,
): void {
  for (const { address, lamports, isAtEnd } of rewards) {
    const units = held.get(address)
    if (units === undefined || isAtEnd !== (when === 'at the end')) continue
    const came =
      lamports < 0 ? -lamportsIn(-lamports, 'reward lamports') : lamportsIn(lamports, 'reward lamports')
    held.set(address, isBack ? units - came : units + came)
  }
}

function follow(
  held: Map<string, bigint>,
  { coins, tokens }: Transaction,
  mint: string | null,
  isBack: boolean,
): void {
  if (mint === null) {
    for (const { address, before, after } of coins)
      if (held.has(address)) held.set(address, lamportsIn(isBack ? before : after, 'balances'))
    return
  }
  for (const { address, before, after } of tokens) {
    const balance = isBack ? before : after
    if (held.has(address)) held.set(address, balance?.mint === mint ? balance.units : 0n)
  }
}
