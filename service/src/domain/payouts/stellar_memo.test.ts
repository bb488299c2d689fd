import { expect, test } from 'vitest'
import { stellarMemoKind } from './stellar_memo.ts'

const LARGEST = String(2n ** 64n - 1n)

test.each(['0', '7', '4711', '10000000000000000000', LARGEST])('%s is a memo of the kind id', (memo) => {
  expect(stellarMemoKind(memo)).toBe('id')
})

test.each([
  ['a number that 64 bits do not hold', String(2n ** 64n)],
  ['one of more digits', '100000000000000000000'],
  ['a number behind noughts', '007'],
  ['one with a sign', '-7'],
  ['one with a fraction', '7.0'],
  ['digits of another script', '٧'],
  ['a number on a line', '7\n'],
  ['words', 'order 12'],
])('%s is one of the kind text', (_what, memo) => {
  expect(stellarMemoKind(memo)).toBe('text')
})
