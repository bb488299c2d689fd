import type { Chain } from '../chains/chain.ts'
import type { Asset } from '../domain/catalog/assets.ts'
import { accept, type Outcome, type Rejection, refuse } from '../domain/outcome.ts'
import type { CreateRequest, DeskRejection } from './desk.ts'
import type { DeskWorld } from './world.ts'

/** The canonical text of an address that a client gave for an asset in `field`. Spec 4.3, rules 2 and 4. */
export function readAddress(
  world: DeskWorld,
  asset: Asset,
  text: string,
  field: string,
): Outcome<string, DeskRejection> {
  const chain = findChain(world, asset)
  if (!chain.ok) return chain
  const address = chain.value.parseAddress(text)
  return address.ok ? address : refuse(invalid(asset, field, address.rejection))
}

/**
 * Where a payout goes. Where many share an account, the tag says who: beside the address or inside it. Everywhere else
 * one that is given is ignored (spec 4.3, rule 6).
 */
export function readDestination(
  world: DeskWorld,
  asset: Asset,
  { destination, destinationTag }: Pick<CreateRequest, 'destination' | 'destinationTag'>,
): Outcome<{ readonly address: string; readonly tag: string | null }, DeskRejection> {
  const chain = findChain(world, asset)
  if (!chain.ok) return chain
  if (chain.value.parseTagged === undefined) {
    const address = readAddress(world, asset, destination, 'destination')
    return address.ok ? accept({ address: address.value, tag: destinationTag }) : address
  }
  const place = chain.value.parseTagged(destination, destinationTag)
  if (place.ok) return place
  const { code, message } = place.rejection
  switch (code) {
    case 'tag_required':
      return refuse({
        code: 'DESTINATION_TAG_REQUIRED',
        message,
        details: [{ field: 'destination_tag', message }],
      })
    case 'tag_malformed': {
      const problem = `destination_tag ${message}`
      return refuse({
        code: 'INVALID_ADDRESS',
        message: problem,
        details: [{ field: 'destination_tag', message: problem }],
      })
    }
    default:
      return refuse(invalid(asset, 'destination', place.rejection))
  }
}

function findChain(world: DeskWorld, { chain, network }: Asset): Outcome<Chain, DeskRejection> {
  const found = world.chains.get(chain)
  if (found !== undefined) return accept(found)
  return refuse({
    code: 'MAINTENANCE',
    message: `${network} is not available at the moment; try again later`,
  })
}

function invalid({ network }: Asset, field: string, { message: why }: Rejection): DeskRejection {
  const message = `${field} is not a valid ${network} address: ${why}`
  return { code: 'INVALID_ADDRESS', message, details: [{ field, message }] }
}
