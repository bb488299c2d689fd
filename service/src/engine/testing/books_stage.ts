import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { removePostgres } from '@cambist/devnet'
import pg from 'pg'
import { emptyTables } from '../../../test/harness/empty_tables.ts'
import { startMigratedPostgres } from '../../../test/harness/migrated_postgres.ts'
import { openTestDatabase } from '../../../test/harness/test_database.ts'
import type { Database, Sql } from '../../db/database.ts'
import { insertNewOrders } from '../../db/new_orders.ts'
import { noteOpened } from '../../db/opened_assets.ts'
import { endOutflow } from '../../db/outflows.ts'
import { noteUnswept } from '../../db/unswept.ts'
import { assert } from '../../domain/assert.ts'
import { type AssetId, assetOf, assets } from '../../domain/catalog/assets.ts'
import { type ChainId, chainFacts, chainIds } from '../../domain/catalog/networks.ts'
import { amountOf } from '../../domain/money/amount.ts'
import { rateBetween } from '../../domain/money/rate.ts'
import type { Fact } from '../../domain/orders/facts.ts'
import { type BlockRef, nothingFailed, type Order } from '../../domain/orders/order.ts'
import type { KeyPath } from '../../domain/payouts/intent.ts'
import type { RateType } from '../../domain/quotes/quote.ts'
import { openAlarms } from '../alarms.ts'
import { apply } from '../apply.ts'
import { bookHouseDeposits, noteHouseDeposit } from '../books/house.ts'
import { defaultPolicy } from '../default_policy.ts'
import type { Log, World } from '../world.ts'
import { nobodyElse } from './nobody_else.ts'
import { type PaperChain, paperChain } from './paper_chain.ts'

/** A real database with the service's schema, and paper chains. Orders are moved by facts through `apply`, as ever. */
export type BooksStage = {
  readonly world: World
  /** Without the limits in time that the service has. */
  readonly db: Database
  /** Where `db` leads. */
  readonly databaseUrl: string
  readonly chains: ReadonlyMap<ChainId, PaperChain>
  chain(id: ChainId): PaperChain
  readonly logged: {
    readonly level: 'info' | 'warn' | 'error'
    readonly message: string
    readonly facts: object
  }[]
  /** As a superuser, who may do to the books what the service may not. */
  corrupt(sql: string, values?: readonly unknown[]): Promise<void>
  /** The database as somebody who is not the role of the service sees it. */
  readonly asOwner: Sql
  /** Ends the connections of the service that `which` describes in pg_stat_activity; answers how many. */
  kill(which: string): Promise<number>
  /** Empties tables that `reset` leaves alone, all that refer to each other together. */
  empty(...tables: readonly string[]): Promise<void>
  /** Empties every table of orders, chains and books, and begins with new chains at block 100. */
  reset(): Promise<void>
  advance(durationMs: number): void
  stop(): Promise<void>
}

export async function openBooksStage(name: string): Promise<BooksStage> {
  const folder = mkdtempSync(join(tmpdir(), `cambist-${name}-`))
  const dataDir = join(folder, 'postgres')
  const server = await startMigratedPostgres(dataDir)
  const db = openTestDatabase(server.url, name)
  const superuser = new pg.Client({ connectionString: server.url })
  await superuser.connect()
  const chains = new Map<ChainId, PaperChain>()
  const logged: BooksStage['logged'] = []
  let nowMs = 1_800_000_000_000
  const world = openWorld(db, chains, logged, () => nowMs)
  return {
    world,
    db,
    databaseUrl: server.url,
    chains,
    logged,
    chain: (id) => {
      const chain = chains.get(id)
      assert(chain !== undefined, `${id} is on the stage`)
      return chain
    },
    corrupt: async (sql, values = []) => {
      await superuser.query(sql, [...values])
    },
    asOwner: { query: async (text, values = []) => (await superuser.query(text, [...values])).rows },
    kill: async (which) => {
      const { rowCount } = await superuser.query(
        `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND ${which}`,
      )
      return rowCount ?? 0
    },
    empty: (...tables) => emptyTables(superuser, tables),
    reset: async () => {
      await emptyTables(superuser, EMPTIED)
      logged.length = 0
      for (const id of chainIds) {
        chains.set(id, paperChain(id))
        await lookedAt({ db, chains, nowMs }, id, 100, null)
      }
    },
    advance: (durationMs) => {
      nowMs += durationMs
    },
    stop: async () => {
      await superuser.end()
      await db.close()
      await server.stop()
      removePostgres(dataDir)
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

/** With all that refers to them. */
const EMPTIED = [
  ...['orders', 'facts', 'events', 'deposits', 'journal', 'outflows', 'attempts', 'addresses', 'coins'],
  ...['account_nonces', 'house_deposits', 'unswept_addresses', 'rate_locks', 'retry_slots', 'leases'],
  ...['chain_heads', 'chain_blocks', 'reserves', 'reconciliations', 'reconciliation_turns', 'opened_assets'],
  ...['resting_balances', 'resting_sums', 'wallet_movements', 'wallet_sums', 'keystore_differences'],
  ...['verdicts', 'operator_words'],
  ...['webhook_lines', 'webhook_deliveries', 'webhook_attempts'],
]

/** The watcher has looked at everything up to `height`, and the node has no more; up to `final` it has found that to be final. */
async function lookedAt(
  { db, chains, nowMs }: { db: Database; chains: ReadonlyMap<ChainId, PaperChain>; nowMs: number },
  id: ChainId,
  height: number,
  final: number | null,
): Promise<void> {
  const chain = chains.get(id)
  chain?.setHead(height)
  const hash = await chain?.blockHash(height)
  await db.query(
    `INSERT INTO chain_heads (chain, height, hash, node_height, looked_at_ms, looked_wall_ms, final_height)
     VALUES ($1, $2, $3, $2, $4, $4, $5) ON CONFLICT (chain) DO UPDATE SET height = $2, hash = $3, node_height = $2,
       looked_at_ms = $4, looked_wall_ms = $4, final_height = $5`,
    [id, height, hash, nowMs, final],
  )
  const blocks = await blocksUpTo(chain, height)
  await db.query('DELETE FROM chain_blocks WHERE chain = $1 AND height > $2', [id, height])
  await db.query(
    `INSERT INTO chain_blocks (chain, height, hash) SELECT $1, * FROM unnest($2::bigint[], $3::text[])
     ON CONFLICT (chain, height) DO UPDATE SET hash = excluded.hash`,
    [id, blocks.map((block) => block.height), blocks.map((block) => block.hash)],
  )
  await noteOpened(db, chain?.assets ?? [], 0)
}

/** As many as any test goes back. */
const BLOCKS_TOLD = 30

async function blocksUpTo(chain: PaperChain | undefined, height: number): Promise<readonly BlockRef[]> {
  const blocks: BlockRef[] = []
  for (let at = Math.max(0, height - BLOCKS_TOLD); at <= height; at += 1) {
    const hash = (await chain?.blockHash(at)) ?? null
    if (hash !== null) blocks.push({ height: at, hash })
  }
  return blocks
}

export function lookAt(
  stage: BooksStage,
  id: ChainId,
  height: number,
  final: number | null = null,
): Promise<void> {
  return lookedAt({ db: stage.db, chains: stage.chains, nowMs: stage.world.clock.nowMs() }, id, height, final)
}

function openWorld(
  db: Database,
  chains: ReadonlyMap<ChainId, PaperChain>,
  logged: BooksStage['logged'],
  nowMs: () => number,
): World {
  const log = Object.fromEntries(
    (['info', 'warn', 'error'] as const).map((level) => [
      level,
      (facts: object, message: string) => logged.push({ level, message, facts }),
    ]),
  ) as unknown as Log
  return {
    db,
    chains,
    log,
    clock: {
      nowMs,
      wallMs: nowMs,
      fromWallMs: (wallMs) => wallMs,
      // Others go on meanwhile: whoever sleeps again and again until somebody is ready keeps nobody from it.
      sleep: () => new Promise((resolve) => setImmediate(resolve)),
      endOfTurn: async () => {},
    },
    prices: { usd: () => 1_000_000_000_000n },
    market: {
      assets: new Set(assets.map(({ id }) => id)),
      refresh: async () => {},
      isChainUp: () => true,
      isOffered: () => true,
      isUsable: () => true,
      isPriced: () => true,
      isLockHeld: () => true,
      headHeight: () => null,
      read: () => ({ ok: false, rejection: { code: 'MAINTENANCE', message: 'no market on the stage' } }),
      reserve: ({ id }) => amountOf(id, 10n ** 30n),
      setAside: (_settlement, _amount, work) => work(),
      payoutCost: () => null,
      costOf: () => null,
    },
    policy: defaultPolicy,
    alarms: openAlarms(),
    tokens: {},
    evmChainIds: { ETH: 31337, BNB: 31338 },
  }
}

/** Orders that a database was given; also how long a turn through their addresses takes, so each begins at none. */
const ordersMade = new WeakMap<Sql, number>()

/** A new order from `from` to `to`, with a deposit address of its own. */
export async function placeOrder(
  stage: Pick<BooksStage, 'db' | 'world'>,
  from: AssetId,
  to: AssetId,
  amounts: { readonly asks: bigint; readonly promises: bigint; readonly rateType?: RateType },
  depositAddress: string | null = null,
): Promise<Order> {
  const index = (ordersMade.get(stage.db) ?? 0) + 1
  ordersMade.set(stage.db, index)
  const number = String(index)
  const nowMs = stage.world.clock.nowMs()
  const order: Order = {
    terms: {
      id: `CB${number.padStart(16, '0')}`,
      accountId: 'acc_stage',
      createdAtMs: nowMs,
      expiresAtMs: nowMs + 900_000,
      rateType: amounts.rateType ?? 'fixed',
      from,
      to,
      asks: amountOf(from, amounts.asks),
      promises: amountOf(to, amounts.promises),
      rate: rateBetween(amountOf(from, amounts.asks), amountOf(to, amounts.promises), 'down'),
      fee: amountOf(to, 7n),
      feeShare: 100n,
      networkFee: amountOf(to, 3n),
      destination: `outside-${number}`,
      destinationTag: null,
      callbackUrl: null,
      depositAddress: depositAddress ?? `deposit-${number}`,
      depositTag: null,
      requiredConfirmations: chainFacts[assetOf(from).chain].confirmations,
      tolerance: amountOf(from, 0n),
      slippage: 200n,
    },
    refundAddress: null,
    deposits: [],
    state: { status: 'NEW' },
    sequence: 1,
    updatedAtMs: nowMs,
    outflowCount: 0,
    isOutflowCommitted: false,
    failedCosts: nothingFailed({ from, to }),
    firstEmergencyAtMs: null,
  }
  const { terms } = order
  await keepAddress(stage, terms.depositAddress, { purpose: 'deposit', index }, from, 'free')
  const row = {
    order,
    secrets: { tokenHash: Buffer.from(terms.id), seal: 'seal' },
    snapshot: {},
    retry: { slot: `key:${number}`, bodyHash: '', atWallMs: nowMs },
  }
  // Not the first that is free: that may be another's, made at the same moment.
  const { family } = chainFacts[assetOf(from).chain]
  const { deposits } = await insertNewOrders(stage.db, family, [row], index)
  assert(deposits.has(terms.id), `${terms.id} was created`)
  return order
}

async function keepAddress(
  stage: Pick<BooksStage, 'db' | 'world'>,
  address: string,
  { purpose, index }: KeyPath,
  asset: AssetId,
  use: 'free' | 'given',
): Promise<void> {
  const { chain } = assetOf(asset)
  const isGiven = use === 'given' && purpose !== 'reserve'
  await stage.db.query(
    `INSERT INTO addresses (family, address, purpose, key_index, chain, assigned_at_ms)
     VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT DO NOTHING`,
    [
      chainFacts[chain].family,
      address,
      purpose,
      index,
      isGiven ? chain : null,
      isGiven ? stage.world.clock.nowMs() : null,
    ],
  )
}

export async function tell(
  stage: BooksStage,
  orderId: string,
  key: string,
  fact: Fact,
  alongside?: (tx: Sql) => Promise<void>,
): Promise<void> {
  const applied = await apply(stage.world, orderId, key, fact, alongside)
  assert(
    applied.kind === 'changed',
    `${fact.kind} ${key} changes ${orderId}: ${JSON.stringify(applied.kind)}`,
  )
}

/** A deposit in the block at `height`, on the chain and in the books, not deep yet; answers its key. */
export async function mineDeposit(
  stage: BooksStage,
  { terms }: Order,
  units: bigint,
  height: number,
  asset: AssetId = terms.from,
): Promise<string> {
  const chain = stage.chain(assetOf(asset).chain)
  const txHash = `deposit-tx-${terms.id}-${units}`
  const key = `${chain.id}:${txHash}:0`
  chain.move(height, asset, terms.depositAddress, units)
  const hash = (await chain.blockHash(height)) ?? 'above the head'
  await tell(stage, terms.id, `${key}:mined:${hash}`, {
    kind: 'DepositSeen',
    key,
    txHash,
    amount: amountOf(asset, units),
    seenAtMs: stage.world.clock.nowMs(),
    block: { height, hash },
  })
  return key
}

export async function confirmDeposit(stage: BooksStage, { terms }: Order, key: string): Promise<void> {
  const { chain } = assetOf(terms.from)
  await tell(stage, terms.id, `${key}:confirmed:blockhash`, { kind: 'DepositConfirmed', key }, (tx) =>
    noteUnswept(tx, chain, terms.depositAddress, stage.world.clock.nowMs()),
  )
}

/** Priced, signed and broadcast: on its way and in no block. Answers the payout's id and transaction. */
export async function sendPayout(stage: BooksStage, { terms }: Order) {
  await tell(stage, terms.id, 'priced:1', { kind: 'ExchangePriced', quote: null })
  const payoutId = `${terms.id}:1`
  const txHash = `payout-tx-${terms.id}`
  await writeAttempt(stage, payoutId, 1, txHash)
  await tell(stage, terms.id, `${payoutId}:broadcast:1`, { kind: 'PayoutBroadcast', payoutId, txHash })
  return { payoutId, txHash }
}

/** The bytes as stored before they are sent. */
export async function writeAttempt(
  stage: BooksStage,
  payoutId: string,
  attempt: number,
  txHash: string,
): Promise<void> {
  const bucket = payoutId.startsWith('CB') ? Number.parseInt(payoutId.slice(16, 18), 10) : 0
  const [outflow] = await stage.db.query<{ chain: ChainId }>(
    'SELECT chain FROM outflows WHERE bucket = $1 AND payout_id = $2',
    [bucket, payoutId],
  )
  assert(outflow !== undefined, `${payoutId} is planned`)
  const intent = { family: chainFacts[outflow.chain].family, inputs: [] }
  await stage.db.query(
    `INSERT INTO attempts (bucket, payout_id, attempt, intent, tx_hash, bytes, answer, drafted_at_ms, broadcast_at_ms)
     VALUES ($1, $2, $3, $4, $5, 'ff', 'accepted', 1, 1)`,
    [bucket, payoutId, attempt, JSON.stringify(intent), txHash],
  )
  await stage.db.query(`UPDATE outflows SET state = 'broadcast' WHERE bucket = $1 AND payout_id = $2`, [
    bucket,
    payoutId,
  ])
}

/** On the chain: the reserve pays `units` of the asset and `cost` of the native coin. */
export function minePayout(
  stage: BooksStage,
  { terms }: Order,
  paid: { readonly txHash: string; readonly height: number; readonly units: bigint; readonly cost: bigint },
): void {
  const chain = stage.chain(assetOf(terms.to).chain)
  chain.mined(paid.txHash, paid.height, paid.cost)
  chain.move(paid.height, terms.to, RESERVE, -paid.units)
  chain.move(paid.height, `${chainFacts[chain.id].native}:${chain.id}`, RESERVE, -paid.cost)
}

/** Deep enough: in the books as well. */
export async function confirmPayout(
  stage: BooksStage,
  { terms }: Order,
  paid: {
    readonly payoutId: string
    readonly txHash: string
    readonly cost: bigint
    readonly height?: number
  },
): Promise<void> {
  const { payoutId, txHash, height = 100 } = paid
  const { chain } = assetOf(terms.to)
  const cost = amountOf(`${chainFacts[chain].native}:${chain}`, paid.cost)
  const applied = await apply(
    stage.world,
    terms.id,
    `${payoutId}:confirmed`,
    { kind: 'PayoutConfirmed', payoutId, txHash, cost },
    async (sql) => {
      const hash = (await stage.chain(chain).blockHash(height)) ?? 'above the head'
      await endOutflow(sql, payoutId, ['broadcast'], 'confirmed', { block: { height, hash }, cost })
    },
  )
  assert(applied.kind === 'changed', `the payout ends the order, ${applied.kind}`)
}

export const RESERVE = 'reserve-0'

/** The operator's reserves, in the block at 50 and booked. */
export async function fundReserve(stage: BooksStage, asset: AssetId, units: bigint): Promise<void> {
  await strayDeposit(stage, { asset, units, address: RESERVE, purpose: 'reserve', height: 50 })
  await bookHouseDeposits(stage.world, assetOf(asset).chain, 100, 0, nobodyElse)
}

/** Money to an address of ours that has no order, as the watcher notes it in a block. */
export async function strayDeposit(
  stage: BooksStage,
  stray: {
    readonly asset: AssetId
    readonly units: bigint
    readonly address: string
    readonly purpose: 'deposit' | 'reserve' | 'change'
    readonly height: number
  },
): Promise<void> {
  const { asset, units, address, purpose, height } = stray
  const chain = stage.chain(assetOf(asset).chain)
  const index = purpose === 'reserve' ? 0 : 1_000_000 + height
  await keepAddress(stage, address, { purpose, index }, asset, 'given')
  chain.move(height, asset, address, units)
  const own = { address, key: { purpose, index }, orderId: null, chain: null }
  const txHash = `house-tx-${asset}-${units}`
  const hash = (await chain.blockHash(height)) ?? 'above the head'
  const transfer = { id: `${txHash}:0`, txHash, to: address, asset, units }
  await noteHouseDeposit(stage.world, chain.id, transfer, own, { height, hash })
}
