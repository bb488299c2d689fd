import { expect, test } from 'vitest'
import { lastBlockOf } from './solana_life.ts'

test('a transaction of Solana can be in the 151st block after the one that it refers to, and in none after that', () => {
  expect(lastBlockOf({ reference: { slot: 1_040, blockhash: 'a block', height: 1_000 } })).toBe(1_151)
})
