import { expect, test } from 'vitest'
import { readChains } from '../config/chain_settings.ts'
import { readEnvironment } from '../config/environment.ts'
import { toldCurrencies } from './told_currencies.ts'

test('what is told of prices is about coins and tokens that are offered, and about USDT', () => {
  const toldOf = (env: Readonly<Record<string, string>>) => [
    ...toldCurrencies(readChains(readEnvironment(env, 'serve'))),
  ]
  const node = 'http://127.0.0.1:1'
  expect(toldOf({ CAMBIST_BTC_URL: node })).toEqual(['BTC', 'USDT'])
  const main = { CAMBIST_BTC_URL: node, CAMBIST_ETH_URL: node, CAMBIST_TRX_URL: node }
  expect(toldOf(main).sort()).toEqual(['BTC', 'ETH', 'TRX', 'USDC', 'USDT'])
  const sepolia = { CAMBIST_ETH_URL: node, CAMBIST_ETH_CHAIN_ID: '11155111' }
  expect(toldOf(sepolia), 'no contract of USDC is known there').toEqual(['ETH', 'USDT'])
})
