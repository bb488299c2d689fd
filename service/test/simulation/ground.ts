import { createSecretKey, randomUUID } from 'node:crypto'
import pg from 'pg'
import { insertAddresses } from '../../src/db/addresses.ts'
import { type Database, noLimits, openDatabase, statementName } from '../../src/db/database.ts'
import { migrate } from '../../src/db/migrate.ts'
import { signedTransactions } from '../../src/db/signed_transactions.ts'
import { assert } from '../../src/domain/assert.ts'
import { type AssetId, assetOf, nativeAsset } from '../../src/domain/catalog/assets.ts'
import {
  type AddressFamily,
  type ChainId,
  chainFacts,
  depositsLie,
} from '../../src/domain/catalog/networks.ts'
import { amountOf, toChainUnits } from '../../src/domain/money/amount.ts'
import { leaseKeeper } from '../../src/engine/lease.ts'
import { watchOnce } from '../../src/engine/testing/watch_once.ts'
import { localSigner } from '../../src/signer/local_signer.ts'
import type { SignedStore, Signer } from '../../src/signer/signer.ts'
import type { DatedId, DatedNode } from './chains/dated_node.ts'
import { datedIds } from './chains/dated_rules.ts'
import { simulatedSignerSettings } from './chains/signer_settings.ts'
import { connectSimulated, directLines, openNodes, type SimulatedNodes } from './chains/simulated_chains.ts'
import { type LockWatch, openLockWatch } from './lock_watch.ts'
import { openWorld, quietLog } from './open_world.ts'
import { inSettledOrder } from './row_order.ts'

/** When every schedule begins. */
export const START_MS = 1_800_000_000_000
export const sealKey = createSecretKey(Buffer.alloc(32, 7))
/** Ready for orders and for change; a schedule uses fewer. */
const POOL = 16

/** A database of its own and what every schedule begins with: reserves that are booked, addresses that are ready. */
export type Ground = {
  readonly db: Database
  readonly locks: LockWatch
  readonly reserve: Readonly<Record<AddressFamily, string>>
  /** As the database's owner, who may see and do everything. */
  rows<Row extends object>(sql: string, values?: readonly unknown[]): Promise<Row[]>
  /** The database as it was at the beginning, and nodes to go with it. */
  reset(nowMs: () => number): Promise<SimulatedNodes>
  /** The keys of the house, derived once; it remembers what it signed in whatever `rememberIn` said last. */
  readonly signer: Signer
  rememberIn(store: SignedStore): void
  close(): Promise<void>
}

export async function openGround(serverUrl: string): Promise<Ground> {
  const name = `ground_${randomUUID().replaceAll('-', '')}`
  const url = await createDatabase(serverUrl, name)
  const db = openDatabase({
    url,
    connectionsMax: 40,
    applicationName: name,
    onConnectionLost: () => {},
    limits: noLimits,
  })
  const owner = new pg.Client({ connectionString: url })
  await owner.connect()
  // Foreign keys need no looking after while everything is put back.
  await owner.query('SET session_replication_role = replica')
  let store: SignedStore = signedTransactions(db)
  const signer = localSigner({
    seed: Buffer.alloc(64, 7),
    store: {
      attempts: (id) => store.attempts(id),
      spent: (limit, nowMs) => store.spent(limit, nowMs),
      lastOutflow: (orderId) => store.lastOutflow(orderId),
      insertOnce: (record, limits) => store.insertOnce(record, limits),
    },
    sealKey,
    settings: simulatedSignerSettings,
    clock: { nowMs: () => START_MS },
  })
  const reserve = await readyAddresses(db, signer)
  await bookReserves(db, reserve)
  const reset = await rememberTables(owner)
  const locks = await openLockWatch(url)
  return {
    db,
    locks,
    reserve,
    // Prepared, as the service's own are: what is asked in every round is planned once. So what is left open of the order of rows
    // depends on how large tables were then.
    rows: async (sql, values = []) => {
      const { rows } = await owner.query({ name: statementName(sql), text: sql, values: [...values] })
      return inSettledOrder(sql, rows, (settled) => settled)
    },
    reset: async (nowMs) => {
      await reset()
      return openFundedNodes(nowMs, reserve)
    },
    signer,
    rememberIn: (other) => {
      store = other
    },
    close: async () => {
      await locks.close()
      await owner.end()
      await db.close()
    },
  }
}

async function createDatabase(serverUrl: string, name: string): Promise<string> {
  const server = new pg.Client({ connectionString: serverUrl })
  await server.connect()
  await server.query(`CREATE DATABASE ${name}`)
  await server.end()
  const url = new URL(serverUrl)
  url.pathname = `/${name}`
  await migrate(url.href, () => {})
  return url.href
}

async function readyAddresses(db: Database, signer: Signer): Promise<Ground['reserve']> {
  const families = Object.keys(depositsLie) as AddressFamily[]
  const make = async (
    family: AddressFamily,
    purpose: 'reserve' | 'deposit' | 'change',
    count: number,
    first = 0,
  ) => {
    const addresses = await signer.addresses(family, purpose, first, count)
    await insertAddresses(db, family, purpose, first, addresses)
    return addresses[0] ?? ''
  }
  const reserve: Partial<Record<AddressFamily, string>> = {}
  for (const family of families) {
    const hasTags = depositsLie[family] === 'tags'
    // Where there are tags, the second is the account without one.
    reserve[family] = await make(family, 'reserve', hasTags ? 2 : 1)
    await make(family, 'deposit', POOL, hasTags ? 1 : 0)
  }
  await make('bitcoin', 'change', POOL)
  return reserve as Ground['reserve']
}

/** The same every time, so that the books that were written once fit every time. */
function openFundedNodes(nowMs: () => number, reserve: Ground['reserve']): SimulatedNodes {
  const nodes = openNodes(nowMs)
  fund(nodes, reserve)
  return nodes
}

/** Enough for one order of the usual size, not always for the next. In whole coins. */
const datedReserves = { XRP: 12_000n, XLM: 75_000n, TRX: 100_000n, EOS: 37_000n, SOL: 200n } as const

function fund({ BTC, ETH, ...others }: SimulatedNodes, reserve: Ground['reserve']): void {
  for (const satoshi of [25_000_000n, 12_000_000n, 6_000_000n, 3_000_000n])
    BTC.pay([{ address: reserve.bitcoin, satoshi }])
  for (const [asset, whole] of [
    ['ETH:ETH', 8n],
    ['USDT:ERC20', 20_000n],
  ] as const) {
    ETH.pay([{ to: reserve.evm, asset, units: wholeUnits(asset, whole) }])
  }
  for (const id of datedIds) payReserve(others[id], reserve, id, datedReserves[id])
  // Below the deepest reorganisation.
  for (const node of [BTC, ETH, ...datedIds.map((id) => others[id])]) node.mine(20)
}

/** So many whole coins. */
export function payReserve(node: DatedNode, reserve: Ground['reserve'], id: DatedId, whole: bigint): void {
  const { id: asset } = nativeAsset(id)
  node.pay([{ to: reserve[chainFacts[id].family], asset, units: wholeUnits(asset, whole) }])
}

/** In the units of its chain. */
export function wholeUnits(asset: AssetId, whole: bigint): bigint {
  return toChainUnits(amountOf(asset, whole * 10n ** BigInt(assetOf(asset).decimals)))
}

async function bookReserves(db: Database, reserve: Ground['reserve']): Promise<void> {
  const nowMs = () => START_MS
  const nodes = openNodes(nowMs)
  const chains = connectSimulated(directLines(nodes), async (chain) => reserve[chainFacts[chain].family])
  const clock = {
    nowMs,
    wallMs: nowMs,
    fromWallMs: (ms: number) => ms,
    sleep: () => new Promise<void>((resolve) => setImmediate(resolve)),
    endOfTurn: async () => {},
  }
  const watched: readonly ChainId[] = ['BTC', 'ETH', ...datedIds]
  const world = openWorld({
    db,
    clock,
    chains,
    prices: { usd: () => null },
    log: quietLog,
    sweeps: false,
    watched,
    largeBtc: '1',
  })
  const looks = [...world.chains.values()].map((chain) => async (holder: string) => {
    const lease = await leaseKeeper(world, `watch:${chain.id}`, holder).hold()
    assert(lease !== null, 'nobody else watches')
    while (await watchOnce(world, chain, lease)) assert(lease.fence > 0, 'and nobody comes')
  })
  for (const look of looks) await look('the first')
  fund(nodes, reserve)
  for (const look of looks) await look('the first')
  await db.query('DELETE FROM leases')
}

const EVERY = 50

/** Keeps a copy of every table that has something in it, and how far sequences have come; answers what puts all of it back. */
async function rememberTables(owner: pg.Client): Promise<() => Promise<void>> {
  const { rows } = await owner.query<{ name: string }>(
    `SELECT schemaname || '.' || tablename AS name FROM pg_tables
     WHERE schemaname IN ('public', 'signer') AND tablename NOT IN ('schema_migrations', 'ledger_accounts')`,
  )
  const names = rows.map(({ name }) => name)
  await owner.query('CREATE SCHEMA beginning')
  const kept: string[] = []
  for (const name of names) {
    const { rowCount } = await owner.query(`SELECT FROM ${name} LIMIT 1`)
    if (rowCount === 0) continue
    await owner.query(`CREATE TABLE beginning.${name.replace('.', '_')} AS TABLE ${name}`)
    kept.push(`INSERT INTO ${name} SELECT * FROM beginning.${name.replace('.', '_')}`)
  }
  const sequences = await owner.query<{ name: string; reached: string }>(
    `SELECT schemaname || '.' || sequencename AS name, last_value AS reached FROM pg_sequences
     WHERE schemaname IN ('public', 'signer') AND last_value IS NOT NULL`,
  )
  kept.push(...sequences.rows.map(({ name, reached }) => `PERFORM setval('${name}', ${reached})`))
  const deletion = names.map((name) => `DELETE FROM ${name}`)
  const truncation = `TRUNCATE ${names.join()} CASCADE`
  // Functions, whose statements are planned once.
  await owner.query(functionOf('delete_and_return', [...deletion, ...kept]))
  await owner.query(functionOf('truncate_and_return', [truncation, ...kept]))
  let resets = 0
  return async () => {
    // Deleting is far quicker, as long as not too much of what was deleted lies about.
    const name = resets % EVERY === 0 ? 'truncate_and_return' : 'delete_and_return'
    await owner.query(`SELECT beginning.${name}()`)
    resets += 1
  }
}

function functionOf(name: string, statements: readonly string[]): string {
  return `CREATE FUNCTION beginning.${name}() RETURNS void LANGUAGE plpgsql AS $$ BEGIN ${statements.join('; ')}; END $$`
}
