import { type AssetId, nativeAsset } from '../../domain/catalog/assets.ts'
import { fromChainUnits } from '../../domain/money/amount.ts'
import { isStellarId } from '../../domain/payouts/stellar_memo.ts'
import type { FindOurs, Transfer } from '../chain.ts'
import type { Fields } from '../replies.ts'
import { readPlace, textOf } from './address.ts'
import { NoAnswer } from './horizon.ts'
import { type Movement, movementsIn } from './movements.ts'

/**
 * What really reached us: successful operations only, by what arrived and not by what was sent. Whose it is says the id
 * of a muxed address, or a memo that is a number, for wallets that know no muxed addresses; where they disagree, nobody
 * is meant. An id that was never given to anybody, and none at all, is the account itself. What concerns strangers alone is
 * not read: anybody may write there what we do not know.
 */
export async function transfersToOurs(
  payments: readonly Fields[],
  findOurs: FindOurs,
): Promise<readonly Transfer[]> {
  const arrivals = payments
    .flatMap(movementsIn)
    .filter(({ from, to }) => from !== to)
    .map((movement) => ({ movement, texts: textsOf(movement) }))
  const ours = await findOurs([...new Set(arrivals.flatMap(({ texts }) => texts))])
  return arrivals
    .filter(({ texts }) => texts.some((text) => ours.has(text)))
    .flatMap(({ movement }) => readArrival(movement, ours))
}

/** Every name under which our table of addresses may have the payee. */
function textsOf({ to, toMuxed, memo }: Movement): readonly string[] {
  const id = memo === null ? null : numberIn(memo)
  const texts = toMuxed === null ? [to] : [to, toMuxed]
  // A contract is the account of nobody; what it is called does not matter.
  return id === null || readPlace(to) === null ? texts : [...texts, textOf({ account: to, id })]
}

/** Strict: of what is ours, what cannot be read is an error and never nothing. */
function readArrival(movement: Movement, ours: ReadonlySet<string>): readonly Transfer[] {
  const { id, txHash } = movement
  const to = [nameOf(movement), movement.to].find((text) => ours.has(text))
  if (to === undefined) return []
  const { asset, stroops } = movement.moved()
  if (stroops === 0n) return []
  if (asset !== null) return [{ id, txHash, to, asset: { unlisted: asset }, units: stroops }]
  const native: AssetId = nativeAsset('XLM').id
  return [{ id, txHash, to, asset: native, units: fromChainUnits(native, stroops).units }]
}

function nameOf({ to, toMuxed, memo }: Movement): string {
  const inside = toMuxed === null ? null : idIn(toMuxed, to)
  const beside = memo === null ? null : numberIn(memo)
  if (inside !== null && beside !== null && inside !== beside) return to
  const id = inside ?? beside
  return id === null ? to : textOf({ account: to, id })
}

function idIn(muxed: string, account: string): string | null {
  const place = readPlace(muxed)
  if (place === null || place.account !== account)
    throw new NoAnswer('payments', `${muxed} is no address of ${account}`)
  return place.id
}

/** A note in words says nothing about whom the money is for. */
function numberIn({ type, text }: NonNullable<Movement['memo']>): string | null {
  if (text === null || (type !== 'id' && type !== 'text')) return null
  return isStellarId(text) ? text : null
}
