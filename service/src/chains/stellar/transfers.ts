import { type AssetId, nativeAsset } from '../../domain/catalog/assets.ts'
import { fromChainUnits } from '../../domain/money/amount.ts'
import type { FindOurs, Transfer } from '../chain.ts'
import { isId, parsePlace, textOf } from './address.ts'
import { type Fields, NoAnswer } from './horizon.ts'
import { type Movement, movementsIn } from './movements.ts'

/**
 * What really reached us: successful operations only, by what arrived and not by what was sent. Whose it is says the id
 * of a muxed address, or a memo that is a number, for wallets that know no muxed addresses; where they disagree, nobody
 * is meant. An id that was never given to anybody, and none at all, is the account itself.
 */
export async function transfersToOurs(
  payments: readonly Fields[],
  findOurs: FindOurs,
): Promise<readonly Transfer[]> {
  const moved = payments.flatMap(movementsIn).filter(({ from, to }) => from !== to)
  const places = moved.map((movement) => ({ ...movement, named: nameOf(movement) }))
  const ours = await findOurs([...new Set(places.flatMap(({ named, to }) => [named, to]))])
  const native: AssetId = nativeAsset('XLM').id
  return places.flatMap(({ id, txHash, to, named, asset, stroops }): Transfer[] => {
    const known = [named, to].find((text) => ours.has(text))
    if (known === undefined || stroops === 0n) return []
    if (asset !== null) return [{ id, txHash, to: known, asset: { unlisted: asset }, units: stroops }]
    return [{ id, txHash, to: known, asset: native, units: fromChainUnits(native, stroops).units }]
  })
}

function nameOf({ to, toMuxed, memo }: Movement): string {
  const inside = toMuxed === null ? null : idIn(toMuxed, to)
  const beside = memo === null ? null : numberIn(memo)
  if (inside !== null && beside !== null && inside !== beside) return to
  // A contract is the account of nobody; what it is called does not matter.
  const id = inside ?? beside
  return id === null || !to.startsWith('G') ? to : textOf({ account: to, id })
}

function idIn(muxed: string, account: string): string | null {
  const place = parsePlace(muxed)
  if (!place.ok || place.value.account !== account)
    throw new NoAnswer('payments', `${muxed} is no address of ${account}`)
  return place.value.id
}

/** A note in words says nothing about whom the money is for. */
function numberIn({ type, text }: NonNullable<Movement['memo']>): string | null {
  if (text === null || (type !== 'id' && type !== 'text')) return null
  return isId(text) ? text : null
}
