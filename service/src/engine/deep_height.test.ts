import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { deepHeight } from './deep_height.ts'
import { type BooksStage, lookAt, openBooksStage } from './testing/books_stage.ts'
import { paperChain } from './testing/paper_chain.ts'

/** What: what is deep for whoever pays is final on the branch that the watcher has read. How: a real PostgreSQL, a chain on paper. */
let stage: BooksStage

beforeAll(async () => {
  stage = await openBooksStage('deep-height')
})
beforeEach(() => stage.reset())
afterAll(() => stage?.stop())

/** Its head is at 100. */
const tron = paperChain('TRX')
/** Of another branch, so that it is nothing to go by. */
const ofAnother = { ...tron, finalBlock: async () => ({ height: 99, hash: 'of another branch' }) }

test('what counts as deep is as deep as the confirmations of its chain, where nothing else says so', async () => {
  expect(await deepHeight(stage.db, tron)).toBe(81)
})

test.each([
  ['less, where that is not final yet', 70, 70],
  ['no more, where what is less deep is final as well', 82, 81],
  ['nothing, where nothing is final', 0, 0],
  ['nothing, where nobody knows of anything final that was read', null, 0],
])('what counts as deep is %s', async (_, final, deep) => {
  await lookAt(stage, 'TRX', 100, final)
  expect(await deepHeight(stage.db, ofAnother)).toBe(deep)
})

test('what is being left is deep no more', async () => {
  await lookAt(stage, 'TRX', 100, 80)
  await stage.corrupt("UPDATE chain_heads SET leaving_above_height = 75 WHERE chain = 'TRX'")
  expect(await deepHeight(stage.db, ofAnother)).toBe(75)
})

test('nothing is deep on a chain that tells what is final and was never looked at', async () => {
  await stage.corrupt("DELETE FROM chain_heads WHERE chain = 'TRX'")
  expect(await deepHeight(stage.db, ofAnother)).toBe(0)
})
