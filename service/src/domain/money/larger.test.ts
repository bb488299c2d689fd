import { expect, test } from 'vitest'
import { larger } from './larger.ts'

test('the larger of two, also beyond what a number can hold', () => {
  expect([larger(2n, 1n), larger(1n, 2n), larger(-2n, -1n)]).toEqual([2n, 2n, -1n])
  expect(larger(2n ** 64n, 2n ** 64n + 1n)).toBe(2n ** 64n + 1n)
})
