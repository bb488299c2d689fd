import type { Sql } from '../../db/database.ts'
import { findOtherUse, findUnclaimed, ownerOf, type Unclaimed } from '../../db/house_deposits.ts'
import { isClosing, lockDeposit, lockWords, type OperatorWord, readWords } from '../../db/operator_words.ts'
import { type ChainId, isChainId } from '../../domain/catalog/networks.ts'
import { accept, type Outcome, refuse } from '../../domain/outcome.ts'
import { show } from './audit_order.ts'
import { type Said, sayWord, type WordPlace, whoseWord } from './operator_word.ts'

/**
 * Closes unclaimed money that was given back, or turned out to be ours: it is capital from here on (docs/decisions/0049). What is closed
 * and has left its chain since is turned round by the same word. Refuses what the list says may not be given back.
 */
export function closeUnclaimed(
  { db, ...place }: WordPlace,
  depositKey: string,
  because: string,
): Promise<Outcome<Said>> {
  return db.transaction(async (tx) => {
    const chain = depositKey.split(':')[0] ?? ''
    if (!isChainId(chain)) return refuse(unknown(depositKey))
    await lockWords(tx, 'closed_unclaimed', depositKey)
    await lockDeposit(tx, chain, depositKey)
    const judged = await judge(tx, chain, depositKey)
    return judged.ok ? accept(await sayWord(tx, place, { ...judged.value, because })) : judged
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

type Judged = Omit<OperatorWord, 'at_ms' | 'because'>

async function judge(tx: Sql, chain: ChainId, key: string): Promise<Outcome<Judged>> {
  const found = await findUnclaimed(tx, chain, key)
  const words = await readWords(tx, 'closed_unclaimed', key)
  const newest = new Map(words.map((word) => [word.owner, word]))
  const closing = [...newest.values()].find(isClosing)
  if (closing !== undefined) return judgeClosed(tx, closing, found)
  const one = found.find(({ state }) => state === 'confirmed') ?? found[0]
  if (one === undefined) {
    const use = await findOtherUse(tx, chain, key)
    return refuse(use === null ? unknown(key) : { code: 'not_unclaimed', message: `${key} ${use}.` })
  }
  const reasons = whyNotYet(one)
  if (reasons.length > 0) {
    return refuse({ code: 'not_yet', message: `${key}: not yet: ${reasons.join(', and ')}.` })
  }
  const owner = ownerOf(one)
  const number = (newest.get(owner)?.number ?? 0) + 1
  return accept({ act: 'closed_unclaimed', owner, about: key, number, asset: one.asset, units: one.units })
}

/** Only what is there no more, or has come back as something else, is turned round. */
async function judgeClosed(
  tx: Sql,
  closing: OperatorWord,
  found: readonly Unclaimed[],
): Promise<Outcome<Judged>> {
  const { act, owner, about, number, asset, units } = closing
  const there = found.find((one) => ownerOf(one) === owner)
  const isSame = there?.asset === asset && there.units === units
  if (there?.state === 'confirmed' && isSame) {
    return refuse({ code: 'closed', message: `${about} was closed ${await whoseWord(tx, closing)}` })
  }
  if (there !== undefined && there.state !== 'confirmed') {
    const message = `${about} has lost its block and may come back; ${show(asset, units)} of it was closed ${await whoseWord(tx, closing)}`
    return refuse({ code: 'may_come_back', message })
  }
  return accept({ act, owner, about, number: number + 1, asset, units: -units })
}

function unknown(key: string) {
  const message = `There is no deposit ${key}: \`cambist order unclaimed\` has the keys under DEPOSIT.`
  return { code: 'unknown', message }
}
