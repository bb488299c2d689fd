import { afterAll, expect, test } from 'vitest'
import { hexOf } from '../../src/chains/tron/address.ts'
import { chainFacts } from '../../src/domain/catalog/networks.ts'
import type { Outflow } from '../../src/domain/payouts/intent.ts'
import { describeChain } from './chain_contract.ts'
import type { AddressCases } from './chain_driver.ts'
import { startTronDriver, type TronDriver } from './tron_driver.ts'
import { tronFakes } from './tron_fakes.ts'

/** Real ones: Tether's contract on the main network, which is none here, and an exchange's. */
const tether = 'TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t'
const exchange = 'TMuA6YqfCeX8EhbfYEg5y7S4DqzSJireY9'

const addresses: AddressCases = {
  valid: [
    { what: 'of a contract that is not listed', text: tether, canonical: tether },
    { what: 'of an exchange', text: exchange, canonical: exchange },
  ],
  invalid: [
    { what: 'a mistyped letter', text: `${exchange.slice(0, -1)}8` },
    { what: 'in hex', text: hexOf(exchange) },
    { what: 'in hex, as EVM chains write it', text: `0x${hexOf(exchange).slice(2)}` },
    { what: 'the address of nobody', text: 'T9yD14Nj9j7xAB4dbGeiX9h8unkKHxuWwb' },
    { what: 'a Bitcoin address', text: '1BvBMSEYstWetqTFn5Au4m4GFg7xJaNVN2' },
    { what: 'an account of the XRP Ledger', text: 'rPT1Sjq2YGrBMTttX4GZHjKu9dyfzbpAYe' },
    { what: 'in lower case', text: exchange.toLowerCase() },
  ],
}

let started: TronDriver | undefined
const running = () => {
  if (started === undefined) throw new Error('the driver was started')
  return started
}

describeChain({
  name: 'tron',
  // One deeper is possible, and by then what was undone has no time left.
  reorgDepthMax: 18,
  neverReplaces: true,
  hasNoIds: true,
  addresses,
  assets: ['TRX:TRX', 'USDT:TRC20'],
  fakeDeposits: tronFakes(running),
  start: async () => {
    started = await startTronDriver()
    return started
  },
})

/** A whole one in ledger units, of which there are 18 decimals. */
const USDT = 10n ** 18n

let payouts = 0
const payoutOf = (asset: Outflow['asset'], address: string, units: bigint): Outflow => ({
  payoutId: `CB900000000000${1_000 + payouts++}:1`,
  kind: 'payout',
  asset,
  units,
  address,
  tag: null,
})

let own: Promise<TronDriver> | undefined
const startOnce = () => {
  own ??= startTronDriver()
  return own
}

afterAll(async () => (await own)?.stop())

test('a block is final when it is solid, which it is with twenty confirmations here', async () => {
  const { chain, mine } = await startOnce()
  await mine(25)
  const height = (await chain.head()).height + 1 - chainFacts.TRX.confirmations
  expect(await chain.finalBlock?.()).toEqual({ height, hash: await chain.blockHash(height) })
})

test('an attempt is over when its time is, on the solid chain, and is drafted again in a time of its own', async () => {
  const driver = await startOnce()
  const { chain } = driver
  const isOver = chain.isOver ?? raise()
  const outflow = payoutOf('USDT:TRC20', await driver.outsideAddress(), 5n * USDT)
  const intent = await draft(driver, outflow)
  const tx = await driver.sign(intent)
  expect(await isOver(intent, null), 'it may still be signed and sent').toBe(false)
  await driver.lose?.(async () => {
    expect(await chain.broadcast(tx)).toBe('accepted')
    const early = chain.raise(intent, await bidOf(driver, outflow))
    expect(early).toMatchObject({ ok: false, rejection: { code: 'network' } })
    expect(await isOver(intent, tx.txHash)).toBe(false)
    // Its time is over at the head, and not where no reorganisation reaches.
    await driver.mine(61)
    expect(await chain.broadcast(tx)).toBe('refused')
    expect(await isOver(intent, tx.txHash)).toBe(false)
  })
  await driver.amongStrangers(() => expect(isOver(intent, tx.txHash)).rejects.toThrow('first block'))
  expect(await isOver(intent, tx.txHash)).toBe(true)
  const next = chain.raise(intent, await bidOf(driver, outflow))
  if (!next.ok || next.value.family !== 'tron') return raise()
  expect(next.value.reference.timeMs).toBeGreaterThanOrEqual(intent.expirationMs)
  expect(await chain.broadcast(await driver.sign(next.value))).toBe('accepted')
  await driver.mine(1)
  expect(await driver.holds('USDT:TRC20', outflow.address)).toBe(5n * USDT)
})

test('one that is in a block is never over, however late it is', async () => {
  const driver = await startOnce()
  const outflow = payoutOf('TRX:TRX', await driver.outsideAddress(), 7_000_000n)
  const intent = await draft(driver, outflow)
  const tx = await driver.sign(intent)
  expect(await driver.chain.broadcast(tx)).toBe('accepted')
  await driver.mine(100)
  expect(await driver.chain.isOver?.(intent, tx.txHash)).toBe(false)
  expect(await driver.chain.broadcast(tx), 'expired, and there all the same').toBe('accepted')
  expect(await driver.chain.lookup(tx.txHash)).toMatchObject({ where: 'block', succeeded: true })
})

test('equal payouts of one moment are two transactions', async () => {
  const driver = await startOnce()
  const outflow = payoutOf('TRX:TRX', await driver.outsideAddress(), 2_000_000n)
  const [one, other] = [
    await draft(driver, { ...outflow, payoutId: 'CB0000000000000003:1' }),
    await draft(driver, { ...outflow, payoutId: 'CB0000000000000002:1' }),
  ]
  const txs = [await driver.sign(one), await driver.sign(other)]
  expect(txs[0]?.txHash).not.toBe(txs[1]?.txHash)
})

test('what an address holds is told of any block near the solid one, with what waits left out', async () => {
  const driver = await startOnce()
  const { chain } = driver
  const to = await driver.ourAddress()
  const start = await chain.head()
  const held: bigint[] = []
  for (let round = 1n; round <= 30n; round += 1n) {
    await driver.send('TRX:TRX', to, round * 1_000_000n)
    await driver.send('USDT:TRC20', to, round * USDT)
    await driver.mine(1)
    held.push((round * (round + 1n)) / 2n)
  }
  await driver.send('TRX:TRX', to, 1_000_000n)
  for (const [index, sum] of held.entries()) {
    const height = start.height + 1 + index
    expect(await chain.balance('TRX:TRX', [to], height), `block ${height}`).toBe(sum * 1_000_000n)
    expect(await chain.balance('USDT:TRC20', [to], height), `block ${height}`).toBe(sum * USDT)
  }
  expect(await chain.balance('TRX:TRX', [to])).toBe(465_000_000n)
  await driver.reorg(5)
  const head = await chain.head()
  expect(await chain.balance('TRX:TRX', [to], head.height)).toBe((held[24] ?? 0n) * 1_000_000n)
})

test('whoever TRON would not deliver to is no destination', async () => {
  const driver = await startOnce()
  const codeOf = async (outflow: Outflow) => {
    const bid = await driver.chain.bid(outflow)
    return bid.ok ? 'ok' : bid.rejection.code
  }
  const contract = driver.info.contracts.Payer.address
  expect(await codeOf(payoutOf('TRX:TRX', contract, 1_000_000n))).toBe('destination')
  expect(await codeOf(payoutOf('USDT:TRC20', contract, USDT)), 'a contract may hold tokens').toBe('ok')
  expect(await codeOf(payoutOf('TRX:TRX', await driver.reserveAddress(), 1n)), 'ourselves').toBe(
    'destination',
  )
  const nobody = await driver.outsideAddress()
  expect(await codeOf(payoutOf('TRX:TRX', nobody, 10n ** 15n)), 'more than there is').toBe('funds')
  expect(await codeOf(payoutOf('USDT:TRC20', nobody, 10n ** 9n * USDT))).toBe('funds')
  const token = driver.info.tokens.USDT.address
  expect(driver.chain.parseAddress(token)).toMatchObject({ rejection: { code: 'address_unpayable' } })
})

async function bidOf({ chain }: TronDriver, outflow: Outflow) {
  const bid = await chain.bid(outflow)
  if (!bid.ok) throw new Error(bid.rejection.message)
  return bid.value
}

async function draft(driver: TronDriver, outflow: Outflow) {
  const funds = await driver.funds(outflow.asset, outflow.units)
  const intent = driver.chain.draft(outflow, await bidOf(driver, outflow), funds)
  if (!intent.ok || intent.value.family !== 'tron') return raise()
  return intent.value
}

function raise(): never {
  throw new Error('it should be there')
}
