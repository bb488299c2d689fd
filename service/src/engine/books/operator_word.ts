import type { Clock } from '../../clock.ts'
import { type AuditAct, appendAudit, type By, houseChain } from '../../db/audit_log.ts'
import { postForHouse } from '../../db/books.ts'
import type { Database, Sql } from '../../db/database.ts'
import { readOperatorActs, type WhoAndWhy } from '../../db/operator_acts.ts'
import { insertWord, type OperatorWord, type WordAct, wordEntryKey } from '../../db/operator_words.ts'
import { isAssetId } from '../../domain/catalog/assets.ts'
import { secondText } from '../../domain/instant_text.ts'
import {
  orphanWrittenOff,
  owedClosed,
  type Posting,
  reversed,
  unclaimedClosed,
} from '../../domain/ledger/postings.ts'
import { type Amount, amountOf, exactAmount } from '../../domain/money/amount.ts'

export type WordPlace = { readonly db: Database; readonly clock: Clock; readonly by: By }

/** What a word came to. */
export type Said = Pick<OperatorWord, 'act' | 'about' | 'asset' | 'units'> & {
  /** Null of a token that is not listed: the books do not have it. */
  readonly entryKey: string | null
  /** Where the audit log has it. */
  readonly auditChain: string
}

const postings: Readonly<Record<WordAct, (amount: Amount) => readonly Posting[]>> = {
  closed_unclaimed: unclaimedClosed,
  written_off: orphanWrittenOff,
  closed_owed: owedClosed,
}

/** What the audit log calls them. */
export const auditActs = {
  closed_unclaimed: 'unclaimed_closed',
  written_off: 'deposit_written_off',
  closed_owed: 'owed_closed',
} as const satisfies Record<WordAct, AuditAct>

/**
 * Writes a word down and books it, in the transaction that has found it right. Its row and its entry can exist once, whoever else says the
 * same. Answers the key of the entry; null of a token that is not listed.
 */
export async function bookWord(
  tx: Sql,
  clock: Clock,
  word: Omit<OperatorWord, 'at_ms'>,
): Promise<string | null> {
  const { act, asset, units } = word
  const nowMs = clock.nowMs()
  await insertWord(tx, { ...word, at_ms: nowMs })
  if (!isAssetId(asset)) return null
  const booked = postings[act](amountOf(asset, units < 0n ? -units : units))
  const entryKey = wordEntryKey(word)
  await postForHouse(tx, entryKey, units < 0n ? reversed(booked) : booked, nowMs)
  return entryKey
}

/** The same for what somebody said at the command line: the audit log has it as well. */
export async function sayWord(
  tx: Sql,
  { clock, by }: Omit<WordPlace, 'db'>,
  word: Omit<OperatorWord, 'at_ms'>,
): Promise<Said> {
  const { act, about, asset, units, because } = word
  const entryKey = await bookWord(tx, clock, word)
  const auditChain = houseChain(asset)
  await appendAudit(tx, {
    chain: auditChain,
    atMs: clock.wallMs(),
    act: auditActs[act],
    by,
    subject: about,
    detail: { asset, amount: amountTold(asset, units), because, entry: wordEntryKey(word) },
  })
  return { act, about, asset, units, entryKey, auditChain }
}

/** As the audit log has it; of a token that is not listed in its own units. */
export function amountTold(asset: string, units: bigint): string {
  return isAssetId(asset) ? exactAmount(amountOf(asset, units)) : `${units} units`
}

/** Whose word it was, when and why, as a refusal tells of it: two operators may give the same reason. */
export async function whoseWord(sql: Sql, word: OperatorWord): Promise<string> {
  const acts = await readOperatorActs(sql, auditActs[word.act], [word.about])
  const said = acts.find(({ detail }) => detail.entry === wordEntryKey(word))
  return whoWhenAndWhy(said ?? { ...word, by: null, audit_chain: null })
}

/** `by ada@ops1 on 2027-01-15 08:00:00Z: given back; see cambist audit show house_5`. */
export function whoWhenAndWhy({ at_ms, by, because, audit_chain }: WhoAndWhy): string {
  const who = by === null ? '' : `by ${by} `
  const why = because === null ? '' : `: ${because}`
  const where =
    audit_chain === null ? 'the audit log does not have it' : `see cambist audit show ${audit_chain}`
  return `${who}on ${secondText(at_ms)}Z${why}; ${where}`
}
