import type { AssetId } from '../../domain/catalog/assets.ts'
import { fromChainUnits } from '../../domain/money/amount.ts'
import type { Fields } from '../replies.ts'
import { hexOf } from './address.ts'
import type { Blocks, Header, TronBlock } from './blocks.ts'
import { addressIn, isEmpty, listIn, objectIn, sunIn, textIn } from './replies.ts'
import { NoAnswer, type Rpc } from './rpc.ts'

/** Further than a node and its watcher are ever apart. */
const BLOCKS_APART_MAX = 200
const TRIES = 5
const AT_ONCE = 8

/** So many are asked about one solid block, which is the newest for three seconds. */
const ASKED_OF_ONE_BLOCK = 100

type Reader = { readonly rpc: Rpc; readonly blocks: Blocks }

/**
 * A node knows what an address holds now, with everything that waits, and what it holds in the solid block; of no block
 * between. So this is the state of the solid block, and what the blocks from there to `height` have moved; of the next addresses
 * the solid block may be another one. No answer names its block (`balanceLagBlocks`).
 */
export async function balance(
  reader: Reader,
  asset: AssetId,
  /** The token's contract in hex; null for TRX. */
  token: string | null,
  addresses: readonly string[],
  height: number | undefined,
): Promise<bigint> {
  const { blocks } = reader
  const holders = [...new Set(addresses.map(hexOf))]
  const target = height === undefined ? await blocks.newest('head') : await blocks.header(height)
  if (target === null) throw new NoAnswer('balance', `there is no block ${height} yet`)
  let units = 0n
  for (let at = 0; at < holders.length; at += ASKED_OF_ONE_BLOCK) {
    units += await heldAt(reader, token, holders.slice(at, at + ASKED_OF_ONE_BLOCK), target)
  }
  return fromChainUnits(asset, units).units
}

async function heldAt(
  { rpc, blocks }: Reader,
  token: string | null,
  holders: readonly string[],
  target: Header,
): Promise<bigint> {
  const { solid, held } = await heldAtSolid(rpc, blocks, token, holders)
  const later = target.height >= solid.height
  const between = await blocksBetween(blocks, later ? solid : target, later ? target : solid)
  const moved = between.reduce((sum, block) => sum + movedIn(block, token, new Set(holders)), 0n)
  return later ? held + moved : held - moved
}

async function heldAtSolid(rpc: Rpc, blocks: Blocks, token: string | null, holders: readonly string[]) {
  for (let tried = 0; tried < TRIES; tried += 1) {
    const solid = await blocks.newest('solid')
    let held = 0n
    for (let at = 0; at < holders.length; at += AT_ONCE) {
      const asked = holders.slice(at, at + AT_ONCE)
      const answers = await Promise.all(asked.map((holder) => heldBy(rpc, token, holder)))
      held += answers.reduce((sum, units) => sum + units, 0n)
    }
    if ((await blocks.newest('solid')).hash === solid.hash) return { solid, held }
  }
  throw new NoAnswer('balance', 'the solid block moves on faster than balances can be asked for')
}

function heldBy(rpc: Rpc, token: string | null, holder: string): Promise<bigint> {
  return token === null ? heldSun(rpc, holder) : heldUnits(rpc, 'walletsolidity', token, holder)
}

async function heldSun(rpc: Rpc, holder: string): Promise<bigint> {
  const account = await readAccount(rpc, 'walletsolidity', holder)
  return account === null ? 0n : sunIn(account.balance, 'account balance')
}

/** Null: nobody ever made it an account. */
export async function readAccount(
  rpc: Rpc,
  end: 'wallet' | 'walletsolidity',
  holder: string,
): Promise<Fields | null> {
  const answer = await rpc.get(`${end}/getaccount`, { address: holder })
  if (isEmpty(answer)) return null
  const account = objectIn(answer, 'account')
  if (addressIn(account.address, 'account address') !== holder)
    throw new NoAnswer('getaccount', 'it is another one')
  return account
}

export async function heldUnits(
  rpc: Rpc,
  end: 'wallet' | 'walletsolidity',
  token: string,
  holder: string,
): Promise<bigint> {
  const answer = await callConstantly(rpc, end, holder, token, `70a08231${wordOf(holder)}`)
  return wordIn(answer, `balance in ${token}`)
}

/** What a call would do, without doing it: https://developers.tron.network/reference/triggerconstantcontract */
export async function callConstantly(
  rpc: Rpc,
  end: 'wallet' | 'walletsolidity',
  owner: string,
  contract: string,
  data: string,
): Promise<Fields> {
  const body = { owner_address: owner, contract_address: contract, data, call_value: 0 }
  return objectIn(await rpc.post(`${end}/triggerconstantcontract`, body), 'triggerconstantcontract')
}

export function wordIn(answer: Fields, what: string): bigint {
  const [word] = listIn(answer.constant_result, what)
  const text = textIn(word, what)
  if (!/^[0-9a-f]{64}$/.test(text)) throw new NoAnswer(what, 'the contract does not answer as a token does')
  return BigInt(`0x${text}`)
}

/** An argument of a call: the last 20 bytes of an address. */
export function wordOf(address: string): string {
  return address.slice(2).padStart(64, '0')
}

/** Those above `lower`, up to `upper` and with it, each the parent of the next. */
async function blocksBetween(blocks: Blocks, lower: Header, upper: Header): Promise<readonly TronBlock[]> {
  if (upper.height - lower.height > BLOCKS_APART_MAX)
    throw new NoAnswer('balance', `block ${upper.height} is too far from the solid block`)
  const between: TronBlock[] = []
  let next = { height: upper.height, hash: upper.hash }
  while (next.height > lower.height) {
    const block = await blocks.named(next)
    between.push(block)
    next = { height: block.height - 1, hash: block.parentHash }
  }
  if (next.hash !== lower.hash) throw new NoAnswer('balance', 'the chain changed: ask again')
  return between
}

function movedIn({ moves, costs }: TronBlock, token: string | null, holders: ReadonlySet<string>): bigint {
  let sum = 0n
  for (const move of moves) {
    if (move.token !== token) continue
    if (holders.has(move.to)) sum += move.units()
    if (holders.has(move.from)) sum -= move.units()
  }
  if (token !== null) return sum
  return costs.reduce(
    (left, { owner, sun }) => (owner !== null && holders.has(owner) ? left - sun : left),
    sum,
  )
}
