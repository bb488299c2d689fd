import type { Chance } from '../../harness/chance.ts'
import type { KnownExchange } from './known_exchange.ts'
import type { Operation } from './operations.ts'
import { type Case, type Expected, sendableOf } from './request.ts'
import type { Right } from './right.ts'
import { makeRight, pickOperation } from './right_requests.ts'
import { spoilForm } from './spoilers.ts'
import { makeWild } from './wild_requests.ts'
import { spoilWire } from './wire_spoilers.ts'

const SPOILED_SHARE = 0.7

/**
 * `calm`: it is known what has to come of each request. `wild`: prices, time and chains go to their ends meanwhile, and
 * all that is known is that the service does not fail.
 */
export type Weather = 'calm' | 'wild'

export type GeneratedCase = { readonly made: Case; readonly right: Right }

/** One request, right or spoiled in one place, and the right one that it was made from. */
export function generateCase(
  operations: readonly Operation[],
  known: KnownExchange,
  chance: Chance,
  weather: Weather,
): GeneratedCase {
  const operation = pickOperation(operations, chance)
  const wild = weather === 'wild' ? makeWild(operation, known, chance) : null
  const right = wild ?? makeRight(operation, known, chance)
  const made = chance.happens(SPOILED_SHARE) ? spoil(operation, right, chance) : asItIs(operation, right)
  return { made: weather === 'wild' ? { ...made, expected: 'either' } : made, right }
}

export function asItIs(operation: Operation, { what, form, expected, signer }: Right): Case {
  return { operation: operation.id, what, expected, request: sendableOf({ ...form, operation }), signer }
}

function spoil(operation: Operation, right: Right, chance: Chance): Case {
  const whole = asItIs(operation, right)
  for (let tries = 0; tries < TRIES; tries += 1) {
    const inForm = chance.happens(0.5) ? spoilForm({ ...right.form, operation }, chance) : null
    const spoilt =
      inForm === null ? spoilWire(whole.request, chance) : { ...inForm, spoilt: sendableOf(inForm.spoilt) }
    if (spoilt === null) continue
    const expected = both(right.expected, spoilt.expected)
    // What turns the sandbox's money, blocks, prices or time is right or refused: else nobody knows what holds after it.
    if (movesTheWorld(operation) && expected === 'either') continue
    return { ...whole, what: `${right.what}, but ${spoilt.what}`, expected, request: spoilt.spoilt }
  }
  return whole
}

const TRIES = 20

function both(one: Expected, other: Expected): Expected {
  if (one === 'refusal' || other === 'refusal') return 'refusal'
  return one === 'either' || other === 'either' ? 'either' : 'success'
}

function movesTheWorld({ id, method }: Operation): boolean {
  return id.startsWith('sandbox') && method === 'POST'
}
