import { expect, test } from 'vitest'
import type { AssetId } from '../../domain/catalog/assets.ts'
import { fromChainUnits } from '../../domain/money/amount.ts'
import type { Outflow } from '../../domain/payouts/intent.ts'
import { bytesOf, holdingOf, SYSTEM_PROGRAM, TOKEN_PROGRAM } from './address.ts'
import { bid, estimatePayout } from './bid.ts'
import { blocksOf } from './blocks.ts'
import { scriptedNode } from './testing/scripted_node.ts'

const payee = '7UkEVmiaC9pPb5DtFrP4pW2ykVAHpmGLUALV9WVRwAo2'
const reserve = '9WzDXwBbmkg8ZTbNMqUxvQRAyrZzDsGYdLVL9zYtAWWM'
const mint = 'EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v'
const feeLamportsMax = 5_000_000n
const rents = async () => ({ account: 890_880n, holding: 2_039_280n })

const coin: Outflow = {
  payoutId: 'CB1:1',
  kind: 'payout',
  asset: 'SOL:SOL',
  units: 25_000_000n,
  address: payee,
  tag: null,
}
const token: Outflow = { ...coin, asset: 'USDC:SOL', units: 7n * 10n ** 18n }

const account = (owner: string, data = Buffer.alloc(0), lamports = 10 ** 12) => ({
  ...{ lamports, owner, data: [data.toString('base64'), 'base64'] },
})

/** `state` 2 is frozen. */
async function holdingFor(owner: string, state: 1 | 2 = 1) {
  const data = Buffer.alloc(165)
  data.set(bytesOf(mint), 0)
  data.set(bytesOf(owner), 32)
  data.writeBigUInt64LE(10n ** 12n, 64)
  data[108] = state
  return { address: await holdingOf(owner, mint), account: account(TOKEN_PROGRAM, data) }
}

type Accounts = Readonly<Record<string, ReturnType<typeof account> | null>>

/** A node at which `prices` were paid of late where the reserve is written, slot by slot. */
async function bidderAt(prices: readonly number[], cap = feeLamportsMax, more: Accounts = {}) {
  const holding = await holdingFor(reserve)
  const accounts = new Map<unknown, unknown>([
    [payee, account(SYSTEM_PROGRAM)],
    [reserve, account(SYSTEM_PROGRAM)],
    [holding.address, holding.account],
    ...Object.entries(more),
  ])
  const rpc = scriptedNode({
    getRecentPrioritizationFees: () => prices.map((prioritizationFee, slot) => ({ slot, prioritizationFee })),
    getMultipleAccounts: (asked) => ({
      context: { slot: 90 },
      value: (asked as string[]).map((each) => accounts.get(each) ?? null),
    }),
    getSlot: () => 90,
    getBlock: () => ({
      ...{ blockHeight: 80, blockTime: 100, blockhash: 'hash', parentSlot: 89, previousBlockhash: 'parent' },
    }),
  })
  const mintOf = (asset: AssetId) => (asset === 'SOL:SOL' ? null : mint)
  const bidder = { rpc, blocks: blocksOf(rpc), rents, feeLamportsMax: cap, mintOf }
  return { ...bidder, reserveAddress: () => reserve }
}

async function feesAt(prices: readonly number[], outflow: Outflow) {
  const answer = await bid(await bidderAt(prices), outflow)
  if (!answer.ok || answer.value.family !== 'solana') throw new Error('it is bid')
  const { feeLamports, unitPriceMicroLamports } = answer.value
  return { feeLamports, unitPriceMicroLamports }
}

test('a bid offers the upper quarter of what others paid of late', async () => {
  expect(await feesAt([], coin)).toEqual({ feeLamports: 5_000n, unitPriceMicroLamports: 0n })
  expect(await feesAt([0, 0, 0, 3_000_000], coin)).toEqual({
    feeLamports: 8_000n,
    unitPriceMicroLamports: 3_000_000n,
  })
})

test.each([
  ['a price that passes the cap', 2_000_000_000_000],
  ['the highest that can be named', 2 ** 64],
])('%s is no reason to wait: anybody may name it for a unit of their own', async (_what, price) => {
  const prices = Array.from({ length: 150 }, () => price)
  for (const outflow of [coin, token]) {
    const { feeLamports } = await feesAt(prices, outflow)
    expect(feeLamports).toBeLessThanOrEqual(feeLamportsMax)
    expect(feeLamports).toBeGreaterThan(feeLamportsMax - 10n)
  }
  const bidder = await bidderAt(prices)
  const estimateOf = (lamports: bigint) => ({
    cost: fromChainUnits('SOL:SOL', lamports),
    isAboveFeeCap: false,
  })
  expect(await estimatePayout(bidder, 'SOL:SOL')).toEqual(estimateOf(feeLamportsMax))
  expect(await estimatePayout(bidder, 'USDC:SOL')).toEqual(estimateOf(feeLamportsMax + 2_039_280n))
})

test('a cap below what a signature costs pays nobody, and one of as much pays', async () => {
  const judge = async (cap: bigint) => {
    const bidder = await bidderAt([], cap)
    const [answer, estimate] = [await bid(bidder, coin), await estimatePayout(bidder, 'SOL:SOL')]
    return [answer.ok ? 'bid' : answer.rejection.code, estimate.isAboveFeeCap]
  }
  expect(await judge(5_000n)).toEqual(['bid', false])
  expect(await judge(4_999n)).toEqual(['fee_cap', true])
})

test('lamports that somebody sent to where a token is to lie keep nobody from being paid there', async () => {
  const place = await holdingOf(payee, mint)
  const sent = { [place]: account(SYSTEM_PROGRAM, Buffer.alloc(0), 900_000) }
  expect(await bid(await bidderAt([], feeLamportsMax, sent), token)).toMatchObject({ ok: true })
  const givenAway = (await holdingFor(reserve)).account
  for (const there of [account(mint), givenAway]) {
    const bidder = await bidderAt([], feeLamportsMax, { [place]: there })
    expect(await bid(bidder, token)).toMatchObject({ rejection: { code: 'destination' } })
  }
})

test.each([
  ['nothing is there', undefined, 2_039_280],
  ['lamports are there', 900_000, 1_139_280],
  ['more lamports are there than it has to hold', 3_000_000, 0],
])('an account for a token costs what it has to hold, less what is there: %s', async (_, there, rent) => {
  const place = await holdingOf(payee, mint)
  const sent: Accounts =
    there === undefined ? {} : { [place]: account(SYSTEM_PROGRAM, Buffer.alloc(0), there) }
  const needed = 5_000 + 890_880 + rent
  const bidWith = async (lamports: number) => {
    const ours = { [reserve]: account(SYSTEM_PROGRAM, Buffer.alloc(0), lamports) }
    return bid(await bidderAt([], feeLamportsMax, { ...sent, ...ours }), token)
  }
  expect(await bidWith(needed)).toMatchObject({ ok: true, value: { holdingRentLamports: 2_039_280n } })
  expect(await bidWith(needed - 1)).toMatchObject({ rejection: { code: 'funds' } })
})

test('the reserve keeps what its own account has to hold', async () => {
  const needed = 25_000_000 + 5_000 + 890_880
  const bidWith = async (lamports: number) =>
    bid(await bidderAt([], feeLamportsMax, { [reserve]: account(SYSTEM_PROGRAM, undefined, lamports) }), coin)
  expect(await bidWith(needed)).toMatchObject({ ok: true })
  expect(await bidWith(needed - 1)).toMatchObject({ rejection: { code: 'funds' } })
})

test('whoever has no account yet is paid what makes one, or nothing', async () => {
  const anew = { ...coin, address: 'H8sMJSCQxfKiFTCfDR3DUMLPwcRbM61LGFJ8N4dK3WjS' }
  const bidder = await bidderAt([])
  expect(await bid(bidder, { ...anew, units: 890_880n })).toMatchObject({ ok: true })
  expect(await bid(bidder, { ...anew, units: 890_879n })).toMatchObject({
    rejection: { code: 'destination' },
  })
})

test('a reserve without an account yet takes from a deposit address what makes one after the fee, or nothing', async () => {
  const from = { key: { purpose: 'deposit', index: 3 } as const, address: payee }
  const sweep = { ...coin, kind: 'sweep', address: reserve, from } as const
  const bidder = await bidderAt([], feeLamportsMax, { [reserve]: null })
  expect(await bid(bidder, { ...sweep, units: 895_880n })).toMatchObject({ ok: true })
  for (const units of [890_880n, 895_879n])
    expect(await bid(bidder, { ...sweep, units })).toMatchObject({ rejection: { code: 'destination' } })
  expect(await bid(await bidderAt([]), { ...sweep, units: 890_880n }), 'it has one').toMatchObject({
    ok: true,
  })
})

test('where the token of the reserve is frozen, a payout waits', async () => {
  const frozen = await holdingFor(reserve, 2)
  const bidder = await bidderAt([], feeLamportsMax, { [frozen.address]: frozen.account })
  expect(await bid(bidder, token)).toMatchObject({ rejection: { code: 'network' } })
})

test('a token that leaves a deposit address costs the signature of the reserve as well', async () => {
  const swept = await holdingFor(payee)
  const from = { key: { purpose: 'deposit', index: 3 } as const, address: payee }
  const bidder = await bidderAt([], feeLamportsMax, { [swept.address]: swept.account })
  const sweep = (outflow: Outflow) => bid(bidder, { ...outflow, kind: 'sweep', address: reserve, from })
  expect(await sweep(token)).toMatchObject({ value: { feeLamports: 10_000n } })
  expect(await sweep(coin)).toMatchObject({ value: { feeLamports: 5_000n } })
})
