import { expect, test } from 'vitest'
import { isPlainMemo } from './memo.ts'

test.each(['4711', 'order 12', 'Grüße', '雪', '🙂'])('%j says what is seen', (memo) => {
  expect(isPlainMemo(memo)).toBe(true)
})

test.each([
  ['nothing', ''],
  ['a space before', ' 4711'],
  ['a space behind', '4711 '],
  ['a wide space behind', '4711\u3000'],
  ['what is not seen before', '\u200b4711'],
  ['what is not seen behind', '4711\u200b'],
  ['a line break inside', '47\n11'],
  ['a zero byte inside', '47\u000011'],
  ['half of a character', '4711\ud83d'],
])('one with %s does not', (_what, memo) => {
  expect(isPlainMemo(memo)).toBe(false)
})
