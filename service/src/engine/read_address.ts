import type { Asset } from '../domain/catalog/assets.ts'
import { type Outcome, refuse } from '../domain/outcome.ts'
import type { DeskRejection } from './desk.ts'
import type { DeskWorld } from './world.ts'

/** The canonical text of an address that a client gave for an asset in `field`. Spec 4.3, rules 2 and 4. */
export function readAddress(
  world: DeskWorld,
  asset: Asset,
  text: string,
  field: string,
): Outcome<string, DeskRejection> {
  const chain = world.chains.get(asset.chain)
  if (chain === undefined) {
    return refuse({
      code: 'MAINTENANCE',
      message: `${asset.network} is not available at the moment; try again later`,
    })
  }
  const address = chain.parseAddress(text)
  if (address.ok) return address
  const message = `${field} is not a valid ${asset.network} address: ${address.rejection.message}`
  return refuse({ code: 'INVALID_ADDRESS', message, details: [{ field, message }] })
}
