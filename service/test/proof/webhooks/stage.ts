import { type ChildProcess, fork } from 'node:child_process'
import { createSecretKey, randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { removePostgres, startPostgres } from '@cambist/devnet'
import pg from 'pg'
import { createSecretBox } from '../../../src/accounts/secret_box.ts'
import { ensureWebhookSecret } from '../../../src/accounts/webhook_secrets.ts'
import { openDatabase } from '../../../src/db/database.ts'
import { migrate } from '../../../src/db/migrate.ts'
import { placeOrder } from '../../../src/engine/testing/books_stage.ts'
import type { World } from '../../../src/engine/world.ts'
import { orderView } from '../../../src/http/testing/fake_desk.ts'
import { type ProcessSettings, serviceTimeMs } from './settings.ts'

export const ACCOUNT = 'acc_proof00000'
export const HISTORY = ['NEW', 'PENDING', 'EXCHANGE', 'WITHDRAW', 'DONE'] as const

/** A real database with orders of one account, and notifiers in processes of their own that are there to be killed. */
export type Stage = {
  readonly secret: string
  /** Orders in NEW; answers their ids. */
  makeOrders(urls: readonly string[]): Promise<readonly string[]>
  /** The next event of each; answers when it was committed, by the wall clock. */
  move(orderIds: readonly string[]): Promise<number>
  rows<Row extends object>(sql: string, values?: readonly unknown[]): Promise<Row[]>
  startNotifier(flaw?: ProcessSettings['flaw']): Promise<ChildProcess>
  /** Kills what still runs, and removes everything. */
  stop(): Promise<void>
}

const SPEED = 600
const WEBHOOK_TIMES = { attemptMs: 1_000, marginMs: 3_000 }

export async function openStage(): Promise<Stage> {
  const folder = mkdtempSync(join(tmpdir(), 'cambist-webhooks-proof-'))
  const dataDir = join(folder, 'postgres')
  const server = await startPostgres({ dataDir })
  await migrate(server.url, () => {})
  const db = openDatabase({
    url: server.url,
    connectionsMax: 5,
    applicationName: 'proof',
    onConnectionLost: () => {},
  })
  const superuser = new pg.Client({ connectionString: server.url })
  await superuser.connect()
  const accountKey = randomBytes(32)
  const settings: ProcessSettings = {
    databaseUrl: server.url,
    accountKeyHex: accountKey.toString('hex'),
    ...WEBHOOK_TIMES,
    beganWallMs: Date.now(),
    speed: SPEED,
    flaw: 'none',
  }
  const nowMs = () => serviceTimeMs(settings, Date.now())
  const secret = `whsec_${randomBytes(24).toString('base64')}`
  await superuser.query(`INSERT INTO accounts VALUES ($1, 'Proof', 1)`, [ACCOUNT])
  const place = { db, box: createSecretBox([createSecretKey(accountKey)]), wallMs: Date.now }
  await ensureWebhookSecret(place, ACCOUNT, secret)
  const template = await placeOrder(
    { db, world: { clock: { nowMs } } as unknown as World },
    'BTC:BTC',
    'ETH:ETH',
    { asks: 1n, promises: 1n },
  )
  await superuser.query('UPDATE orders SET relayed_sequence = sequence')
  const children = new Set<ChildProcess>()
  const rows: Stage['rows'] = async (sql, values = []) => (await superuser.query(sql, [...values])).rows
  return {
    secret,
    rows,
    makeOrders: async (urls) => {
      const ids = urls.map((_, index) => `CB${String(10 ** 9 + index * 7).padStart(16, '0')}`)
      await superuser.query('BEGIN')
      await rows(MAKE_ORDERS, [ids, urls, ACCOUNT, template.terms.id])
      await rows(APPEND_EVENTS, [ids, JSON.stringify(orderView), nowMs(), HISTORY])
      await superuser.query('COMMIT')
      return ids
    },
    move: async (ids) => {
      await superuser.query('BEGIN')
      await rows('UPDATE orders SET sequence = sequence + 1, updated_at_ms = $2 WHERE order_id = ANY($1)', [
        ids,
        nowMs(),
      ])
      await rows(APPEND_EVENTS, [ids, JSON.stringify(orderView), nowMs(), HISTORY])
      await superuser.query('COMMIT')
      return Date.now()
    },
    startNotifier: async (flaw = 'none') => {
      const child = fork(new URL('./notifier_process.ts', import.meta.url), [
        JSON.stringify({ ...settings, flaw }),
      ])
      children.add(child)
      child.once('exit', () => children.delete(child))
      await new Promise<void>((resolve, reject) => {
        child.on('message', (message) => message === 'up' && resolve())
        child.once('exit', (code) => reject(new Error(`a notifier ended with ${code} before it was up`)))
      })
      return child
    },
    stop: async () => {
      for (const child of children) child.kill('SIGKILL')
      await superuser.end()
      await db.close()
      await server.stop()
      removePostgres(dataDir)
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

/** As one order that was made by the service's own code, but for whose it is and who hears of it. */
const MAKE_ORDERS = `
  INSERT INTO orders
  SELECT (jsonb_populate_record(o, jsonb_build_object('order_id', made.id, 'bucket', right(made.id, 2)::int,
    'callback_url', made.url, 'account_id', $3::text, 'relayed_sequence', 0))).*
  FROM orders AS o CROSS JOIN unnest($1::text[], $2::text[]) AS made (id, url) WHERE o.order_id = $4`

/** What apply writes in the transaction that changes the order. */
const APPEND_EVENTS = `
  INSERT INTO events (bucket, order_id, sequence, previous_status, status, fact_key, snapshot, at_ms)
  SELECT bucket, order_id, sequence, ($4::text[])[sequence - 1], ($4::text[])[sequence], 'fact ' || sequence,
    $2::jsonb || jsonb_build_object('order_id', order_id, 'short_id', right(order_id, 8),
      'status', ($4::text[])[sequence], 'callback_url', callback_url), $3
  FROM orders WHERE order_id = ANY($1)`
