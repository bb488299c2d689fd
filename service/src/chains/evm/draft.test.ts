import { describe, expect, test } from 'vitest'
import { accept } from '../../domain/outcome.ts'
import type { Outflow } from '../../domain/payouts/intent.ts'
import type { FeeBid, Funds } from '../chain.ts'
import { parseAddress } from './address.ts'
import { draft, raise } from './draft.ts'

const USDT = '0xdAC17F958D2ee523a2206206994597C13D831ec7'
const to = '0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed'
const drafter = {
  chain: 'ETH',
  evmChainId: 1,
  capWei: 1_000n,
  gasLimitMax: 300_000n,
  contractOf: (asset: string) => (asset === 'USDT:ERC20' ? USDT : null),
  parseAddress: (text: string) => parseAddress(text, new Set([USDT.toLowerCase()])),
} as const
const outflow: Outflow = {
  payoutId: 'CB0000000000000000:1',
  kind: 'payout',
  asset: 'USDT:ERC20',
  units: 1_500_000_000_000_000_000n,
  address: to,
  tag: null,
}
const bid: FeeBid & { family: 'evm' } = {
  family: 'evm',
  gasLimit: 90_000n,
  maxFeePerGasWei: 100n,
  maxPriorityFeePerGasWei: 10n,
}
const funds: Funds & { model: 'account' } = {
  model: 'account',
  from: { purpose: 'reserve', index: 0 },
  nonce: 7,
}
const intent = {
  family: 'evm',
  chain: 'ETH',
  evmChainId: 1,
  payoutId: 'CB0000000000000000:1',
  attempt: 1,
  from: { purpose: 'reserve', index: 0 },
  nonce: 7,
  to,
  units: 1_500_000n,
  token: USDT,
  gasLimit: 90_000n,
  maxFeePerGasWei: 100n,
  maxPriorityFeePerGasWei: 10n,
} as const

describe('a draft', () => {
  test('counts in the units of the chain: USDT has 18 decimals in the ledger and 6 on Ethereum', () => {
    expect(draft(drafter, outflow, bid, funds)).toEqual(accept(intent))
  })

  test('of an amount that the chain cannot carry is never made', () => {
    expect(() => draft(drafter, { ...outflow, units: outflow.units + 1n }, bid, funds)).toThrow()
  })

  test('of nothing is never made, except a filler', () => {
    expect(() => draft(drafter, { ...outflow, units: 0n }, bid, funds)).toThrow()
    const filler = { ...outflow, kind: 'filler', asset: 'ETH:ETH', units: 0n } as const
    expect(draft(drafter, filler, bid, funds)).toMatchObject({ value: { units: 0n, token: null, to } })
    expect(() => draft(drafter, { ...filler, units: 1n }, bid, funds)).toThrow()
  })

  test('of a filler pays more than what a node may have put back with its nonce, as far as the cap lets it', () => {
    const filler = { ...outflow, kind: 'filler', asset: 'ETH:ETH', units: 0n } as const
    const priceOver = (maxFeePerGasWei: bigint) =>
      draft(drafter, filler, bid, { ...funds, outbids: { ...intent, maxFeePerGasWei } })
    expect(priceOver(800n)).toMatchObject({ value: { maxFeePerGasWei: 900n, maxPriorityFeePerGasWei: 12n } })
    expect(priceOver(40n)).toMatchObject({ value: { maxFeePerGasWei: 100n, maxPriorityFeePerGasWei: 12n } })
    const { maxFeePerGasWei, maxPriorityFeePerGasWei } = bid
    expect(priceOver(900n)).toMatchObject({ value: { maxFeePerGasWei, maxPriorityFeePerGasWei } })
  })

  test('to an address that must not be paid is refused', () => {
    const refused = draft(drafter, { ...outflow, address: USDT }, bid, funds)
    expect(refused).toMatchObject({ ok: false, rejection: { code: 'destination' } })
  })

  test('takes a nonce that is one', () => {
    for (const nonce of [-1, 0.5, Number.NaN]) {
      expect(() => draft(drafter, outflow, bid, { ...funds, nonce } as Funds)).toThrow()
    }
  })
})

describe('a sweep out of a deposit address', () => {
  const key = { purpose: 'deposit', index: 3 } as const
  const token: Outflow = { ...outflow, kind: 'sweep', from: { key, address: to } }
  const coin: Outflow = { ...token, asset: 'ETH:ETH', units: 5_000_000n }
  const plain: FeeBid = { ...bid, gasLimit: 21_000n }
  const holding = (heldWei: bigint): Funds => ({ model: 'account', from: key, nonce: 0, heldWei })

  test('of coin moves all that is held but the gas at the full price', () => {
    expect(draft(drafter, coin, plain, holding(5_000_000n))).toMatchObject({
      value: {
        from: key,
        nonce: 0,
        token: null,
        units: 2_900_000n,
        gasLimit: 21_000n,
        maxFeePerGasWei: 100n,
      },
    })
    expect(draft(drafter, coin, plain, holding(2_100_001n))).toMatchObject({ value: { units: 1n } })
    expect(draft(drafter, coin, plain, holding(2_100_000n))).toMatchObject({ rejection: { code: 'funds' } })
  })

  test('of a token bids what the coin there pays for, as long as it has a chance', () => {
    const priceWith = (heldWei: bigint) => {
      const drafted = draft(drafter, token, bid, holding(heldWei))
      return drafted.ok && drafted.value.family === 'evm'
        ? [drafted.value.units, drafted.value.maxFeePerGasWei, drafted.value.maxPriorityFeePerGasWei]
        : drafted
    }
    expect(priceWith(90_000n * 1_000n)).toEqual([1_500_000n, 100n, 10n])
    expect(priceWith(90_000n * 100n - 1n)).toEqual([1_500_000n, 99n, 10n])
    // Base fee 45 by a bid of twice that and a tip of 10: a quarter above it is 66.
    expect(priceWith(90_000n * 66n)).toEqual([1_500_000n, 66n, 10n])
    expect(priceWith(90_000n * 66n - 1n)).toMatchObject({ rejection: { code: 'funds' } })
    expect(priceWith(0n)).toMatchObject({ rejection: { code: 'funds' } })
  })

  test('is never drafted without a word of what is held', () => {
    expect(() => draft(drafter, coin, plain, { ...funds, from: key } as Funds)).toThrow()
  })

  test('of coin pays a higher fee out of what it moves, and never more than that', () => {
    const first = { ...intent, from: key, token: null, gasLimit: 21_000n, units: 1_000_000n } as const
    expect(raise(drafter, first, plain)).toEqual(
      accept({
        ...first,
        attempt: 2,
        units: 1_000_000n - 13n * 21_000n,
        maxFeePerGasWei: 113n,
        maxPriorityFeePerGasWei: 12n,
      }),
    )
    expect(raise(drafter, { ...first, units: 13n * 21_000n }, plain)).toMatchObject({
      rejection: { code: 'funds' },
    })
  })

  test('of coin moves what is still there when its address holds less than it did, and never more than before', () => {
    const first = { ...intent, from: key, token: null, gasLimit: 21_000n, units: 1_000_000n } as const
    const spent = 1_000_000n + 21_000n * first.maxFeePerGasWei
    const unitsWith = (heldWei: bigint) => {
      const raised = raise(drafter, first, plain, heldWei)
      return raised.ok && raised.value.family === 'evm' ? raised.value.units : raised
    }
    const raisedGas = 21_000n * 113n
    expect(unitsWith(spent - 1n)).toBe(spent - 1n - raisedGas)
    expect(unitsWith(raisedGas + 1n)).toBe(1n)
    expect(unitsWith(raisedGas)).toMatchObject({ rejection: { code: 'funds' } })
    expect(unitsWith(spent)).toBe(spent - raisedGas)
    expect(unitsWith(spent * 2n)).toBe(spent - raisedGas)
  })

  test('of coin that its address does not hold any more outbids nothing, so the cap keeps nobody from moving less', () => {
    const atCap = {
      ...intent,
      from: key,
      token: null,
      gasLimit: 21_000n,
      units: 50_000_000n,
      maxFeePerGasWei: 900n,
    } as const
    const gas = 21_000n * 900n
    expect(raise(drafter, atCap, plain, 50_000_000n + gas)).toMatchObject({ rejection: { code: 'fee_cap' } })
    expect(raise(drafter, atCap, plain, 30_000_000n)).toEqual(
      accept({ ...atCap, attempt: 2, units: 30_000_000n - gas }),
    )
  })

  test('of a token is not raised: its gas was brought in the right amount', () => {
    expect(raise(drafter, { ...intent, from: key }, bid)).toMatchObject({ rejection: { code: 'funds' } })
  })
})

describe('the next attempt', () => {
  test('is the same payment under the same nonce, at more', () => {
    expect(raise(drafter, intent, bid)).toEqual(
      accept({ ...intent, attempt: 2, maxFeePerGasWei: 113n, maxPriorityFeePerGasWei: 12n }),
    )
  })

  test('pays what the chain asks now if that is more, and keeps the larger gas limit', () => {
    const dear: FeeBid = { ...bid, gasLimit: 80_000n, maxFeePerGasWei: 500n, maxPriorityFeePerGasWei: 50n }
    expect(raise(drafter, intent, dear)).toMatchObject({
      value: { gasLimit: 90_000n, maxFeePerGasWei: 500n, maxPriorityFeePerGasWei: 50n },
    })
  })

  test('is refused when it would pass the cap', () => {
    const atCap = { ...intent, maxFeePerGasWei: 900n }
    expect(raise(drafter, atCap, bid)).toMatchObject({ ok: false, rejection: { code: 'fee_cap' } })
  })

  test('is refused when it would keep a gas limit that is above the cap by now', () => {
    expect(raise({ ...drafter, gasLimitMax: 89_999n }, intent, bid)).toMatchObject({
      ok: false,
      rejection: { code: 'fee_cap' },
    })
    expect(raise({ ...drafter, gasLimitMax: 90_000n }, intent, bid).ok).toBe(true)
  })
})
