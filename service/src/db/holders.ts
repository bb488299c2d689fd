import { type AssetId, assetIdsOn } from '../domain/catalog/assets.ts'
import { type ChainId, chainFacts, depositsLie } from '../domain/catalog/networks.ts'
import type { InstantMs } from '../domain/time.ts'
import { reserveAddresses } from './addresses.ts'
import type { Sql } from './database.ts'
import { LIVE } from './outflows.ts'
import { readTurn } from './reconciliations.ts'
import {
  findQuiet,
  type QuietAddress,
  type RestingBalance,
  readRestingBalances,
  readRestingSums,
} from './resting.ts'

/**
 * Who is asked what a chain holds. `turn`: whoever may hold more or less than before, and a few of all others, whose
 * turn has come; the rest hold what they held when they were asked last. `all`: every address of ours.
 */
export type AddressScope =
  | {
      readonly kind: 'turn'
      readonly nowMs: InstantMs
      /** Deposits stay where they are for good: no sweep has to be waited for. */
      readonly neverSwept: boolean
    }
  | { readonly kind: 'all' }

/** The addresses of one chain, each in at most one of the lists, and what is known of those in none. */
export type Holders = {
  /** May hold more or less than a moment ago. */
  readonly awake: readonly string[]
  /** Account chains: could go to rest with what they hold. */
  readonly quiet: readonly QuietAddress[]
  /** Hold what is known of them, and nothing without that, as far as anybody was told. */
  readonly inTurn: readonly string[]
  readonly knownInTurn: readonly RestingBalance[]
  /** What everybody else of the chain holds by what is known. */
  readonly known: ReadonlyMap<AssetId, bigint>
  /** Where the next turn begins. */
  readonly nextIndex: number
}

export async function readHolders(tx: Sql, chain: ChainId, scope: AddressScope): Promise<Holders> {
  if (scope.kind === 'all') return everybody(tx, chain)
  const lie = depositsLie[chainFacts[chain].family]
  if (lie === 'tags') return nobodyBut(await readReserve(tx, chain))
  const { awake, quiet } =
    lie === 'coins' ? await readCoinHolders(tx, chain) : await readAccounts(tx, chain, scope)
  const asked = new Set([...awake, ...quiet.map(({ address }) => address)])
  const turn = await readTurnOfKeys(tx, chain)
  const inTurn = [...new Set([...(await readWaiting(tx, chain)), ...turn.addresses])].filter(
    (address) => !asked.has(address),
  )
  const known = new Map((await readRestingSums(tx, chain)).map(({ asset, units }) => [asset, units]))
  for (const { asset, units } of await readRestingBalances(tx, chain, [...asked, ...inTurn])) {
    known.set(asset, (known.get(asset) ?? 0n) - units)
  }
  const knownInTurn = await readRestingBalances(tx, chain, inTurn)
  return { awake, quiet, inTurn, knownInTurn, known, nextIndex: turn.nextIndex }
}

async function everybody(tx: Sql, chain: ChainId): Promise<Holders> {
  const { family } = chainFacts[chain]
  if (depositsLie[family] === 'tags') return nobodyBut(await readReserve(tx, chain))
  const rows = await tx.query<Row>('SELECT address FROM addresses WHERE family = $1', [family])
  return nobodyBut(rows.map(({ address }) => address))
}

type Row = { readonly address: string }

/** Where tags tell deposits apart, this is the one account that holds everything. */
function readReserve(tx: Sql, chain: ChainId): Promise<readonly string[]> {
  return reserveAddresses(tx, chainFacts[chain].family)
}

function nobodyBut(awake: readonly string[]): Holders {
  return { awake, quiet: [], inTurn: [], knownInTurn: [], known: new Map(), nextIndex: 0 }
}

/** Of the orders that wait for money, so many of the newest: a deposit there that nobody told of shows at once. */
const WAITING_MAX = 200

async function readWaiting(tx: Sql, chain: ChainId): Promise<readonly string[]> {
  const rows = await tx.query<Row>(
    `SELECT deposit_address AS address FROM orders WHERE status = 'NEW' AND from_asset = ANY($1)
     ORDER BY expires_at_ms DESC LIMIT $2`,
    [assetIdsOn(chain), WAITING_MAX],
  )
  return rows.map(({ address }) => address)
}

/** On a coin chain our own list of coins says where money lies; everywhere else there is nothing. */
async function readCoinHolders(tx: Sql, chain: ChainId): Promise<Pick<Holders, 'awake' | 'quiet'>> {
  const rows = await tx.query<Row>(
    `SELECT address FROM addresses WHERE family = $2 AND purpose = 'reserve'
     UNION SELECT address FROM coins WHERE chain = $1 AND spent_by IS NULL
     UNION SELECT c.address FROM outflows o JOIN coins c ON c.chain = o.chain AND c.spent_by = o.payout_id
       WHERE o.chain = $1 AND o.state IN ${LIVE}`,
    [chain, chainFacts[chain].family],
  )
  return { awake: rows.map(({ address }) => address), quiet: [] }
}

/** So many go to rest after a comparison; each may have to be asked by itself. */
const QUIET_MAX = 300

/** On an account chain: where something was booked and is not at rest, and where something is on its way to be booked. */
async function readAccounts(
  tx: Sql,
  chain: ChainId,
  rest: { readonly nowMs: InstantMs; readonly neverSwept: boolean },
): Promise<Pick<Holders, 'awake' | 'quiet'>> {
  const arriving = await tx.query<Row>(
    `SELECT o.deposit_address AS address FROM deposits d JOIN orders o USING (bucket, order_id)
       WHERE d.chain = $1 AND d.state = 'seen'
     UNION SELECT o.deposit_address FROM deposits d JOIN orders o USING (bucket, order_id)
       WHERE d.chain = $1 AND d.state = 'mined'
     UNION SELECT address FROM house_deposits WHERE chain = $1 AND state = 'mined'`,
    [chain],
  )
  const others = await tx.query<Row>(
    `SELECT address FROM addresses WHERE family = $2 AND purpose = 'reserve'
     UNION SELECT address FROM unswept_addresses WHERE chain = $1 AND NOT is_resting`,
    [chain, chainFacts[chain].family],
  )
  const awake = new Set([...arriving, ...others].map(({ address }) => address))
  const busy = new Set(arriving.map(({ address }) => address))
  const quiet = (await findQuiet(tx, chain, rest, QUIET_MAX)).filter(({ address }) => !busy.has(address))
  for (const { address } of quiet) awake.delete(address)
  return { awake: [...awake], quiet }
}

const INDEXES_A_TURN = 100

/** The addresses of the next so many keys; after the last key the turn begins anew. */
async function readTurnOfKeys(tx: Sql, chain: ChainId) {
  const { family } = chainFacts[chain]
  const { nextIndex: firstIndex } = await readTurn(tx, chain)
  const rows = await tx.query<Row>(
    `SELECT address FROM addresses
     WHERE family = $1 AND purpose IN ('deposit', 'change') AND key_index >= $2 AND key_index < $3`,
    [family, firstIndex, firstIndex + INDEXES_A_TURN],
  )
  return {
    addresses: rows.map(({ address }) => address),
    nextIndex: rows.length === 0 ? 0 : firstIndex + INDEXES_A_TURN,
  }
}
