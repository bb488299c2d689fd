import { expect, test } from 'vitest'
import { chainIds } from '../domain/catalog/networks.ts'
import { formatDecimal, parseDecimal } from '../domain/money/decimal.ts'
import { ConfigError } from './problems.ts'
import { readServeConfig } from './serve_config.ts'
import { variables } from './variables.ts'

function problemsOf(env: Record<string, string>): readonly string[] {
  const nodes = Object.fromEntries(
    chainIds.filter((id) => id !== 'EOS').map((id) => [`CAMBIST_${id}_URL`, 'http://n']),
  )
  try {
    readServeConfig({ ...nodes, DATABASE_URL: 'postgres://cambist@db/cambist', ...env }, 'watcher')
  } catch (error) {
    if (error instanceof ConfigError) return error.problems.map((each) => `${each.variable}: ${each.message}`)
    throw error
  }
  return []
}

/** Each cap, and the decimals that its unit has on the chain. */
const caps = [
  ['CAMBIST_BTC_FEE_CAP_SAT_PER_VB', 3],
  ['CAMBIST_BTC_FEE_CAP_TOTAL', 8],
  ['CAMBIST_ETH_FEE_CAP_GWEI', 9],
  ['CAMBIST_BNB_FEE_CAP_GWEI', 9],
  ['CAMBIST_XRP_FEE_CAP', 6],
  ['CAMBIST_XLM_FEE_CAP', 7],
  ['CAMBIST_TRX_FEE_CAP', 6],
  ['CAMBIST_SOL_FEE_CAP', 9],
] as const

test.each(caps)('%s in the smallest unit of the chain is no cap', (name, decimals) => {
  const usual = String(variables[name].default)
  const units = parseDecimal(usual, decimals)
  expect(problemsOf({ [name]: usual })).toEqual([])
  expect(problemsOf({ [name]: String(units.ok && units.value) })).toEqual([
    expect.stringMatching(`^${name}: must be at most \\d+, .*cap`),
  ])
  expect(problemsOf({ [name]: '0' })).toEqual([expect.stringMatching(`^${name}: must be above zero`)])
})

test.each(caps)('%s may be ten times what it is by default', (name, decimals) => {
  const units = parseDecimal(String(variables[name].default), decimals)
  const tenfold = formatDecimal(units.ok ? units.value * 10n : 0n, decimals)
  expect(problemsOf({ [name]: tenfold })).toEqual([])
})
