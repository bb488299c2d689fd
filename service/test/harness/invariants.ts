import type { Chain } from '../../src/chains/chain.ts'
import type { Clock } from '../../src/clock.ts'
import type { Database } from '../../src/db/database.ts'
import type { OrderStatus } from '../../src/domain/orders/order.ts'
import { legalMoves } from '../../src/domain/orders/testing/books.ts'
import { auditBooks } from '../../src/engine/books/audit_books.ts'
import { auditChain } from '../../src/engine/books/audit_chain.ts'
import { eventually } from './eventually.ts'

/** What is looked at: the database as the service has it, a reader that may see every table, and the chains themselves. */
export type Inspected = {
  readonly db: Database
  readonly chains: ReadonlyMap<string, Chain>
  readonly clock: Clock
  rows<Row extends object>(sql: string, values?: readonly unknown[]): Promise<Row[]>
}

type Invariant = {
  readonly name: string
  /** Everything that breaks it, a sentence each. */
  readonly find: (inspected: Inspected) => Promise<readonly string[]>
}

/** What holds after any story whatsoever, once the watchers have looked at all that the chains know. */
const invariants: readonly Invariant[] = [
  { name: 'the books agree with themselves', find: findBookProblems },
  { name: 'the ledger equals the chain', find: findChainDifferences },
  { name: 'an order has at most one live outflow', find: findRivalOutflows },
  { name: 'nothing is paid twice', find: findDoublePayments },
  { name: 'only legal transitions, in a sequence without gaps', find: findBadEvents },
  { name: 'who has chosen a refund is exchanged nothing that they did not ask for', find: findOverruled },
  {
    name: 'a credited deposit ends in a payout, a refund or an open obligation',
    find: findForgottenDeposits,
  },
  { name: 'nothing is credited below its confirmations or from an orphan', find: findUnconfirmedCredits },
  { name: 'nothing leaves for a deposit that was not confirmed before', find: findEarlyOutflows },
]

/** Everything that is wrong now, each with the invariant that it breaks. */
export async function findViolations(inspected: Inspected): Promise<string[]> {
  const found: string[] = []
  for (const { name, find } of invariants) {
    found.push(...(await find(inspected)).map((sentence) => `${name}: ${sentence}`))
  }
  return found
}

/**
 * Throws with everything that is wrong. Money may be between two tables at the moment of a look, so what is wrong has
 * to stay wrong for a while.
 */
export async function checkInvariants(inspected: Inspected): Promise<void> {
  let last: string[] = []
  const look = async () => {
    last = await findViolations(inspected)
    if (last.length > 0) throw new Error(last.join('; '))
  }
  await eventually('the invariants hold', look).catch((error: unknown) => {
    if (last.length === 0) throw error
  })
  if (last.length > 0) throw new Error(`this is wrong:\n  ${last.join('\n  ')}`)
}

/** Orders that neither ended nor wait for a person: with all faults off and all money buried there are none. */
export async function findUnended({ rows }: Pick<Inspected, 'rows'>): Promise<string[]> {
  const found = await rows<{ order_id: string; status: OrderStatus; trouble: string | null }>(
    `SELECT o.order_id, o.status, max(f.trouble) AS trouble
     FROM orders o LEFT JOIN outflows f USING (bucket, order_id)
     WHERE o.status IN ('NEW', 'PENDING', 'EXCHANGE', 'WITHDRAW', 'REFUND') GROUP BY o.order_id, o.status`,
  )
  return found.map(
    ({ order_id, status, trouble }) =>
      `${order_id} is still ${status}${trouble === null ? '' : `: ${trouble}`}`,
  )
}

/** What a chain has taken back for good after it was paid for is a loss that nothing here can prevent: the books agree about it. */
async function findBookProblems({ db }: Inspected): Promise<string[]> {
  const { problems } = await auditBooks(db)
  return problems.filter(({ check }) => check !== 'missing').map(describeProblem)
}

async function findChainDifferences({ db, chains, clock }: Inspected): Promise<string[]> {
  const found: string[] = []
  for (const chain of chains.values()) {
    found.push(...(await auditChain(db, chain, clock)).problems.map(describeProblem))
  }
  return found
}

function describeProblem({
  subject,
  check,
  message,
}: {
  subject: string
  check: string
  message: string
}): string {
  return `${subject} (${check}): ${message}`
}

/** The database forbids it by an index; asked again for those who took the index away. */
async function findRivalOutflows({ rows }: Inspected): Promise<string[]> {
  const found = await rows<{ order_id: string; payouts: string }>(
    `SELECT order_id, string_agg(payout_id || ' ' || state, ', ') AS payouts FROM outflows
     WHERE kind IN ('payout', 'refund') AND state IN ('planned', 'signed', 'broadcast', 'confirmed')
     GROUP BY bucket, order_id HAVING count(*) > 1`,
  )
  return found.map(({ order_id, payouts }) => `${order_id} has ${payouts}`)
}

type SignedFor = { order_id: string; chain: string; tx_hash: string }

/**
 * Asks the nodes, not the tables: of all transactions ever signed for an order at most one may have paid. Of a chain that is not there
 * nobody can say.
 */
export async function findDoublePayments({
  rows,
  chains,
}: Pick<Inspected, 'rows' | 'chains'>): Promise<string[]> {
  const signed = await rows<SignedFor>(
    `SELECT o.order_id, o.chain, tx_hash FROM outflows o JOIN attempts USING (bucket, payout_id)
     WHERE o.kind IN ('payout', 'refund') AND tx_hash IS NOT NULL
     UNION SELECT o.order_id, o.chain, s.tx_hash FROM outflows o JOIN signer.signed_transactions s USING (payout_id)
     WHERE o.kind IN ('payout', 'refund')`,
  )
  const paid = new Map<string, string[]>()
  const unasked: string[] = []
  await inTurns(signed, async ({ order_id, chain, tx_hash }) => {
    const node = chains.get(chain)
    if (node === undefined) unasked.push(`${order_id} has ${tx_hash} on ${chain}, and nobody asks there`)
    const status = await node?.lookup(tx_hash)
    if (status?.where !== 'block' || !status.succeeded) return
    paid.set(order_id, [...(paid.get(order_id) ?? []), tx_hash])
  })
  const twice = [...paid].filter(([, hashes]) => hashes.length > 1)
  return [
    ...unasked,
    ...twice.map(([orderId, hashes]) => `${orderId} was paid ${hashes.length} times: ${hashes.join(', ')}`),
  ]
}

async function findBadEvents({ rows }: Inspected): Promise<string[]> {
  const found = await rows<{ order_id: string; moves: string[]; is_broken: boolean }>(
    `SELECT o.order_id, coalesce(array_agg(e.previous_status || '→' || e.status ORDER BY e.sequence)
        FILTER (WHERE e.previous_status IS NOT NULL), '{}') AS moves,
       coalesce(NOT bool_and(e.sequence = e.sequence_before + 1 AND e.previous_status IS NOT DISTINCT FROM e.before), true)
       OR max(e.sequence) IS DISTINCT FROM o.sequence
       OR max(e.status) FILTER (WHERE e.sequence_after IS NULL) IS DISTINCT FROM o.status AS is_broken
     FROM orders o LEFT JOIN (
       SELECT *, lag(status) OVER (PARTITION BY order_id ORDER BY sequence) AS before,
         lag(sequence, 1, 0) OVER (PARTITION BY order_id ORDER BY sequence) AS sequence_before,
         lead(sequence) OVER (PARTITION BY order_id ORDER BY sequence) AS sequence_after
       FROM events) e USING (bucket, order_id)
     GROUP BY o.order_id, o.sequence, o.status`,
  )
  return found.flatMap(({ order_id, moves, is_broken }) => [
    ...(is_broken ? [`the events of ${order_id} do not follow one another: ${moves.join(' ')}`] : []),
    ...moves.filter((move) => !isLegal(move)).map((move) => `${order_id} made the move ${move}`),
  ])
}

function isLegal(move: string): boolean {
  const [from = '', to = ''] = move.split('→')
  return (legalMoves[from as OrderStatus] as readonly string[] | undefined)?.includes(to) === true
}

/** After a refund only an action leads to an exchange; or a payout that has one, and is made anew. */
async function findOverruled({ rows }: Inspected): Promise<string[]> {
  const found = await rows<{ order_id: string; previous_status: string; fact_key: string }>(
    `SELECT order_id, previous_status, fact_key FROM events e
     WHERE status = 'EXCHANGE' AND previous_status <> 'WITHDRAW' AND NOT starts_with(fact_key, 'action:')
       AND EXISTS (SELECT FROM events before WHERE (before.bucket, before.order_id) = (e.bucket, e.order_id)
                     AND before.status = 'REFUND' AND before.sequence < e.sequence)`,
  )
  return found.map(
    ({ order_id, previous_status, fact_key }) =>
      `${order_id} went from ${previous_status} to EXCHANGE by ${fact_key}`,
  )
}

async function findForgottenDeposits({ rows }: Inspected): Promise<string[]> {
  const found = await rows<{ order_id: string; status: string; deposit_key: string }>(
    `SELECT o.order_id, o.status, d.deposit_key FROM orders o JOIN deposits d USING (bucket, order_id)
     WHERE d.role = 'counted' AND d.state = 'confirmed' AND o.status IN ('NEW', 'EXPIRED')`,
  )
  return found.map(
    ({ order_id, status, deposit_key }) => `${order_id} is ${status} although ${deposit_key} is credited`,
  )
}

type Credit = {
  order_id: string
  deposit_key: string
  chain: string
  block_height: number
  block_hash: string
  required_confirmations: number
}

async function findUnconfirmedCredits({ rows, chains }: Inspected): Promise<string[]> {
  const credits = await rows<Credit>(
    `SELECT o.order_id, d.deposit_key, d.chain, d.block_height, d.block_hash, o.required_confirmations
     FROM orders o JOIN deposits d USING (bucket, order_id) WHERE d.state = 'confirmed'`,
  )
  const hashes = new Map<string, string | null>()
  const heads = new Map<string, number>()
  for (const [id, chain] of chains) {
    heads.set(id, (await chain.head()).height)
    const heights = new Set(
      credits.filter((credit) => credit.chain === id).map((credit) => credit.block_height),
    )
    await inTurns([...heights], async (height) => {
      hashes.set(`${id}:${height}`, await chain.blockHash(height))
    })
  }
  return credits.flatMap((credit) => {
    const { order_id, deposit_key, chain, block_height, block_hash, required_confirmations } = credit
    const depth = (heads.get(chain) ?? 0) - block_height + 1
    const stands = hashes.get(`${chain}:${block_height}`)
    if (stands !== block_hash)
      return [`${order_id} was credited ${deposit_key} from an orphan at ${block_height}`]
    return depth < required_confirmations
      ? [`${order_id} was credited ${deposit_key} at depth ${depth} of ${required_confirmations}`]
      : []
  })
}

/**
 * Of every outflow that was ever drafted. The order has the amount of the last one; of one before it only a refund's is known, and that
 * something had to be confirmed. Nothing may be left unsaid: what compares with nothing is wrong.
 */
export async function findEarlyOutflows({ rows }: Pick<Inspected, 'rows'>): Promise<string[]> {
  const found = await rows<{ payout_id: string; least: string | null; confirmed: string }>(
    `WITH drafted AS (
       SELECT f.payout_id,
         CASE WHEN f.payout_id = o.payout_id THEN coalesce(o.settled_received, o.refund_units + o.refund_network_fee)
           WHEN f.kind = 'refund' THEN f.units ELSE 1 END AS least,
         (SELECT coalesce(sum(d.units), 0) FROM deposits d
          WHERE (d.bucket, d.order_id) = (o.bucket, o.order_id)
            AND (d.role = 'counted' OR d.asset = o.from_asset AND f.payout_id IS DISTINCT FROM o.payout_id) AND EXISTS (
              SELECT FROM facts WHERE facts.bucket = o.bucket AND facts.order_id = o.order_id AND facts.outcome = 'changed'
                AND starts_with(facts.fact_key, d.deposit_key || ':confirmed:') AND facts.at_ms <= a.drafted_at_ms)
         ) AS confirmed
       FROM orders o JOIN outflows f USING (bucket, order_id)
       JOIN attempts a ON (a.bucket, a.payout_id, a.attempt) = (f.bucket, f.payout_id, 1)
       WHERE f.kind IN ('payout', 'refund'))
     SELECT payout_id, least::text, confirmed::text FROM drafted WHERE (confirmed >= least) IS NOT TRUE`,
  )
  return found.map(
    ({ payout_id, least, confirmed }) =>
      `${payout_id} was drafted for ${least ?? 'unknown'} units when ${confirmed} were confirmed`,
  )
}

const AT_ONCE = 16

async function inTurns<Item>(items: readonly Item[], work: (item: Item) => Promise<void>): Promise<void> {
  for (let start = 0; start < items.length; start += AT_ONCE) {
    await Promise.all(items.slice(start, start + AT_ONCE).map(work))
  }
}
