import type { Chance } from '../../harness/chance.ts'
import type { KnownExchange } from './known_exchange.ts'
import type { Operation } from './operations.ts'
import { type Entry, text } from './request.ts'
import type { Right } from './right.ts'
import { makeRight } from './right_requests.ts'

type Values = (known: KnownExchange, chance: Chance) => readonly Entry[]

const network: Values = ({ addresses }, chance) => [['network', text(chance.pick(Object.keys(addresses)))]]

/** What the sandbox lets anybody do, taken as far as it lets them. */
const extremes: Readonly<Record<string, Values>> = {
  sandboxPay: (_, chance) => [
    ['amount', chance.pick(['0.00000001', '0.000000000000000001', '1', '999999999999999', '123456.789'])],
  ],
  sandboxMine: (known, chance) => [...network(known, chance), ['blocks', chance.pick(['1', '20', '100'])]],
  sandboxReorg: (known, chance) => [
    ...network(known, chance),
    ['depth', chance.pick(['1', '6', '40', '100'])],
  ],
  sandboxPrices: ({ pairs }, chance) => [
    ['code', text(chance.pick(pairs).from.currency)],
    chance.pick<Entry>([
      ...['0.000000000001', '0.01', '1', '65000', '999999999999999'].map((usd): Entry => ['usd', usd]),
      ...['-99.999999', '-50', '100', '99999999'].map((by): Entry => ['change_percent', by]),
    ]),
  ],
  sandboxClock: (_, chance) => [['advance_seconds', chance.pick(['60', '3600', '31536000'])]],
}

/**
 * A right request in a world that nobody keeps still: what comes of it is for the service to say, as long as it says it
 * as the document has it. Null for an operation that cannot be taken far.
 */
export function makeWild(operation: Operation, known: KnownExchange, chance: Chance): Right | null {
  const values = extremes[operation.id]
  if (values === undefined) return null
  const right = makeRight(operation, known, chance)
  return { ...right, what: `${right.what}, taken far`, form: { ...right.form, body: values(known, chance) } }
}
