import type { Chain } from '../../chains/chain.ts'
import type { Asset } from '../../domain/catalog/assets.ts'
import { accept, type Rejection, refuse } from '../../domain/outcome.ts'
import { houseAddressFinder } from '../house_addresses.ts'
import type { DeskWorld } from '../world.ts'
import { aboutField } from './about_field.ts'
import type { CreateRequest, DeskOutcome, DeskRejection } from './desk.ts'

/** Addresses that clients give, in their canonical text. Spec 4.3, rules 2, 4 and 6. */
export type AddressReader = {
  /** That an asset can be paid to; it was given in `field`. */
  readonly readAddress: (asset: Asset, text: string, field: string) => Promise<DeskOutcome<string>>
  /**
   * Where a payout goes. Where many share an account, the tag says who: beside the address or inside it. Everywhere else
   * one that is given is ignored.
   */
  readonly readDestination: (asset: Asset, given: Given) => Promise<DeskOutcome<Place>>
}

type Given = Pick<CreateRequest, 'destination' | 'destinationTag'>
type Place = { readonly address: string; readonly tag: string | null }

export function addressReader(world: DeskWorld): AddressReader {
  const isHouseAddress = houseAddressFinder(world)
  // Whatever tag stands with it: our account does not pay itself.
  const isHouse = ({ family, accountOf }: Chain, address: string) =>
    isHouseAddress(family, accountOf?.(address) ?? address)

  const readAddress: AddressReader['readAddress'] = async (asset, text, field) => {
    const chain = findChain(world, asset)
    if (!chain.ok) return chain
    const address = chain.value.parseAddress(text)
    if (!address.ok) return refuse(invalid(asset, field, address.rejection))
    return (await isHouse(chain.value, address.value)) ? refuse(ours(field)) : address
  }

  return {
    readAddress,
    readDestination: async (asset, { destination, destinationTag }) => {
      const chain = findChain(world, asset)
      if (!chain.ok) return chain
      if (chain.value.parseTagged === undefined) {
        const address = await readAddress(asset, destination, 'destination')
        return address.ok ? accept({ address: address.value, tag: destinationTag }) : address
      }
      const place = chain.value.parseTagged(destination, destinationTag)
      if (!place.ok) return refuse(untold(asset, place.rejection))
      return (await isHouse(chain.value, place.value.address)) ? refuse(ours('destination')) : place
    },
  }
}

/** Why address and tag do not say who is to be paid. */
function untold(asset: Asset, rejection: Rejection): DeskRejection {
  const { code, message } = rejection
  switch (code) {
    case 'tag_required':
      return aboutField('DESTINATION_TAG_REQUIRED', 'destination_tag', `is required: ${message}`)
    case 'tag_malformed':
      return aboutField('INVALID_ADDRESS', 'destination_tag', message)
    default:
      return invalid(asset, 'destination', rejection)
  }
}

function findChain(world: DeskWorld, { chain, network }: Asset): DeskOutcome<Chain> {
  const found = world.chains.get(chain)
  if (found !== undefined) return accept(found)
  return refuse({
    code: 'MAINTENANCE',
    message: `${network} is not available at the moment; try again later`,
  })
}

function invalid({ network }: Asset, field: string, { message: why }: Rejection): DeskRejection {
  return aboutField('INVALID_ADDRESS', field, `is not a valid ${network} address: ${why}`)
}

function ours(field: string): DeskRejection {
  return aboutField('INVALID_ADDRESS', field, 'cannot be an address of the exchange itself')
}
