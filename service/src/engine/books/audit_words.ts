import { type AuditRow, houseChain, readDetail } from '../../db/audit_log.ts'
import { type OperatorWord, wordEntryKey } from '../../db/operator_words.ts'
import type { Problem } from './audit_order.ts'
import { amountTold } from './operator_word.ts'

/**
 * Words of operators against the rows of the audit log: each has one row of just that, and each row its word. What was turned round by
 * itself nobody has said. Pure.
 */
export function auditWords(words: readonly OperatorWord[], rows: readonly AuditRow[]): Problem[] {
  const told = Map.groupBy(rows, entryOf)
  const keys = new Set(words.map(wordEntryKey))
  return [
    ...words.filter(isSaid).flatMap((word) => {
      const [row, ...others] = told.get(wordEntryKey(word)) ?? []
      if (row !== undefined && others.length === 0 && isOf(row, word)) return []
      return [
        problem(
          word.about,
          `the audit log does not have, once, that an operator has said ${wordEntryKey(word)}`,
        ),
      ]
    }),
    ...[...told.keys()]
      .filter((key) => !keys.has(key))
      .map((key) =>
        problem(key, 'the audit log has that an operator has said it, and there is no such word'),
      ),
  ]
}

function isSaid({ act, units }: OperatorWord): boolean {
  return act === 'closed_unclaimed' || units > 0n
}

function isOf({ chain, subject, detail }: AuditRow, { about, asset, units }: OperatorWord): boolean {
  const { amount } = readDetail(detail)
  return chain === houseChain(asset) && subject === about && amount === amountTold(asset, units)
}

function entryOf({ detail }: AuditRow): string {
  return String(readDetail(detail).entry)
}

function problem(subject: string, message: string): Problem {
  return { subject, check: 'journal', message }
}
