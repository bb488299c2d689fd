import { type AuditRow, houseChain, readDetail } from '../../db/audit_log.ts'
import { OPERATOR } from '../../db/books.ts'
import type { HouseEntry } from '../../db/house_entries.ts'
import { isAssetId } from '../../domain/catalog/assets.ts'
import { amountOf, exactAmount } from '../../domain/money/amount.ts'
import { type Problem, show } from './audit_order.ts'

/**
 * Lines of the house that neither a deposit nor an outflow explains, against the rows of the audit log by which operators have booked:
 * each entry of theirs has one row of just that, and each row its entry (docs/decisions/0048). Pure.
 */
export function auditHouseEntries(entries: readonly HouseEntry[], rows: readonly AuditRow[]): Problem[] {
  const words = rows.map(readWord)
  const strangers = entries.filter(({ key }) => !key.startsWith(OPERATOR))
  const operators = Map.groupBy(
    entries.filter(({ key }) => key.startsWith(OPERATOR)),
    ({ key }) => key,
  )
  return [
    ...strangers.map(describeStranger),
    ...[...operators].flatMap(([key, lines]) => auditOperatorEntry(key, lines, words)),
    ...words.filter(({ entry }) => !operators.has(entry)).map(describeLonely),
  ]
}

/** What a row of the audit log says was booked. */
type Word = {
  /** Which row it is, as the operator finds it. */
  readonly row: string
  readonly chain: string
  readonly asset: string
  readonly entry: string
  readonly amount: string
}

function readWord({ chain, sequence, subject, detail }: AuditRow): Word {
  const { entry, amount } = readDetail(detail)
  const row = `row ${sequence} of ${chain} in the audit log`
  return { row, chain, asset: subject ?? '', entry: String(entry), amount: String(amount) }
}

function describeStranger({ key, asset, debit, credit, units }: HouseEntry): Problem {
  const moved = `${show(asset, units)} from ${credit} to ${debit}`
  return problem(asset, `the entry ${key} of the house moves ${moved}, and nothing here makes such an entry`)
}

function auditOperatorEntry(key: string, lines: readonly HouseEntry[], words: readonly Word[]): Problem[] {
  const [line] = lines
  const asset = line?.asset ?? ''
  const amount = line === undefined || lines.length > 1 ? null : bookedBy(line)
  if (amount === null) return [problem(asset, `the entry ${key} is none that \`ledger book\` makes`)]
  const told = words.filter(({ entry }) => entry === key)
  const isOfIt = (word: Word) =>
    word.chain === houseChain(asset) && word.asset === asset && word.amount === amount
  if (told.length === 1 && told.every(isOfIt)) return []
  const says = told.map((word) => `${word.row} says ${word.amount} ${word.asset}`).join(', and ')
  const against = told.length === 0 ? 'no row of the audit log says so' : says
  return [problem(asset, `the entry ${key} books ${amount} ${asset}, and ${against}`)]
}

/** The amount that the audit log has to have; null when it is nothing that an operator books. */
function bookedBy({ key, asset, debit, credit, units }: HouseEntry): string | null {
  if (!isAssetId(asset) || !key.startsWith(`${OPERATOR}${asset}:`)) return null
  if (debit === 'wallet' && credit === 'capital') return exactAmount(amountOf(asset, units))
  if (debit === 'capital' && credit === 'wallet') return exactAmount(amountOf(asset, -units))
  return null
}

function describeLonely({ row, asset, entry, amount }: Word): Problem {
  return problem(
    asset,
    `${row} says that ${entry} booked ${amount} ${asset}, and the journal has no such entry`,
  )
}

function problem(asset: string, message: string): Problem {
  return { subject: asset, check: 'journal', message }
}
