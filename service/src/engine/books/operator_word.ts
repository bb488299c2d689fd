import type { Clock } from '../../clock.ts'
import { appendAudit, type By, houseChain } from '../../db/audit_log.ts'
import { postForHouse } from '../../db/books.ts'
import type { Database, Sql } from '../../db/database.ts'
import { insertWord, type OperatorWord, type WordAct, wordEntryKey } from '../../db/operator_words.ts'
import { isAssetId } from '../../domain/catalog/assets.ts'
import { orphanWrittenOff, type Posting, reversed, unclaimedClosed } from '../../domain/ledger/postings.ts'
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
}

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
    act: act === 'written_off' ? 'deposit_written_off' : 'unclaimed_closed',
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

/** `on 2027-01-15 08:00:00: given back`, as a refusal tells of an earlier word. */
export function whenAndWhy({ at_ms, because }: Pick<OperatorWord, 'at_ms' | 'because'>): string {
  return `on ${new Date(at_ms).toISOString().slice(0, 19).replace('T', ' ')}: ${because}`
}
