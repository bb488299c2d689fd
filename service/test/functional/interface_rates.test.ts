import type { CreatedOrder, CreateOrderRequest, Rate } from '@cambist/sdk'
import { beforeAll, beforeEach, expect, test } from 'vitest'
import { createOrder, expectPaidOut, payAndBury, quickPair } from '../harness/orders.ts'
import { useTestSandbox } from '../harness/test_sandbox.ts'
import { failureOf, openWire, type Wire } from '../harness/wire.ts'

/**
 * What: what docs/api.md says of a quote and of a fixed rate's lock.
 * How: the answer's own digits are recomputed exactly, as integers; prices, reserves and the clock are moved through
 * the sandbox.
 */
const given = useTestSandbox()
let wire: Wire

beforeAll(async () => {
  wire = await openWire(given())
})

const usual = { BTC: '65000', ETH: '3400', BNB: '640', USDT: '1', USDC: '1' }

beforeEach(async () => {
  for (const [code, usd] of Object.entries(usual)) await given().remote.setPrice(code, usd)
})

/** A JSON number as an exact count of 10^-20. */
const SCALE = 20
function exact(value: number | string): bigint {
  const text = typeof value === 'string' ? value : plain(value)
  const [whole = '', fraction = ''] = text.split('.')
  return BigInt(whole + fraction.padEnd(SCALE, '0'))
}

/** JavaScript shows small numbers with an exponent. */
function plain(value: number): string {
  return /e/.test(String(value)) ? value.toFixed(SCALE).replace(/0+$/, '') : String(value)
}

const ONE = 10n ** BigInt(SCALE)
const unitOf = (precision: number) => ONE / 10n ** BigInt(precision)
const precisionOf: Readonly<Record<string, number>> = { BTC: 8, ETH: 8, BNB: 8, USDT: 6, USDC: 6 }

const pairs = [
  ['BTC', 'BTC', 'USDT', 'ERC20', '0.1', '4321.99'],
  ['USDT', 'BEP20', 'BTC', 'BTC', '1234.56', '0.25'],
  ['ETH', 'ETH', 'BNB', 'BNB', '1.5', '7.7'],
  ['USDC', 'ERC20', 'USDT', 'BEP20', '250', '1000.01'],
  ['BNB', 'BNB', 'ETH', 'ETH', '3.33', '2.1'],
] as const
const cases = pairs.flatMap((pair) =>
  (['fixed', 'float'] as const).flatMap((rateType) => {
    const [from, fromNetwork, to, toNetwork, sent, got] = pair
    const side = [from, fromNetwork, to, toNetwork] as const
    return [[...side, sent, rateType, 'from'] as const, [...side, got, rateType, 'to'] as const]
  }),
)

test.each(cases)('the figures of a quote fit together: %s %s → %s %s, %s, %s, %s', async (...args) => {
  const [from, from_network, to, to_network, amount, rate_type, direction] = args
  const quote = await wire.client.getRate({
    from,
    from_network,
    to,
    to_network,
    amount,
    rate_type,
    direction,
  })
  expect(plain(direction === 'from' ? quote.from_amount : quote.to_amount)).toBe(amount)
  const unit = unitOf(precisionOf[to] ?? 0)
  const sent = exact(quote.from_amount)
  const got = exact(quote.to_amount)

  // to_amount = from_amount × rate, to rounding: less than one unit of precision apart.
  const product = (sent * exact(quote.rate)) / ONE
  expect(product - got).toBeGreaterThanOrEqual(0n)
  expect(product - got).toBeLessThan(unit)

  // fee = fee_percent of to_amount, rounded up to the precision.
  expect(quote.fee_percent).toBe(rate_type === 'fixed' ? 1 : 0.5)
  const fee = (got * exact(quote.fee_percent)) / (100n * ONE)
  expect(exact(quote.fee) - fee).toBeGreaterThanOrEqual(0n)
  expect(exact(quote.fee) - fee).toBeLessThanOrEqual(unit)

  // At the sandbox's prices: what is sent is worth what is received, the fee and the network's cost.
  const price = (code: string) => exact(usual[code as keyof typeof usual])
  const worth = (sent * price(from)) / price(to)
  const spent = got + exact(quote.fee) + exact(quote.network_fee)
  const oneSent = (unitOf(precisionOf[from] ?? 0) * price(from)) / price(to)
  expect(worth - spent).toBeGreaterThan(-3n * unit)
  expect(worth - spent).toBeLessThan(3n * unit + oneSent)
  expect(quote.network_fee).toBeGreaterThan(0)
})

test('asking backwards what a quote brings asks for no more than was sent, and the house never pays for it', async () => {
  for (const [from, from_network, to, to_network, amount] of pairs) {
    const pair = { from, from_network, to, to_network }
    const there = await wire.client.getRate({ ...pair, amount })
    const back = await wire.client.getRate({ ...pair, amount: plain(there.to_amount), direction: 'to' })
    expect(exact(back.from_amount)).toBeLessThanOrEqual(exact(amount))
    const again = await wire.client.getRate({ ...pair, amount: plain(back.from_amount) })
    expect(exact(again.to_amount)).toBeGreaterThanOrEqual(
      exact(there.to_amount) - unitOf(precisionOf[to] ?? 0),
    )
  }
})

test('a native currency may name its network in several ways, and the answer names the native one', async () => {
  const ask = (side: string) =>
    wire.request('GET', `/v1/rate?from=BTC&to=USDT&to_network=ERC20&amount=0.1${side}`)
  for (const side of ['', '&from_network=BTC', '&from_network=native']) {
    expect((await ask(side)).json.data).toMatchObject({ from_network: 'BTC', to_network: 'ERC20' })
  }
  const natives = [
    ['ETH', ['ETH', 'ERC20', 'native', undefined]],
    ['BNB', ['BNB', 'BEP20', 'native', undefined]],
  ] as const
  for (const [code, names] of natives) {
    for (const name of names) {
      const as = name === undefined ? '' : `&from_network=${name}`
      const to = name === undefined ? '' : `&to_network=${name}`
      const source = await wire.request('GET', `/v1/rate?from=${code}&to=BTC&amount=1${as}`)
      expect(source.json.data).toMatchObject({ from: code, from_network: code, to_network: 'BTC' })
      const destination = await wire.request('GET', `/v1/rate?from=BTC&to=${code}&amount=0.1${to}`)
      expect(destination.json.data).toMatchObject({ to: code, to_network: code })
    }
  }
})

test('an order may name native networks as a rate request may; it answers the native names', async () => {
  const order = await createOrder(
    given(),
    {
      ...{ from: 'ETH', from_network: 'ERC20', to: 'BNB', to_network: 'native' },
    },
    { destination: await given().remote.freshAddress('BNB') },
  )
  expect(order).toMatchObject({ deposit_network: 'ETH', receive_network: 'BNB' })
})

test('the maximum shrinks when the reserve that backs it is worth less, down to nothing', async () => {
  const pair = { from: 'BTC', to: 'BNB', amount: '0.1' } as const
  const before = await wire.client.getRate(pair)
  // 5000 BNB at 640 back 49 BTC: the currency's own limit of 10 holds. At 64 they back 4.9.
  expect(before.max_amount).toBe(10)
  await given().remote.setPrice('BNB', '64')
  const after = await wire.client.getRate(pair)
  expect(after.max_amount).toBeLessThan(5)
  expect(after.max_amount).toBeGreaterThan(4)
  const most = await wire.client.getRate({ ...pair, amount: plain(after.max_amount) })
  expect(most.to_amount).toBeLessThan(5_000)
  await given().remote.setPrice('BNB', '0.0001')
  const failure = await failureOf(wire.client.getRate(pair))
  expect(failure).toMatchObject({ code: 'AMOUNT_OUT_OF_RANGE', currency: 'BTC' })
  expect(failure.maxAmount).toBeLessThan(failure.minAmount ?? 0)
})

test('an order takes its payout from the maximum of the next quote', async () => {
  const sandbox = given()
  await sandbox.remote.setPrice('USDC', '10')
  const pair = { ...quickPair, amount: '1000' }
  const reserve = async () =>
    Number(
      (
        await sandbox.rows<{ spendable: bigint }>("SELECT spendable FROM reserves WHERE asset = 'USDC:BEP20'")
      )[0]?.spendable,
    )
  const spendable = await reserve()
  const order = await createOrder(sandbox, quickPair, { amount: '400000' })
  await payAndBury(sandbox, order)
  await sandbox.eventually('the reserve is less by the payout', async () => {
    expect(await reserve()).toBeLessThan(spendable)
  })
  await expectPaidOut(sandbox, order)
  await wire.client.getRate(pair)
})

test('the minimum is never less than what is worth paying out', async () => {
  const before = await wire.client.getRate({ from: 'BTC', to: 'ETH', amount: '0.1' })
  expect(before.min_amount).toBe(0.0002)
  await given().remote.setPrice('ETH', '60000')
  const after = await wire.client.getRate({ from: 'BTC', to: 'ETH', amount: '0.1' })
  expect(after.min_amount).toBeGreaterThan(0.0009)
  const least = await wire.client.getRate({ from: 'BTC', to: 'ETH', amount: plain(after.min_amount) })
  expect(least.to_amount).toBeGreaterThanOrEqual(0.001)
})

const fixed = { ...quickPair, rate_type: 'fixed' } as const

/** As the client sends it; the harness's createOrder would ask for a quote first. */
async function order(amount: string, more: Partial<CreateOrderRequest> = {}): Promise<CreatedOrder> {
  const destination = await given().remote.freshAddress('BEP20')
  return given().client.createOrder({ ...fixed, amount, destination, ...more })
}
const endOf = ({ expires_at }: Rate) => expires_at

test('a fixed order keeps the rate and the end of its lock, whatever prices do and however late it comes', async () => {
  const { remote } = given()
  const quote = await wire.client.getRate({ ...fixed, amount: '501' })
  await remote.changePrice('USDC', '20')
  await remote.advanceClock(600)
  const created = await order('501', { rate_id: quote.rate_id })
  expect(created).toMatchObject({
    rate: quote.rate,
    receive_amount: quote.to_amount,
    expires_at: endOf(quote),
  })
  const now = await wire.client.getRate({ ...fixed, amount: '501' })
  expect(now.rate).toBeLessThan(quote.rate)
})

test('a lock made in direction `to` is the lock of the order for its from_amount', async () => {
  const quote = await wire.client.getRate({ ...fixed, amount: '777.77', direction: 'to' })
  const created = await order(plain(quote.from_amount))
  expect(created).toMatchObject({ rate: quote.rate, receive_amount: 777.77, expires_at: endOf(quote) })
})

test('without rate_id the newest lock on pair, networks and amount is taken; with it, that one', async () => {
  const { remote } = given()
  const first = await wire.client.getRate({ ...fixed, amount: '502' })
  await remote.changePrice('USDC', '1')
  await remote.advanceClock(60)
  const second = await wire.client.getRate({ ...fixed, amount: '502' })
  await wire.client.getRate({ ...fixed, amount: '503' })
  await wire.client.getRate({ ...fixed, to_network: 'ERC20', from_network: 'BEP20', amount: '502' })
  expect(second.rate_id).not.toBe(first.rate_id)
  const newest = await order('502')
  expect(newest).toMatchObject({ rate: second.rate, expires_at: endOf(second) })
  const named = await order('502', { rate_id: first.rate_id })
  expect(named).toMatchObject({ rate: first.rate, expires_at: endOf(first) })
})

test('without any quote a fixed order makes its own lock: fifteen minutes from its creation', async () => {
  const created = await order('504.05')
  const openMs = Date.parse(created.expires_at) - Date.parse(created.created_at)
  expect(Math.abs(openMs - 900_000)).toBeLessThan(100)
})

test('what an order locked for itself is nobody else’s: the next order of that amount gets the rate of now', async () => {
  const { remote } = given()
  const first = await order('506')
  await remote.changePrice('USDC', '1')
  await remote.advanceClock(300)
  const second = await order('506')
  expect(second.rate).toBeLessThan(first.rate)
  expect(Date.parse(second.expires_at) - Date.parse(second.created_at)).toBeGreaterThan(890_000)
  await remote.advanceClock(1_000)
  expect((await order('506')).status).toBe('NEW')
})

test('a float quote is no lock: its order takes the rate of its creation', async () => {
  const quote = await wire.client.getRate({ ...quickPair, amount: '505' })
  await given().remote.changePrice('USDC', '10')
  const created = await order('505', { rate_type: 'float' })
  expect(created.rate).toBeLessThan(quote.rate)
})

test('a payout may pay another order: the house sends to itself and the books agree', async () => {
  const sandbox = given()
  const second = await createOrder(
    sandbox,
    { ...quickPair, from_network: 'BEP20', from: 'USDC', to: 'USDT', to_network: 'ERC20' },
    { amount: '600' },
  )
  const quote = await wire.client.getRate({ ...fixed, amount: '600', direction: 'to' })
  const first = await createOrder(sandbox, quickPair, {
    ...{ amount: plain(quote.from_amount), rate_id: quote.rate_id, destination: second.deposit_address },
  })
  await payAndBury(sandbox, first)
  const done = await expectPaidOut(sandbox, first)
  const seen = await sandbox.client.getOrder(second.order_id)
  expect(seen.deposit_tx_hash).toBe(done.withdraw_tx_hash)
  await expectPaidOut(sandbox, second)
})
