import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Postgres, removePostgres, startPostgres } from '@cambist/devnet'
import pg from 'pg'
import { createSecretBox } from '../../src/accounts/secret_box.ts'
import { sandboxKey } from '../../src/config/sandbox_secrets.ts'
import { openDatabase } from '../../src/db/database.ts'
import { migrate } from '../../src/db/migrate.ts'
import { assets } from '../../src/domain/catalog/assets.ts'
import { chainIds } from '../../src/domain/catalog/networks.ts'
import { type DemoAccount, openDemoAccount } from '../../src/sandbox/demo_account.ts'
import { familyMicroseconds } from './processor_time.ts'

/** A real PostgreSQL, fsync on, with one database for the service and one for pgbench, both with the same schema. */
export type Ground = {
  readonly serviceUrl: string
  readonly pgbenchUrl: string
  readonly account: DemoAccount
  /** Processor time of the whole server so far. */
  postgresMicroseconds(): number
  /** As a superuser in the service's database. */
  rows<Row extends object>(sql: string): Promise<Row[]>
  /** What was written so far is on disk: no slice pays for the one before. */
  settle(): Promise<void>
}

/** More than a run creates: what a pool kept large enough would hold. How fast it is filled is a figure of its own. */
const ADDRESSES = 400_000
/** Orders that are there already, so that tables and indexes are no longer small. */
const ORDERS = 20_000
const WATCHER_REST_MS = 5_000

export async function onGround(use: (ground: Ground) => Promise<void>): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'cambist-bench-'))
  const dataDir = join(folder, 'postgres')
  const postgres = await startPostgres({ dataDir })
  try {
    await useDatabases(folder, postgres, use)
  } finally {
    await postgres.stop()
    removePostgres(dataDir)
    rmSync(folder, { recursive: true, force: true })
  }
}

async function useDatabases(
  folder: string,
  postgres: Postgres,
  use: (ground: Ground) => Promise<void>,
): Promise<void> {
  const serviceUrl = postgres.url
  const pgbenchUrl = new URL('/pgbench', serviceUrl).href
  const service = await connect(serviceUrl)
  await service.query('CREATE DATABASE pgbench')
  for (const url of [serviceUrl, pgbenchUrl]) await migrate(url, () => {})
  const account = await openAccount(folder, serviceUrl)
  await standIn(service)
  for (const url of [serviceUrl, pgbenchUrl]) await fill(url)
  const watcher = await connect(serviceUrl)
  const watching = setInterval(() => void look(watcher).catch(() => {}), WATCHER_REST_MS)
  try {
    await use({
      serviceUrl,
      pgbenchUrl,
      account,
      postgresMicroseconds: () => familyMicroseconds(postgres.pid),
      rows: async (sql) => (await service.query(sql)).rows,
      settle: async () => {
        await service.query('CHECKPOINT')
      },
    })
  } finally {
    clearInterval(watching)
    await watcher.end()
    await service.end()
  }
}

async function connect(url: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  return client
}

async function openAccount(folder: string, url: string): Promise<DemoAccount> {
  const db = openDatabase({ url, connectionsMax: 1, applicationName: 'bench', onConnectionLost: () => {} })
  const box = createSecretBox([sandboxKey('account')])
  const account = await openDemoAccount(folder, { db, box, wallMs: Date.now })
  await db.close()
  return account
}

/** What a watcher on another machine would have written: chains that are looked at, opened assets, and reserves. */
async function standIn(service: pg.Client): Promise<void> {
  for (const chain of chainIds) {
    await service.query(
      `INSERT INTO chain_heads (chain, height, hash, node_height, looked_at_ms) VALUES ($1, 1, 'x', 1, 0)`,
      [chain],
    )
  }
  for (const { id, decimals } of assets) {
    await service.query('INSERT INTO reserves VALUES ($1, $2, 1000, 0)', [
      id,
      `1000000${'0'.repeat(decimals)}`,
    ])
    await service.query('INSERT INTO opened_assets VALUES ($1, 0, true)', [id])
  }
  await look(service)
}

async function look(service: pg.Client): Promise<void> {
  await service.query('UPDATE chain_heads SET looked_wall_ms = $1', [Date.now()])
}

async function fill(url: string): Promise<void> {
  const client = await connect(url)
  await client.query(
    `INSERT INTO addresses (family, address, purpose, key_index)
     SELECT family, 'bcrt1' || md5(family || n), 'deposit', n
     FROM unnest(ARRAY['bitcoin', 'evm']) AS family, generate_series(1, $1::int) AS n`,
    [ADDRESSES],
  )
  // Without them every creation would look for them: they are remembered once they are there.
  await client.query(
    `INSERT INTO addresses (family, address, purpose, key_index)
     SELECT family, 'reserve of ' || family, 'reserve', 0 FROM unnest(ARRAY['bitcoin', 'evm']) AS family`,
  )
  await client.query(
    `WITH old AS (
       INSERT INTO orders (bucket, order_id, account_id, created_at_ms, expires_at_ms, rate_type, from_asset, to_asset,
         asks, promises, rate, fee, fee_share, network_fee, destination, deposit_address, required_confirmations,
         tolerance, slippage, token_hash, seal, status, sequence, updated_at_ms)
       SELECT right(id, 2)::smallint, id, 'acc_bench', 0, 1, 'float', 'BTC:BTC', 'USDT:ERC20', 1, 1, '1', 0, 50, 0,
         'outside', md5(id), 3, 0, 200, sha256(id::bytea), md5(id), 'EXPIRED', 2, 1
       FROM (SELECT 'CB' || lpad((random() * 1e16)::bigint::text, 16, '0') AS id FROM generate_series(1, $1::int)) AS ids
       ON CONFLICT DO NOTHING RETURNING bucket, order_id
     ), old_facts AS (
       INSERT INTO facts SELECT bucket, order_id, 'created', 'OrderCreated', 'changed', 0 FROM old
     )
     INSERT INTO events SELECT bucket, order_id, 1, NULL, 'NEW', 'created', '{}', 0 FROM old`,
    [ORDERS],
  )
  await client.query('VACUUM ANALYZE')
  await client.end()
}
