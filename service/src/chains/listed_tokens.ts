import { assert } from '../domain/assert.ts'
import { type AssetId, assetOf, isAssetId } from '../domain/catalog/assets.ts'
import type { ChainId } from '../domain/catalog/networks.ts'

type Settings = { readonly id: ChainId; readonly tokens: Readonly<Partial<Record<AssetId, string>>> }

/**
 * Assets by contract, each contract in the one spelling that `spell` gives it, or null where it is none. A token of another chain
 * or a contract listed twice is a mistake of the settings.
 */
export function listedTokens(
  { id, tokens }: Settings,
  spell: (contract: string) => string | null,
): ReadonlyMap<string, AssetId> {
  const listed = new Map<string, AssetId>()
  for (const [asset, contract] of Object.entries(tokens)) {
    if (contract === undefined) continue
    assert(isAssetId(asset), `the catalogue has ${asset}`)
    const { chain, isNative } = assetOf(asset)
    assert(chain === id && !isNative, `${asset} is a token on ${id}`)
    const spelt = spell(contract)
    assert(spelt !== null && !listed.has(spelt), `${asset} has a contract of its own, not ${contract}`)
    listed.set(spelt, asset)
  }
  return listed
}
