import { variableOf } from '../../../config/variables.ts'
import { assert } from '../../../domain/assert.ts'
import { isVenueId, type VenueId } from '../venues.ts'

/** The venues that are asked where nobody names others; each has to be one that we know how to ask. */
export const defaultVenues: readonly VenueId[] = String(variableOf('CAMBIST_PRICE_VENUES').default)
  .split(',')
  .map((name) => {
    assert(isVenueId(name), `${name} is a venue`)
    return name
  })
