import { expect, test } from 'vitest'
import type { AssetId } from '../domain/catalog/assets.ts'
import type { ChainId } from '../domain/catalog/networks.ts'
import { listedTokens } from './listed_tokens.ts'

/**
 * What: a token is listed by its contract, and one contract is one token.
 * How: contracts that are one when they differ in case only, and none where they have a digit.
 */
const spell = (contract: string) => (/\d/.test(contract) ? null : contract.toLowerCase())

const list = (id: ChainId, tokens: Partial<Record<AssetId, string>>) => [
  ...listedTokens({ id, tokens }, spell),
]

test('each contract in its one spelling', () => {
  expect(list('ETH', { 'USDT:ERC20': 'Tether', 'USDC:ERC20': 'CIRCLE' })).toEqual([
    ['tether', 'USDT:ERC20'],
    ['circle', 'USDC:ERC20'],
  ])
})

test.each([
  ['what is no contract', { 'USDT:ERC20': '7' }, 'USDT:ERC20 has a contract of its own, not 7'],
  [
    'a contract twice',
    { 'USDT:ERC20': 'Tether', 'USDC:ERC20': 'tether' },
    'USDC:ERC20 has a contract of its own, not tether',
  ],
  ['a token of another chain', { 'USDT:BEP20': 'Tether' }, 'USDT:BEP20 is a token on ETH'],
  ['the coin of the chain', { 'ETH:ETH': 'ether' }, 'ETH:ETH is a token on ETH'],
])('%s is a mistake of the settings', (_, tokens, message) => {
  expect(() => list('ETH', tokens)).toThrow(message)
})
