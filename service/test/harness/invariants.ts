import { auditBooks, auditChain } from '../../src/engine/ledger_audit.ts'
import type { Service } from '../../src/main.ts'
import { eventually } from './eventually.ts'

/** What is looked at; a TestSandbox is one. */
type Inspected = {
  readonly service: Service
  settle(): Promise<void>
  rows<Row extends object>(sql: string, values?: readonly unknown[]): Promise<Row[]>
  logLines(levelMin: number): readonly { readonly msg: string; readonly text: string }[]
  readonly secrets: ReadonlySet<string>
  readonly expectedErrors: ReadonlySet<string>
}

/**
 * What holds after any story: the books agree with themselves and with the chains, every order's events follow one
 * another without a gap, nothing was paid twice, and the log has neither secrets nor errors that no test expects.
 * Throws with everything that is wrong.
 */
export async function checkInvariants(sandbox: Inspected): Promise<void> {
  await sandbox.settle()
  const wrong = [
    ...(await findBookProblems(sandbox)),
    ...(await findEventGaps(sandbox)),
    ...(await findDoublePayments(sandbox)),
    ...findLogProblems(sandbox),
  ]
  if (wrong.length > 0) throw new Error(`after all tests this is wrong:\n  ${wrong.join('\n  ')}`)
}

async function findBookProblems({ service }: Inspected): Promise<string[]> {
  const { db, chains, clock } = service.world
  const audit = async () => {
    const books = await auditBooks(db)
    const byChain = []
    for (const chain of chains.values()) byChain.push(...(await auditChain(db, chain, clock)).problems)
    return [...books.problems, ...byChain].map(
      ({ subject, check, message }) => `${subject} (${check}): ${message}`,
    )
  }
  // Money may be between two tables at the moment of the look; what is still wrong a moment later is wrong.
  let last: string[] = []
  await eventually(
    'the books agree',
    async () => {
      last = await audit()
      if (last.length > 0) throw new Error(last.join('; '))
    },
    { timeoutMs: 4_000 },
  ).catch(() => {})
  return last
}

async function findEventGaps({ rows }: Inspected): Promise<string[]> {
  const found = await rows<{ order_id: string; story: string }>(
    `SELECT o.order_id, string_agg(e.sequence || ':' || coalesce(e.previous_status, '-') || '→' || e.status, ' '
        ORDER BY e.sequence) AS story
     FROM orders o LEFT JOIN (
       SELECT *, lag(status) OVER (PARTITION BY order_id ORDER BY sequence) AS before,
         lag(sequence, 1, 0) OVER (PARTITION BY order_id ORDER BY sequence) AS sequence_before,
         lead(sequence) OVER (PARTITION BY order_id ORDER BY sequence) AS sequence_after
       FROM events) e USING (bucket, order_id)
     GROUP BY o.order_id, o.sequence, o.status
     HAVING NOT bool_and(e.sequence = e.sequence_before + 1 AND e.previous_status IS NOT DISTINCT FROM e.before)
       OR max(e.sequence) IS DISTINCT FROM o.sequence
       OR max(e.status) FILTER (WHERE e.sequence_after IS NULL) IS DISTINCT FROM o.status`,
  )
  return found.map(({ order_id, story }) => `${order_id}: its events do not follow one another: ${story}`)
}

type SentAttempt = { order_id: string; payout_id: string; kind: string; chain: string; tx_hash: string }

/** Asks the nodes, not the tables: of all transactions ever signed for an order at most one may have paid. */
async function findDoublePayments({ rows, service }: Inspected): Promise<string[]> {
  const attempts = await rows<SentAttempt>(
    `SELECT o.order_id, o.payout_id, o.kind, o.chain, a.tx_hash
     FROM attempts a JOIN outflows o USING (bucket, payout_id) WHERE a.tx_hash IS NOT NULL`,
  )
  const paid = new Map<string, string[]>()
  for (const { order_id, chain, tx_hash } of attempts) {
    const status = await [...service.world.chains.values()].find(({ id }) => id === chain)?.lookup(tx_hash)
    if (status?.where !== 'block' || !status.succeeded) continue
    paid.set(order_id, [...(paid.get(order_id) ?? []), tx_hash])
  }
  return [...paid]
    .filter(([, hashes]) => hashes.length > 1)
    .map(([orderId, hashes]) => `${orderId} was paid ${hashes.length} times: ${hashes.join(', ')}`)
}

function findLogProblems({ logLines, secrets, expectedErrors }: Inspected): string[] {
  const ERROR = 50
  const leaks = logLines(0)
    .filter(({ text }) => [...secrets].some((secret) => text.includes(secret)))
    .map(({ msg }) => `the log tells a secret: ${msg}`)
  const errors = logLines(ERROR)
    .filter(({ text }) => ![...expectedErrors].some((expected) => text.includes(expected)))
    .map(({ text }) => `the log has an error that no test expects: ${text.slice(0, 800)}`)
  return [...leaks, ...errors]
}
