import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'

const execute = promisify(execFile)

/** Text and numbers of one order; what differs from order to order is drawn by pgbench. */
const values = {
  first: '0',
  account: 'acc_sandbox00',
  body_hash: 'c0ffee'.padEnd(64, '0'),
  from_asset: 'BTC:BTC',
  to_asset: 'USDT:ERC20',
  destination: '0x52908400098527886E0F7030069857D2E4169EE7',
  rate: '64500.25',
  token: 'f00d'.padEnd(64, '0'),
  seal: '5ea1'.padEnd(64, '0'),
  snapshot: JSON.stringify({
    order_id: 'CB1621820820853908',
    short_id: '20853908',
    status: 'NEW',
    deposit_address: 'bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080',
    deposit_tag: null,
    deposit_currency: 'BTC',
    deposit_network: 'BTC',
    deposit_amount: '0.05',
    deposit_received: '0',
    deposit_confirmations: 0,
    deposit_required_confirmations: 3,
    deposit_tx_hash: null,
    receive_currency: 'USDT',
    receive_network: 'ERC20',
    receive_amount: '3225.012',
    receive_final_amount: '3225.012',
    rate: '64500.25',
    rate_type: 'float',
    fee: '16.29',
    network_fee: '1.2',
    destination: '0x52908400098527886E0F7030069857D2E4169EE7',
    destination_tag: null,
    refund_address: null,
    callback_url: null,
    withdraw_tx_hash: null,
    created_at: 1_763_730_000_000,
    updated_at: 1_763_730_000_000,
    expires_at: 1_763_730_900_000,
    completed_at: null,
  }),
}

const id = `('CB' || lpad(:a::text, 7, '0') || lpad(:b::text, 7, '0') || lpad(:bucket::text, 2, '0'))`

/**
 * The rows of one order as `insertNewOrders` writes them, in the plainest statement that does. As the service does, each
 * client remembers where the free addresses begin.
 */
const statement = `
  WITH ready AS MATERIALIZED (
    SELECT address, key_index FROM addresses
    WHERE family = 'bitcoin' AND purpose = 'deposit' AND key_index >= :first AND assigned_at_ms IS NULL
    ORDER BY key_index LIMIT 1 FOR UPDATE SKIP LOCKED
  ), filled AS (
    INSERT INTO retry_slots (account_id, slot, body_hash, order_id, at_ms)
    VALUES (:account, 'key:' || :a::text || :b::text, :body_hash, ${id}, 1763730000000) ON CONFLICT DO NOTHING
  ), given AS (
    UPDATE addresses SET order_id = ${id}, chain = 'BTC', assigned_at_ms = 1763730000000
    WHERE family = 'bitcoin' AND address = (SELECT address FROM ready)
  ), new_orders AS (
    INSERT INTO orders (bucket, order_id, account_id, created_at_ms, expires_at_ms, rate_type, from_asset, to_asset,
      asks, promises, rate, fee, fee_share, network_fee, destination, deposit_address, required_confirmations,
      tolerance, slippage, token_hash, seal, status, sequence, updated_at_ms)
    SELECT :bucket::smallint, ${id}, :account, 1763730000000, 1763730900000, 'float', :from_asset, :to_asset,
      5000000, 3225012000000000000000, :rate, 16290000000000000000, 50, 1200000000000000000, :destination,
      address, 3, 0, 200, decode(:token, 'hex'), :seal, 'NEW', 1, 1763730000000 FROM ready
  ), new_facts AS (
    INSERT INTO facts (bucket, order_id, fact_key, kind, outcome, at_ms)
    VALUES (:bucket::smallint, ${id}, 'created', 'OrderCreated', 'changed', 1763730000000)
  ), new_events AS (
    INSERT INTO events (bucket, order_id, sequence, status, fact_key, snapshot, at_ms)
    VALUES (:bucket::smallint, ${id}, 1, 'NEW', 'created', :snapshot::jsonb, 1763730000000)
  )
  SELECT key_index AS first FROM ready`

const script = `\\set a random(0, 9999999)
\\set b random(0, 9999999)
\\set bucket random(0, 99)
${statement.replace(/\s+/g, ' ')} \\gset
`

/** Creates orders in plain SQL, one a statement, as fast as `connections` can; answers how many it was. */
export async function runPgbench(
  command: readonly string[],
  url: string,
  { connections, seconds }: { readonly connections: number; readonly seconds: number },
): Promise<{ readonly count: number; readonly seconds: number }> {
  const { hostname, port, username, password, pathname } = new URL(url)
  const folder = mkdtempSync(join(tmpdir(), 'cambist-pgbench-'))
  const file = join(folder, 'create.sql')
  writeFileSync(file, script)
  const [program = '', ...words] = command
  const settings = Object.entries(values).flatMap(([name, value]) => ['-D', `${name}=${value}`])
  const load = ['-n', '-M', 'prepared', '-c', connections, '-j', 2, '-T', seconds, '-f', file].map(String)
  const place = ['-h', hostname, '-p', port, '-U', username, pathname.slice(1)]
  const env = { ...process.env, PGPASSWORD: password, PGOPTIONS: '-c role=cambist_service' }
  try {
    const { stdout } = await execute(program, [...words, ...load, ...settings, ...place], { env })
    return readReport(stdout)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

function readReport(report: string): { readonly count: number; readonly seconds: number } {
  const count = Number(/transactions actually processed: (\d+)/.exec(report)?.[1])
  const perSecond = Number(/tps = ([\d.]+)/.exec(report)?.[1])
  const failed = /failed transactions: (\d+)/.exec(report)?.[1] ?? '0'
  if (!(count > 0 && perSecond > 0) || failed !== '0') throw new Error(`pgbench did not work:\n${report}`)
  return { count, seconds: count / perSecond }
}
