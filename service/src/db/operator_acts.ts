import type { InstantMs } from '../domain/time.ts'
import { type AuditAct, readDetail } from './audit_log.ts'
import type { Sql } from './database.ts'

/** Who said something, when and why, as the audit log has it; null where it has no such row. */
export type WhoAndWhy = {
  readonly at_ms: InstantMs
  /** `ada@ops1`, as her machine had it. */
  readonly by: string | null
  readonly because: string | null
  readonly audit_chain: string | null
}

/** What an operator did, as its row in the audit log has it. */
export type OperatorAct = WhoAndWhy & {
  readonly subject: string
  readonly detail: Readonly<Record<string, unknown>>
}

type Row = { chain: string; subject: string; at_ms: InstantMs; detail: string }

/** What operators did to any of these, the earliest first. */
export async function readOperatorActs(
  sql: Sql,
  act: AuditAct,
  subjects: readonly string[],
): Promise<OperatorAct[]> {
  const rows = await sql.query<Row>(
    `SELECT chain, subject, at_ms, detail FROM audit_log
     WHERE actor = 'operator' AND act = $1 AND subject = ANY ($2) ORDER BY at_ms, chain, audit_log.sequence`,
    [act, subjects],
  )
  return rows.map(({ chain, subject, at_ms, detail: text }) => {
    const detail = readDetail(text)
    const because = typeof detail.because === 'string' ? detail.because : null
    return { subject, at_ms, by: nameOf(detail), because, audit_chain: chain, detail }
  })
}

function nameOf({ os_user, os_host }: OperatorAct['detail']): string {
  return typeof os_user === 'string' ? `${os_user}@${os_host}` : 'an operator'
}

export type Note = WhoAndWhy & { readonly subject: string }

/** What operators have noted about any of these, the earliest first. */
export async function readNotesAbout(sql: Sql, subjects: readonly string[]): Promise<Note[]> {
  const acts = await readOperatorActs(sql, 'noted', subjects)
  return acts.map(({ detail: _, ...note }) => note)
}
