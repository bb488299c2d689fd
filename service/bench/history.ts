import type { Client } from 'pg'
import { appendAudit, houseChain, operator } from '../src/db/audit_log.ts'
import { OPERATOR } from '../src/db/books.ts'
import { assert } from '../src/domain/assert.ts'
import { type AssetId, assetIdsOn } from '../src/domain/catalog/assets.ts'
import { amountOf, exactAmount } from '../src/domain/money/amount.ts'
import type { Signer } from '../src/signer/signer.ts'

/**
 * Fills an empty database with orders that ended long ago, as the service would have left them: nine of ten paid, swept
 * and at rest, one expired; spread over a year, in books that `ledger audit` finds nothing wrong with. What nobody reads
 * again (snapshots, signed bytes) is short. Of the addresses only those are the signer's by which an engine tells whose keystore they are of.
 */
export async function fillHistory(
  admin: Client,
  orders: number,
  signer: Pick<Signer, 'addresses'>,
): Promise<void> {
  // Keys to other tables are true by construction; checking each would take longer than writing it.
  await admin.query('SET session_replication_role = replica')
  await admin.query(HISTORY.replaceAll('$orders', String(orders)))
  await takeLastAddresses(admin, signer)
  for (const statement of statements) await admin.query(statement.replaceAll('$orders', String(orders)))
  await admin.query('SET session_replication_role = origin')
  await tellOperatorEntries(admin)
  await admin.query('DROP TABLE history')
  await admin.query('VACUUM ANALYZE')
}

/** The last deposit address of each family; see `readOutermostKeys`. */
async function takeLastAddresses(admin: Client, signer: Pick<Signer, 'addresses'>): Promise<void> {
  for (const [family, condition] of [
    ['bitcoin', "from_chain = 'BTC'"],
    ['evm', "from_chain <> 'BTC'"],
  ] as const) {
    const { rows } = await admin.query<{ last: number }>(
      `SELECT max(i) AS last FROM history WHERE ${condition}`,
    )
    const last = rows[0]?.last
    assert(last !== undefined, 'a maximum is a row')
    const [address] = await signer.addresses(family, 'deposit', last, 1)
    await admin.query('UPDATE history SET address = $1 WHERE i = $2', [address, last])
  }
}

/** What an operator books stands in the audit log. */
async function tellOperatorEntries(admin: Client): Promise<void> {
  const { rows } = await admin.query<{ entry: string; asset: AssetId; units: string }>(
    `SELECT entry_key AS entry, asset, (CASE WHEN debit = 'wallet' THEN units ELSE -units END)::text AS units
     FROM journal WHERE bucket = 0 AND owner = 'house' AND starts_with(entry_key, '${OPERATOR}') ORDER BY entry_key`,
  )
  const tx = {
    query: async <Row extends object>(text: string, values: readonly unknown[] = []) =>
      (await admin.query<Row>(text, [...values])).rows,
  }
  for (const { entry, asset, units } of rows) {
    await appendAudit(tx, {
      chain: houseChain(asset),
      atMs: 1,
      act: 'difference_booked',
      by: operator,
      subject: asset,
      detail: { amount: exactAmount(amountOf(asset, BigInt(units))), because: 'history', entry },
    })
  }
}

/** What a chain has to hold for the books to be right: what was left at addresses that are at rest. */
export async function restingBalances(
  admin: Client,
): Promise<readonly { readonly chain: 'ETH' | 'BNB'; readonly address: string; readonly units: bigint }[]> {
  const { rows } = await admin.query<{ chain: 'ETH' | 'BNB'; address: string; units: string }>(
    'SELECT chain, address, units::text FROM resting_balances',
  )
  return rows.map(({ units, ...rest }) => ({ ...rest, units: BigInt(units) }))
}

const DAY_MS = 86_400_000
const NOW_MS = '(extract(epoch FROM now()) * 1000)::bigint'
const hex = (seed: string, length: number) =>
  `substr(md5('${seed} ' || i) || md5('${seed}s ' || i), 1, ${length})`

/** One row an order, with everything that its rows in other tables are made of. */
const HISTORY = `
  CREATE TABLE history AS
  SELECT h.*, h.id || ':1' AS payout_id, split_part(from_asset, ':', 2) AS from_network,
    CASE split_part(from_asset, ':', 2) WHEN 'ERC20' THEN 'ETH' WHEN 'BEP20' THEN 'BNB' ELSE split_part(from_asset, ':', 2) END AS from_chain,
    CASE split_part(to_asset, ':', 2) WHEN 'ERC20' THEN 'ETH' WHEN 'BEP20' THEN 'BNB' ELSE split_part(to_asset, ':', 2) END AS to_chain,
    CASE WHEN from_asset = 'BTC:BTC' THEN 'bcrt1q' || ${hex('address', 38)} ELSE '0x' || ${hex('address', 40)} END AS address,
    CASE WHEN from_asset = 'BTC:BTC' THEN '' ELSE '0x' END || ${hex('deposit', 64)} AS deposit_tx,
    CASE WHEN to_asset = 'BTC:BTC' THEN '' ELSE '0x' END || ${hex('payout', 64)} AS payout_tx,
    '0x' || ${hex('block', 64)} AS block_hash,
    (CASE WHEN from_asset = 'BTC:BTC' THEN 1000000 ELSE 1000000000000000000 END + i)::numeric AS received,
    (CASE WHEN to_asset = 'BTC:BTC' THEN 900000 ELSE 900000000000000000 END + i)::numeric AS paid,
    (CASE WHEN to_asset = 'BTC:BTC' THEN 1000 ELSE 1000000000000000 END)::numeric AS fee
  FROM (
    SELECT i,
      'CB' || lpad((i::bigint * 7368787 % 10000000)::text, 7, '0')
        || lpad((('x' || substr(md5(i::text), 1, 7))::bit(28)::int % 10000000)::text, 7, '0')
        || lpad((('x' || substr(md5('bucket ' || i), 1, 7))::bit(28)::int % 100)::text, 2, '0') AS id,
      (('x' || substr(md5('bucket ' || i), 1, 7))::bit(28)::int % 100)::smallint AS bucket,
      ${NOW_MS} - 2 * ${DAY_MS}::bigint - (365 * ${DAY_MS}::bigint * ($orders - i)) / $orders AS at_ms,
      i % 10 = 7 AS has_expired,
      (ARRAY['BTC:BTC', 'USDT:ERC20', 'BNB:BNB', 'USDC:BEP20', 'ETH:ETH'])[1 + i % 5] AS from_asset,
      (ARRAY['USDT:ERC20', 'BNB:BNB', 'USDC:BEP20', 'ETH:ETH', 'BTC:BTC'])[1 + i % 5] AS to_asset
    FROM generate_series(0, $orders - 1) AS i
  ) AS h`

/** Of the order, and what its native coin is called. */
const KEY = `from_chain || ':' || deposit_tx || CASE WHEN from_chain = 'BTC' THEN ':0'
  WHEN from_asset = from_chain || ':' || from_chain THEN ':call:0' ELSE ':log:0' END`
const CONFIRMED = `${KEY} || ':confirmed:' || block_hash || '@0'`
const COST = `CASE WHEN to_chain = 'BTC' THEN 500 ELSE 100000000000000 END`
const SWEEP = `'sweep-' || from_chain || '-' || i`

const facts: readonly (readonly [key: string, kind: string, only: string])[] = [
  [`'created'`, 'OrderCreated', 'true'],
  [`'expired:1'`, 'OrderExpired', 'has_expired'],
  [`${KEY} || ':seen:' || block_hash || '@0'`, 'DepositSeen', 'NOT has_expired'],
  [`${KEY} || ':mined:' || block_hash || '@0'`, 'DepositSeen', 'NOT has_expired'],
  [CONFIRMED, 'DepositConfirmed', 'NOT has_expired'],
  [`'priced:3'`, 'ExchangePriced', 'NOT has_expired'],
  [`payout_id || ':broadcast:1'`, 'PayoutBroadcast', 'NOT has_expired'],
  [`payout_id || ':confirmed'`, 'PayoutConfirmed', 'NOT has_expired'],
]

const events: readonly (readonly [
  sequence: number,
  before: string,
  status: string,
  key: string,
  only: string,
])[] = [
  [1, 'NULL', 'NEW', `'created'`, 'true'],
  [2, `'NEW'`, 'EXPIRED', `'expired:1'`, 'has_expired'],
  [2, `'NEW'`, 'PENDING', `${KEY} || ':seen:' || block_hash || '@0'`, 'NOT has_expired'],
  [3, `'PENDING'`, 'EXCHANGE', CONFIRMED, 'NOT has_expired'],
  [4, `'EXCHANGE'`, 'WITHDRAW', `payout_id || ':broadcast:1'`, 'NOT has_expired'],
  [5, `'WITHDRAW'`, 'DONE', `payout_id || ':confirmed'`, 'NOT has_expired'],
]

const movements: readonly (readonly [
  key: string,
  line: number,
  asset: string,
  debit: string,
  credit: string,
  units: string,
])[] = [
  [CONFIRMED, 1, 'from_asset', 'wallet', 'customer_deposits', 'received'],
  [`'priced:3'`, 1, 'from_asset', 'customer_deposits', 'exchange_position', 'received'],
  [`'priced:3'`, 2, 'to_asset', 'exchange_position', 'payouts_owed', 'paid'],
  [`'priced:3'`, 3, 'to_asset', 'exchange_position', 'fee_income', 'fee'],
  [`'priced:3'`, 4, 'to_asset', 'exchange_position', 'network_costs', 'fee'],
  [`payout_id || ':confirmed'`, 1, 'to_asset', 'payouts_owed', 'wallet', 'paid'],
  [`payout_id || ':confirmed'`, 2, `to_chain || ':' || to_chain`, 'network_costs', 'wallet', COST],
]

const CARRIED = (['BTC', 'ETH', 'BNB'] as const).flatMap((chain) => assetIdsOn(chain))
const JOURNAL = 'INSERT INTO journal (bucket, owner, entry_key, line, asset, debit, credit, units, at_ms)'
const SWEPT = `FROM history WHERE NOT has_expired AND from_chain <> 'BTC'`

const statements: readonly string[] = [
  `INSERT INTO orders (bucket, order_id, account_id, created_at_ms, expires_at_ms, rate_type, from_asset, to_asset, asks,
     promises, rate, fee, fee_share, network_fee, destination, refund_address, deposit_address, required_confirmations,
     tolerance, slippage, token_hash, seal, status, sequence, updated_at_ms, completed_at_ms, settled_received,
     settled_paid, settled_rate, settled_fee, settled_network_fee, payout_id, payout_tx_hash, outflow_count,
     is_outflow_committed)
   SELECT bucket, id, 'acc_benchmark', at_ms, at_ms + 900000, 'fixed', from_asset, to_asset, received, paid, '1/1', fee, 100,
     fee, 'somebody', NULL, address, CASE WHEN from_chain = 'BTC' THEN 3 ELSE 12 END, 0, 200,
     decode(${hex('token', 64)}, 'hex'), ${hex('seal', 64)}, CASE WHEN has_expired THEN 'EXPIRED' ELSE 'DONE' END,
     CASE WHEN has_expired THEN 2 ELSE 5 END, at_ms + 900000, CASE WHEN has_expired THEN NULL ELSE at_ms + 900000 END,
     CASE WHEN has_expired THEN NULL ELSE received END, CASE WHEN has_expired THEN NULL ELSE paid END,
     CASE WHEN has_expired THEN NULL ELSE '1/1' END, CASE WHEN has_expired THEN NULL ELSE fee END,
     CASE WHEN has_expired THEN NULL ELSE fee END, CASE WHEN has_expired THEN NULL ELSE payout_id END,
     CASE WHEN has_expired THEN NULL ELSE payout_tx END, CASE WHEN has_expired THEN 0 ELSE 1 END, NOT has_expired
   FROM history`,
  ...facts.map(
    ([key, kind, only]) =>
      `INSERT INTO facts (bucket, order_id, fact_key, kind, outcome, at_ms)
       SELECT bucket, id, ${key}, '${kind}', 'changed', at_ms FROM history WHERE ${only}`,
  ),
  ...events.map(
    ([sequence, before, status, key, only]) =>
      `INSERT INTO events (bucket, order_id, sequence, previous_status, status, fact_key, snapshot, at_ms)
       SELECT bucket, id, ${sequence}, ${before}, '${status}', ${key}, jsonb_build_object('order_id', id), at_ms
       FROM history WHERE ${only}`,
  ),
  `INSERT INTO deposits (bucket, order_id, deposit_key, chain, tx_hash, asset, units, role, is_late, state, seen_at_ms,
     block_height, block_hash)
   SELECT bucket, id, ${KEY}, from_chain, deposit_tx, from_asset, received, 'counted', false, 'confirmed', at_ms, i, block_hash
   FROM history WHERE NOT has_expired`,
  ...movements.map(
    ([key, line, asset, debit, credit, units]) =>
      `${JOURNAL} SELECT bucket, id, ${key}, ${line}, ${asset}, '${debit}', '${credit}', ${units}, at_ms
       FROM history WHERE NOT has_expired`,
  ),
  `INSERT INTO outflows (bucket, order_id, payout_id, kind, chain, asset, units, address, state, nonce, planned_at_ms, due_at_ms)
   SELECT bucket, id, payout_id, 'payout', to_chain, to_asset, paid, 'somebody', 'confirmed',
     CASE WHEN to_chain = 'BTC' THEN NULL ELSE i END, at_ms, at_ms FROM history WHERE NOT has_expired`,
  `INSERT INTO attempts (bucket, payout_id, attempt, intent, tx_hash, bytes, answer, drafted_at_ms, broadcast_at_ms)
   SELECT bucket, payout_id, 1, '{}', payout_tx, '00', 'accepted', at_ms, at_ms FROM history WHERE NOT has_expired`,
  `INSERT INTO signer.signed_transactions (payout_id, attempt, intent, asset, units, tx_hash, bytes, at_ms)
   SELECT payout_id, 1, '{}', to_asset, paid, payout_tx, '00', at_ms FROM history WHERE NOT has_expired`,
  // Sweeps, whose cost the house bears.
  `INSERT INTO outflows (bucket, order_id, payout_id, kind, chain, asset, units, address, state, nonce, planned_at_ms,
     due_at_ms, from_address, from_index)
   SELECT 0, ${SWEEP}, ${SWEEP} || ':1', 'sweep', from_chain, from_asset, received, 'reserve', 'confirmed', 0, at_ms, at_ms,
     address, i ${SWEPT}`,
  `INSERT INTO attempts (bucket, payout_id, attempt, intent, tx_hash, bytes, answer, drafted_at_ms, broadcast_at_ms)
   SELECT 0, ${SWEEP} || ':1', 1, '{}', '0x' || ${hex('sweep', 64)}, '00', 'accepted', at_ms, at_ms ${SWEPT}`,
  `${JOURNAL} SELECT 0, 'house', ${SWEEP} || ':1:confirmed', 1, from_chain || ':' || from_chain, 'network_costs', 'wallet',
     100000000000000, at_ms ${SWEPT}`,
  `INSERT INTO addresses (family, address, purpose, key_index, order_id, chain, assigned_at_ms)
   SELECT CASE WHEN from_chain = 'BTC' THEN 'bitcoin' ELSE 'evm' END, address, 'deposit', i, id, from_chain, at_ms FROM history`,
  `INSERT INTO addresses (family, address, purpose, key_index, chain, assigned_at_ms)
   SELECT 'bitcoin', 'bcrt1q' || ${hex('change', 38)}, 'change', i, 'BTC', at_ms FROM history WHERE to_chain = 'BTC'`,
  // Every coin was spent for a payout later on.
  `INSERT INTO coins (chain, tx_hash, output_index, satoshi, address, key_purpose, key_index, block_height, block_hash, spent_by)
   SELECT 'BTC', deposit_tx, 0, received, address, 'deposit', i, i, block_hash, payout_id
   FROM history WHERE NOT has_expired AND from_chain = 'BTC'
   UNION ALL
   SELECT 'BTC', payout_tx, 1, 1000, 'bcrt1q' || ${hex('change', 38)}, 'change', i, i, block_hash, payout_id
   FROM history WHERE NOT has_expired AND to_chain = 'BTC'`,
  `INSERT INTO unswept_addresses (chain, address, key_index, booked_at_ms, due_at_ms, sweep_count, is_resting)
   SELECT from_chain, address, i, at_ms, ${NOW_MS} + (${NOW_MS} - at_ms) * (i % 1000 + 1) / 1000, 1, true ${SWEPT}`,
  `INSERT INTO resting_balances (chain, address, asset, units)
   SELECT from_chain, address, from_chain || ':' || from_chain, 1000000000 + i ${SWEPT} AND i % 50 = 3`,
  `INSERT INTO resting_sums (chain, asset, units) SELECT chain, asset, sum(units) FROM resting_balances GROUP BY 1, 2`,
  // Or what lies at addresses would be booked once more, as found there.
  `INSERT INTO opened_assets (asset, height, is_read)
   SELECT asset, 0, true FROM unnest(ARRAY[${CARRIED.map((asset) => `'${asset}'`).join(', ')}]) AS asset`,
  // What the operator paid in or took out since, so that the reserve is empty now.
  `${JOURNAL}
   SELECT 0, 'house', 'operator:' || asset || ':1', 1, asset, CASE WHEN units < 0 THEN 'wallet' ELSE 'capital' END,
     CASE WHEN units < 0 THEN 'capital' ELSE 'wallet' END, abs(units), 1
   FROM (
     SELECT asset, sum(units) AS units FROM (
       SELECT asset, CASE WHEN debit = 'wallet' THEN units ELSE -units END AS units FROM journal
       WHERE debit = 'wallet' OR credit = 'wallet'
       UNION ALL SELECT asset, -units FROM resting_sums
     ) AS parts GROUP BY asset
   ) AS sums WHERE units <> 0`,
  `INSERT INTO wallet_sums (bucket, asset, units)
   SELECT bucket, asset, sum(CASE WHEN debit = 'wallet' THEN units ELSE -units END) FROM journal
   WHERE debit = 'wallet' OR credit = 'wallet' GROUP BY bucket, asset`,
]
