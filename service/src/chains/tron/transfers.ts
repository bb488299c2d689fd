import type { AssetId } from '../../domain/catalog/assets.ts'
import { fromChainUnits } from '../../domain/money/amount.ts'
import type { FindOurs, Transfer } from '../chain.ts'
import { base58Of } from './address.ts'
import type { Move } from './moves.ts'

export type Listed = {
  readonly native: AssetId
  /** Listed assets by their contract in hex. */
  readonly tokens: ReadonlyMap<string, AssetId>
}

/**
 * What reached us. Of a listed token its contract's word is enough, unlike on EVM chains: a node knows balances of now and
 * of the solid block only, so that none of this block can be asked for. The operator lists the contract; and what the solid
 * block says that everybody holds is compared with the books (balance.ts), so that a word without money stops outflows.
 */
export async function transfersToOurs(
  moves: readonly Move[],
  listed: Listed,
  findOurs: FindOurs,
): Promise<readonly Transfer[]> {
  const texts = new Map(moves.map(({ to }) => [to, base58Of(to)]))
  const ours = texts.size === 0 ? new Set<string>() : await findOurs([...new Set(texts.values())])
  return moves.flatMap((move): Transfer[] => {
    const to = texts.get(move.to) ?? ''
    return ours.has(to) ? [transferOf(move, to, listed)] : []
  })
}

function transferOf({ id, txHash, token, units }: Move, to: string, { native, tokens }: Listed): Transfer {
  const asset = token === null ? native : tokens.get(token)
  if (asset !== undefined) return { id, txHash, to, asset, units: fromChainUnits(asset, units()).units }
  const unlisted = token?.startsWith('41') ? base58Of(token) : (token ?? '')
  return { id, txHash, to, asset: { unlisted }, units: units() }
}
