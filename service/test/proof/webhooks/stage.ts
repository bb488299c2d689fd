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
  const ground = await openGround()
  const { db, superuser, settings } = ground
  const nowMs = () => serviceTimeMs(settings, Date.now())
  const template = await placeOrder(
    { db, world: { clock: { nowMs } } as unknown as World },
    'BTC:BTC',
    'ETH:ETH',
    { asks: 1n, promises: 1n },
  )
  await superuser.query('UPDATE orders SET relayed_sequence = sequence')
  const rows: Stage['rows'] = async (sql, values = []) => (await superuser.query(sql, [...values])).rows
  const atOnce = async (change: () => Promise<unknown>, orderIds: readonly string[]) => {
    await superuser.query('BEGIN')
    await change()
    await rows(APPEND_EVENTS, [orderIds, JSON.stringify(orderView), nowMs(), HISTORY])
    await superuser.query('COMMIT')
  }
  const notifiers = notifierStarter(settings)
  return {
    secret: ground.secret,
    rows,
    makeOrders: async (urls) => {
      const ids = urls.map((_, index) => `CB${String(10 ** 9 + index * 7).padStart(16, '0')}`)
      await atOnce(() => rows(MAKE_ORDERS, [ids, urls, ACCOUNT, template.terms.id]), ids)
      return ids
    },
    move: async (ids) => {
      await atOnce(() => rows(MOVE_ORDERS, [ids, nowMs()]), ids)
      return Date.now()
    },
    startNotifier: notifiers.start,
    stop: async () => {
      notifiers.killAll()
      await ground.close()
    },
  }
}

/** A database of the service's own with one account. */
async function openGround() {
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
  const secret = `whsec_${randomBytes(24).toString('base64')}`
  await superuser.query(`INSERT INTO accounts VALUES ($1, 'Proof', 1)`, [ACCOUNT])
  const place = { db, box: createSecretBox([createSecretKey(accountKey)]), wallMs: Date.now }
  await ensureWebhookSecret(place, ACCOUNT, secret)
  const settings: ProcessSettings = {
    databaseUrl: server.url,
    accountKeyHex: accountKey.toString('hex'),
    ...WEBHOOK_TIMES,
    beganWallMs: Date.now(),
    speed: SPEED,
    flaw: 'none',
  }
  const close = async () => {
    await superuser.end()
    await db.close()
    await server.stop()
    removePostgres(dataDir)
    rmSync(folder, { recursive: true, force: true })
  }
  return { db, superuser, settings, secret, close }
}

function notifierStarter(settings: ProcessSettings) {
  const children = new Set<ChildProcess>()
  const start: Stage['startNotifier'] = async (flaw = 'none') => {
    const program = new URL('./notifier_process.ts', import.meta.url)
    const child = fork(program, [JSON.stringify({ ...settings, flaw })])
    children.add(child)
    child.once('exit', () => children.delete(child))
    await new Promise<void>((resolve, reject) => {
      child.on('message', (message) => message === 'up' && resolve())
      child.once('exit', (code) => reject(new Error(`a notifier ended with ${code} before it was up`)))
    })
    return child
  }
  return {
    start,
    killAll: () => {
      for (const child of children) child.kill('SIGKILL')
    },
  }
}

const MOVE_ORDERS = 'UPDATE orders SET sequence = sequence + 1, updated_at_ms = $2 WHERE order_id = ANY($1)'

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
