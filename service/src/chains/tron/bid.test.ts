import { expect, test } from 'vitest'
import type { Outflow } from '../../domain/payouts/intent.ts'
import { hexOf } from './address.ts'
import { wordOf } from './balance.ts'
import { bid } from './bid.ts'
import { blocksOf } from './blocks.ts'
import { blockAt, scriptedNode } from './testing/scripted_node.ts'

/**
 * What: a payout of a token has energy enough in whatever state it finds its payee, as far as the cap allows.
 * How: a node with the main network's prices, whose USDT takes twice as much for somebody who has none.
 */
const RESERVE = 'TJRabPrwbZy45sbavfcjinPJC18kjpRTv8'
const PAYEE = 'TXLAQ63Xg1NAzckPwKHvzw7CSEmLMEqcdj'
const TOKEN = '41a614f803b6fd780986a42c78ec9c7f77e6ded13c'
const SUN = 1_000_000n

function bidFor(outflow: Partial<Outflow>, capSun: bigint) {
  const prices = {
    getTransactionFee: 1_000,
    getEnergyFee: 100,
    getCreateNewAccountFeeInSystemContract: 1_000_000,
    getCreateAccountFee: 100_000,
  }
  const hasSome = [PAYEE, RESERVE].map((address) => wordOf(hexOf(address)))
  const node = scriptedNode({
    'wallet/getchainparameters': () => ({
      chainParameter: Object.entries(prices).map(([key, value]) => ({ key, value })),
    }),
    'wallet/getaccount': ({ address }) => ({ address, balance: 100_000_000 }),
    'wallet/getaccountnet': () => ({ freeNetLimit: 600, freeNetUsed: 0 }),
    'wallet/triggerconstantcontract': ({ data }) => ({
      result: { result: true },
      energy_used: hasSome.some((word) => String(data).startsWith(`a9059cbb${word}`)) ? 64_285 : 130_285,
      constant_result: [(10n ** 12n).toString(16).padStart(64, '0')],
    }),
    'wallet/getblock': () => blockAt(1_000, 60_000),
    'walletsolidity/getblock': () => blockAt(980, 1_000),
  })
  const bidder = {
    rpc: node,
    blocks: blocksOf(node),
    feeLimitSunMax: capSun,
    reserveAddress: () => RESERVE,
    contractOf: () => TOKEN,
  }
  const payout = {
    payoutId: 'CB0000000000000001:1',
    kind: 'payout',
    asset: 'USDT:TRC20',
    units: 10n ** 18n,
  } as const
  return bid(bidder, { ...payout, address: PAYEE, tag: null, ...outflow })
}

test('a payee who empties his balance before he is paid is paid all the same', async () => {
  const found = await bidFor({}, 60n * SUN)
  expect(found).toMatchObject({ ok: true, value: { energySun: 6_428_500n } })
  const limit = found.ok && found.value.family === 'tron' ? found.value.feeLimitSun : 0n
  expect(limit).toBeGreaterThanOrEqual(130_285n * 100n)
  expect(await bidFor({}, 15n * SUN), 'the cap is the cap').toMatchObject({
    value: { feeLimitSun: 15n * SUN },
  })
})

test('a sweep brings no more gas than it needs: the reserve has something', async () => {
  const from = { key: { purpose: 'deposit', index: 7 }, address: PAYEE } as const
  expect(await bidFor({ kind: 'sweep', address: RESERVE, from }, 60n * SUN)).toMatchObject({
    value: { feeLimitSun: (64_285n + 20_000n) * 100n },
  })
})
