import type { Database } from '../../db/database.ts'
import { auditBooks } from '../books/audit_books.ts'

/** What an audit of the books finds, a line each. */
export async function toldProblems(db: Database): Promise<string[]> {
  const { problems } = await auditBooks(db)
  return problems.map(({ subject, check, message }) => `${subject} ${check}: ${message}`)
}
