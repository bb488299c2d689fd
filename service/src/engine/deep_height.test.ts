import { expect, test } from 'vitest'
import { deepHeight } from './deep_height.ts'
import { paperChain } from './testing/paper_chain.ts'

/** Its head is at 100. */
const tron = paperChain('TRX')

test.each([
  ['as deep as the confirmations of its chain, where nothing else says so', undefined, 81],
  ['less, where that is not final yet', 70, 70],
  ['no more, where what is less deep is final as well', 82, 81],
  ['nothing, where nothing is final', 0, 0],
])('what counts as deep is %s', async (_, final, deep) => {
  const chain = final === undefined ? tron : { ...tron, finalHeight: async () => final }
  expect(await deepHeight(chain)).toBe(deep)
})
