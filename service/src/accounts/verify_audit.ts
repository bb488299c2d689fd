import {
  type AuditHead,
  type AuditRow,
  auditChains,
  FIRST_PREVIOUS,
  findAuditHead,
  hashRow,
  readAuditRows,
} from '../db/audit_log.ts'
import type { Sql } from '../db/database.ts'

/** Something that nobody may have done: which row shows it, and how. */
export type AuditProblem = { readonly chain: string; readonly sequence: number; readonly message: string }

export type AuditVerdict = {
  readonly chainCount: number
  readonly rowCount: number
  readonly problems: readonly AuditProblem[]
}

/**
 * Goes through every chain row by row. `noted` are heads that somebody wrote down earlier, outside the database: with
 * them also whoever wrote a whole chain anew, head included, is found out. Rows that are written meanwhile do no harm.
 */
export async function verifyAudit(sql: Sql, noted: readonly AuditHead[]): Promise<AuditVerdict> {
  const notedByChain = new Map(noted.map((head) => [head.chain, head]))
  const chains = new Set([...(await auditChains(sql)), ...notedByChain.keys()])
  const problems: AuditProblem[] = []
  let rowCount = 0
  for (const chain of chains) {
    const walked = await walkChain(sql, chain, notedByChain.get(chain) ?? null)
    problems.push(...walked.problems)
    rowCount += walked.rowCount
  }
  return { chainCount: chains.size, rowCount, problems }
}

const ROWS_A_READ = 1_000

type Walk = {
  readonly chain: string
  readonly problems: AuditProblem[]
  /** Rows that must be there as they were: the head, and what was noted. */
  readonly expected: readonly { readonly head: AuditHead; readonly otherwise: string }[]
  rowCount: number
  /** Of the last row. */
  sequence: number
  hash: string
}

async function walkChain(sql: Sql, chain: string, noted: AuditHead | null): Promise<Walk> {
  // Before the rows: whatever is written meanwhile, what this head ends with is among them.
  const head = await findAuditHead(sql, chain)
  const expected = [
    ...(head === null ? [] : [{ head, otherwise: 'is not the row that ended its chain' }]),
    ...(noted === null ? [] : [{ head: noted, otherwise: 'is not the row whose hash was noted' }]),
  ]
  const walk: Walk = { chain, problems: [], expected, rowCount: 0, sequence: 0, hash: FIRST_PREVIOUS }
  for (let isMore = true; isMore; ) {
    const rows = await readAuditRows(sql, chain, walk.sequence, ROWS_A_READ)
    for (const row of rows) step(walk, row)
    isMore = rows.length === ROWS_A_READ
  }
  judgeEnd(walk, await findAuditHead(sql, chain))
  return walk
}

/** Whatever is wrong with a row, the next is judged by what this one says: one change is told once. */
function step(walk: Walk, row: AuditRow): void {
  const sequence = Number.parseInt(row.sequence, 10)
  const wrong = (message: string) => void walk.problems.push({ chain: walk.chain, sequence, message })
  const missing = sequence - walk.sequence - 1
  if (missing > 0) wrong(missing === 1 ? 'lacks the row before it' : `lacks ${missing} rows before it`)
  else if (row.previous_hash !== walk.hash)
    wrong('does not follow the row before it: one of them was replaced')
  if (hashRow(row) !== row.hash) wrong('was changed: its hash is not that of what it says')
  for (const { head, otherwise } of walk.expected) {
    if (head.sequence === sequence && head.hash !== row.hash) wrong(otherwise)
  }
  walk.sequence = sequence
  walk.hash = row.hash
  walk.rowCount += 1
}

/** `headNow` is read after the rows: it may have moved on meanwhile, never back. */
function judgeEnd({ chain, problems, expected, sequence }: Walk, headNow: AuditHead | null): void {
  const ends = new Set(expected.map(({ head }) => head.sequence).filter((each) => each > sequence))
  for (const end of ends) {
    const message = `is missing: the chain was cut off after row ${sequence}`
    problems.push({ chain, sequence: end, message })
  }
  if (sequence === 0) return
  if (headNow === null) problems.push({ chain, sequence, message: 'ends a chain whose head is missing' })
  else if (headNow.sequence < sequence) {
    problems.push({ chain, sequence, message: 'was added behind the end of its chain' })
  }
}
