import type { Sql } from '../../db/database.ts'
import { findOtherUse, findUnclaimed, ownerOf, type Unclaimed } from '../../db/house_deposits.ts'
import { isClosing, lockDeposit, lockWords, type OperatorWord, readWords } from '../../db/operator_words.ts'
import { type ChainId, isChainId } from '../../domain/catalog/networks.ts'
import { accept, type Outcome, refuse } from '../../domain/outcome.ts'
import { show } from './audit_order.ts'
import { type Said, sayWord, type WordPlace, whoseWord } from './operator_word.ts'

/**
 * Closes unclaimed money that was given back, or turned out to be ours: it is capital from here on (docs/decisions/0049). Refuses what
 * the list says may not be given back yet, and unless it is `told` so what the list says may have been paid already.
 */
export function closeUnclaimed(
  place: WordPlace,
  depositKey: string,
  because: string,
  told: 'even so' | null,
): Promise<Outcome<ClosedUnclaimed>> {
  return say(place, depositKey, because, (...given) => judgeUnclaimed(told, ...given))
}

/**
 * Takes what is closed, and has left its chain since or is another amount there, off capital again. A word of its own, so that who
 * closes twice, not knowing whether it was taken, never says the other.
 */
export function takeBackClosed(
  place: WordPlace,
  depositKey: string,
  because: string,
): Promise<Outcome<ClosedUnclaimed>> {
  return say(place, depositKey, because, judgeGone)
}

/** `doubt`: why it may have been paid already, in the words of the list; null where nothing says so. */
export type ClosedUnclaimed = Said & { readonly doubt: string | null }

type Judge = (tx: Sql, key: string, deposit: Case) => Promise<Outcome<Judged>>

type Judged = Omit<OperatorWord, 'at_ms' | 'because'> & Pick<ClosedUnclaimed, 'doubt'>

/** What there is of a deposit: what came, the newest word of each whom it was, and the one that closes it. */
type Case = {
  readonly chain: ChainId
  readonly found: readonly Unclaimed[]
  readonly newest: ReadonlyMap<string, OperatorWord>
  readonly closing: OperatorWord | undefined
}

function say(
  { db, ...place }: WordPlace,
  depositKey: string,
  because: string,
  judge: Judge,
): Promise<Outcome<ClosedUnclaimed>> {
  return db.transaction(async (tx) => {
    const chain = depositKey.split(':')[0] ?? ''
    if (!isChainId(chain)) return refuse(unknown(depositKey))
    await lockWords(tx, 'closed_unclaimed', depositKey)
    await lockDeposit(tx, chain, depositKey)
    const judged = await judge(tx, depositKey, await readCase(tx, chain, depositKey))
    if (!judged.ok) return judged
    const { doubt, ...word } = judged.value
    return accept({ ...(await sayWord(tx, place, { ...word, because })), doubt })
  })
}

/** Why something may not be given back yet, in the words of the list; none where it may. */
export function whyNotYet({ is_final, may_count, may_replace, status }: Unclaimed): readonly string[] {
  return [
    ...(is_final ? [] : ['it is not final']),
    ...(may_count ? [`the order is ${status}`] : []),
    ...(may_replace ? ['what the order was paid for is gone'] : []),
  ]
}

/** Why something may have been paid already, in the words of the list; null where nothing says so. */
export function whyInDoubt({ was_closed, was_written_off }: Unclaimed): string | null {
  if (was_written_off) return 'it may be what was written off of its order; see order show'
  // What was closed before was given back, as likely as not: why it was, is in the other list.
  return was_closed ? 'it was closed before, and is back; see --closed' : null
}

async function readCase(tx: Sql, chain: ChainId, key: string): Promise<Case> {
  const found = await findUnclaimed(tx, chain, key)
  const words = await readWords(tx, 'closed_unclaimed', key)
  const newest = new Map(words.map((word) => [word.owner, word]))
  return { chain, found, newest, closing: [...newest.values()].find(isClosing) }
}

async function judgeUnclaimed(
  told: 'even so' | null,
  tx: Sql,
  key: string,
  { chain, found, newest, closing }: Case,
): Promise<Outcome<Judged>> {
  if (closing !== undefined) {
    const refusal = await whyStillClosed(tx, closing, found)
    return refuse(refusal ?? (await closedAndGone(tx, closing)))
  }
  const one = found.find(({ state }) => state === 'confirmed') ?? found[0]
  if (one === undefined) {
    const use = await findOtherUse(tx, chain, key)
    return refuse(use === null ? unknown(key) : { code: 'not_unclaimed', message: `${key} ${use}.` })
  }
  const reasons = whyNotYet(one)
  if (reasons.length > 0) {
    return refuse({ code: 'not_yet', message: `${key}: not yet: ${reasons.join(', and ')}.` })
  }
  const doubt = whyInDoubt(one)
  if (doubt !== null && told !== 'even so') {
    const message = `${key}: no: ${doubt}. It may have been paid already. Where it is ours, or you know that nobody was paid for it, --even-so closes it.`
    return refuse({ code: 'in_doubt', message })
  }
  const owner = ownerOf(one)
  const number = (newest.get(owner)?.number ?? 0) + 1
  const { asset, units } = one
  return accept({ act: 'closed_unclaimed', owner, about: key, number, asset, units, doubt })
}

async function judgeGone(tx: Sql, key: string, { found, closing }: Case): Promise<Outcome<Judged>> {
  if (closing === undefined) return refuse({ code: 'not_closed', message: `${key} is not closed.` })
  const refusal = await whyStillClosed(tx, closing, found)
  if (refusal !== null) return refuse(refusal)
  const { act, owner, about, number, asset, units } = closing
  return accept({ act, owner, about, number: number + 1, asset, units: -units, doubt: null })
}

type Refusal = { readonly code: string; readonly message: string }

/** Why what is closed stays so: it is there as it was, or may come back. Null where it is gone, or has come back as something else. */
async function whyStillClosed(
  tx: Sql,
  closing: OperatorWord,
  found: readonly Unclaimed[],
): Promise<Refusal | null> {
  const { owner, about, asset, units } = closing
  const there = found.find((one) => ownerOf(one) === owner)
  const isSame = there?.asset === asset && there.units === units
  if (there?.state === 'confirmed' && isSame) {
    return { code: 'closed', message: `${about} was closed ${await whoseWord(tx, closing)}` }
  }
  if (there === undefined || there.state === 'confirmed') return null
  const message = `${about} has lost its block and may come back; ${show(asset, units)} of it was closed ${await whoseWord(tx, closing)}`
  return { code: 'may_come_back', message }
}

async function closedAndGone(tx: Sql, closing: OperatorWord): Promise<Refusal> {
  const { about, asset, units } = closing
  const whose = await whoseWord(tx, closing)
  const message = `${about}, of which ${show(asset, units)} is closed, is gone or is another amount by now: --gone takes that off capital again. It was closed ${whose}`
  return { code: 'gone', message }
}

function unknown(key: string) {
  const message = `There is no deposit ${key}: \`cambist order unclaimed\` has the keys under DEPOSIT.`
  return { code: 'unknown', message }
}
