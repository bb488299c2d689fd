import { Action } from '@wharfkit/antelope'
import { afterAll, expect, test } from 'vitest'
import type { Outflow } from '../../src/domain/payouts/intent.ts'
import { describeChain } from './chain_contract.ts'
import type { AddressCases } from './chain_driver.ts'
import { type EosDriver, encodeCall, placeOf, startEosDriver } from './eos_driver.ts'
import { eosFakes } from './eos_fakes.ts'

const addresses: AddressCases = {
  areUnchecked: true,
  valid: [
    { what: 'of an exchange', text: 'binancecleos', canonical: 'binancecleos' },
    { what: 'with dots', text: 'bitfinex.dep', canonical: 'bitfinex.dep' },
    { what: 'with a memo', text: 'krakenkraken/104233', canonical: 'krakenkraken/104233' },
  ],
  invalid: [
    { what: 'in capitals', text: 'Binancecleos' },
    { what: 'a digit that no name has', text: 'binancecleo6' },
    { what: 'thirteen letters', text: 'binancecleos1' },
    { what: 'a dot at its end', text: 'binance.' },
    { what: 'nothing but a dot', text: '.' },
    { what: 'the contract of the token', text: 'eosio.token' },
    { what: "the network's own account", text: 'eosio' },
    { what: 'a memo that is empty', text: 'binancecleos/' },
    { what: 'a memo with a blank', text: 'binancecleos/1 2' },
    { what: 'a public key', text: 'EOS6MRyAjQq8ud7hVNYcfnVPJqcVpscN5So8BhtHuGYqET5GDW5CV' },
    { what: 'an EVM address', text: '0xd8dA6BF26964aF9D7eEd9e03E53415D37aA96045' },
    { what: 'an account of Stellar', text: 'GA7QYNF7SOWQ3GLR2BGMZEHXAVIRZA4KVWLTJJFC7MGXUA74P7UJVSGZ' },
  ],
}

let started: EosDriver | undefined
const running = () => {
  if (started === undefined) throw new Error('the driver was started')
  return started
}

describeChain({
  name: 'eos',
  isFinal: true,
  hidesWaiting: true,
  isPlain: true,
  isFree: true,
  addresses,
  assets: ['EOS:EOS'],
  fakeDeposits: eosFakes(running),
  start: async () => {
    started = await startEosDriver()
    return started
  },
})

let own: Promise<EosDriver> | undefined
function startOnce(): Promise<EosDriver> {
  own ??= startEosDriver()
  return own
}
afterAll(async () => (await own)?.stop())

async function arrivedAt({ chain }: EosDriver, to: string, from: number) {
  const head = await chain.head()
  const found = []
  for (let height = from + 1; height <= head.height; height += 1) {
    found.push(...((await chain.readBlock(height, async () => new Set([to])))?.transfers ?? []))
  }
  return found
}

type Brings = {
  readonly what: string
  send(driver: EosDriver, to: string): Promise<string>
  readonly units: readonly bigint[]
}

test.each<Brings>([
  {
    what: 'a contract pays by an inline action',
    send: (driver, to) => payInline(driver, to),
    units: [50_000n],
  },
  {
    what: 'several in one transaction, two of them alike',
    send: (driver, to) =>
      driver.act([driver.pay(to, '1.0000 EOS'), driver.pay(to, '1.0000 EOS'), driver.pay(to, '2.0000 EOS')]),
    units: [10_000n, 10_000n, 20_000n],
  },
  {
    what: 'words that the contract does not read behind its memo',
    send: (driver, to) => {
      const paid = driver.pay(to, '1.0000 EOS')
      return driver.act(Action.from({ ...paid, data: `${paid.data.hexString}c0ffee` }))
    },
    units: [10_000n],
  },
  {
    what: 'a delayed transaction that did what it says',
    send: (driver, to) => driver.act(driver.pay(to, '1.0000 EOS'), { delaySeconds: 1 }),
    units: [10_000n],
  },
  {
    what: 'the least that there is',
    send: (driver, to) => driver.act(driver.pay(to, '0.0001 EOS')),
    units: [1n],
  },
])('deposits: $what', async ({ send, units }) => {
  const driver = await startOnce()
  const start = await driver.chain.head()
  const to = await driver.ourAddress()
  const txHash = await send(driver, to)
  await driver.mine(4)
  const arrived = await arrivedAt(driver, to, start.height)
  expect(arrived).toMatchObject(units.map((each) => ({ txHash, to, asset: 'EOS:EOS', units: each })))
  expect(new Set(arrived.map(({ id }) => id)).size).toBe(units.length)
})

test('what comes to the account that was given out is told, also where another is configured by now', async () => {
  const driver = await startOnce()
  const start = await driver.chain.head()
  const to = await driver.ourAddress()
  const txHash = await driver.act(driver.pay(to, '1.0000 EOS'))
  await driver.mine(4)
  const ofAnother = { ...driver, chain: driver.chainOf('mycambist124') }
  expect(await arrivedAt(ofAnother, to, start.height)).toMatchObject([{ txHash, to, units: 10_000n }])
})

async function payInline(driver: EosDriver, to: string): Promise<string> {
  const { contracts, faucet } = driver.info
  await driver.act(driver.pay(contracts.payer, '5.0000 EOS', ''))
  const { account, memo } = placeOf(to)
  const authorization = [{ actor: faucet.account, permission: 'active' }]
  const data = encodeCall('pay', { to: account, quantity: '5.0000 EOS', memo })
  return driver.act(Action.from({ account: contracts.payer, name: 'pay', authorization, data }))
}

test('nothing is told of a block before it is irreversible, and what is undone before was never there', async () => {
  const driver = await startOnce()
  const { chain } = driver
  const start = await chain.head()
  const to = await driver.ourAddress()
  const txHash = await driver.act(driver.pay(to, '1.0000 EOS'))
  await driver.mineOnly(driver.info.reversibleBlocks)
  expect(await arrivedAt(driver, to, start.height)).toEqual([])
  expect(await chain.readBlock(start.height + 6, async () => new Set([to])), 'its block').toBeNull()
  expect(await chain.lookup(txHash), 'it still waits').toEqual({ where: 'mempool' })
  expect(await chain.balance('EOS:EOS', [await driver.outsideAddress()])).toBe(0n)
  await driver.reorg(driver.info.reversibleBlocks)
  expect(await chain.lookup(txHash)).toEqual({ where: 'absent' })
  await driver.mine(1)
  expect(await arrivedAt(driver, to, start.height), 'once, where it came again').toMatchObject([{ txHash }])
  expect(await chain.lookup(txHash)).toMatchObject({ where: 'block', succeeded: true })
})

test('what the account held at an irreversible block is known, whatever came and went since', async () => {
  const driver = await startOnce()
  const { chain } = driver
  const reserve = await driver.reserveAddress()
  await driver.mine(1)
  const seen: { height: number; held: bigint }[] = []
  for (let round = 1; round <= 3; round += 1) {
    await driver.act(driver.pay(await driver.ourAddress(), `${round}.0000 EOS`))
    const tx = await driver.sign(await draft(driver, payoutTo(await driver.outsideAddress(), 50_000n)))
    expect(await chain.broadcast(tx)).toBe('accepted')
    await driver.mine(1)
    const { height } = await chain.head()
    seen.push({ height, held: await driver.holds('EOS:EOS', reserve) })
  }
  expect(new Set(seen.map(({ held }) => held)).size).toBe(3)
  await driver.act(driver.pay(await driver.ourAddress(), '9.0000 EOS'))
  await driver.mineOnly(2)
  for (const { height, held } of seen) expect(await chain.balance('EOS:EOS', [reserve], height)).toBe(held)
  expect(await chain.balance('EOS:EOS', [reserve]), 'as the last irreversible block has it').toBe(
    seen.at(-1)?.held,
  )
  const { height } = await chain.head()
  await expect(chain.balance('EOS:EOS', [reserve], height + 1)).rejects.toThrow('not irreversible')
})

let payouts = 0
const payoutTo = (address: string, units: bigint, tag: string | null = null): Outflow => ({
  payoutId: `CB900000000000${1_000 + payouts++}:1`,
  kind: 'payout',
  asset: 'EOS:EOS',
  units,
  address,
  tag,
})

async function bidOf({ chain }: EosDriver, outflow: Outflow) {
  const bid = await chain.bid(outflow)
  if (!bid.ok) throw new Error(bid.rejection.message)
  return bid.value
}

async function draft(driver: EosDriver, outflow: Outflow) {
  const funds = await driver.funds(outflow.asset, outflow.units)
  const intent = driver.chain.draft(outflow, await bidOf(driver, outflow), funds)
  if (!intent.ok || intent.value.family !== 'eos') throw new Error('it is drafted')
  return intent.value
}

test('an attempt is over when its time is and every block in which it could be was read', async () => {
  const driver = await startOnce()
  const { chain, info } = driver
  const isOver = chain.isOver ?? expect.fail()
  const outflow = payoutTo(await driver.outsideAddress(), 50_000n, 'thanks')
  const intent = await draft(driver, outflow)
  const tx = await driver.sign(intent)
  expect(await isOver(intent, null), 'it may still be signed and sent').toBe(false)
  await driver.lose?.(async () => {
    expect(await chain.broadcast(tx)).toBe('accepted')
    const early = chain.raise(intent, await bidOf(driver, outflow))
    expect(early).toMatchObject({ ok: false, rejection: { code: 'network' } })
    // Its time is over at the head, and not yet where no reorganisation reaches.
    await driver.mineOnly(122)
    expect(await chain.broadcast(tx)).toBe('refused')
    expect(await isOver(intent, tx.txHash)).toBe(false)
  })
  expect(await isOver(intent, tx.txHash)).toBe(true)
  expect(
    await isOver({ ...intent, reference: { ...intent.reference, id: blockIdOf(2) } }, tx.txHash).catch(
      String,
    ),
  ).toMatch(/does not follow/)
  const next = chain.raise(intent, await bidOf(driver, outflow))
  if (!next.ok || next.value.family !== 'eos') throw new Error('it is drafted anew')
  expect(next.value.reference.timeMs).toBeGreaterThanOrEqual(intent.expirationMs)
  expect(await chain.broadcast(await driver.sign(next.value))).toBe('accepted')
  await driver.mineOnly(1 + info.reversibleBlocks)
  expect(await driver.holds('EOS:EOS', outflow.address)).toBe(50_000n)
})

const blockIdOf = (height: number) => height.toString(16).padStart(8, '0') + 'ab'.repeat(28)

test('one that is in a block is never over, however late it is', async () => {
  const driver = await startOnce()
  const outflow = payoutTo(await driver.outsideAddress(), 70_000n)
  const intent = await draft(driver, outflow)
  const tx = await driver.sign(intent)
  expect(await driver.chain.broadcast(tx)).toBe('accepted')
  await driver.mine(150)
  expect(await driver.chain.isOver?.(intent, tx.txHash)).toBe(false)
  expect(await driver.chain.broadcast(tx), 'expired, and there all the same').toBe('accepted')
  expect(await driver.chain.lookup(tx.txHash)).toMatchObject({ where: 'block', succeeded: true })
})

test('equal payouts of one moment are two transactions', async () => {
  const driver = await startOnce()
  const to = await driver.outsideAddress()
  const txs = []
  for (let number = 0; number < 2; number += 1)
    txs.push(await driver.sign(await draft(driver, payoutTo(to, 20_000n))))
  for (const tx of txs) expect(await driver.chain.broadcast(tx)).toBe('accepted')
  await driver.mine(1)
  expect(await driver.holds('EOS:EOS', to)).toBe(40_000n)
})

test('whoever EOS would not deliver to is no destination', async () => {
  const driver = await startOnce()
  const codeOf = async (outflow: Outflow) => {
    const bid = await driver.chain.bid(outflow)
    return bid.ok ? 'ok' : bid.rejection.code
  }
  expect(await codeOf(payoutTo('nobodyatall1', 10_000n)), 'no such account').toBe('destination')
  expect(await codeOf(payoutTo(await driver.ourAddress(), 10_000n)), 'ourselves').toBe('destination')
  expect(await codeOf(payoutTo(await driver.outsideAddress(), 10_000n))).toBe('ok')
})

test('an account that does not obey our key is not taken for ours', async () => {
  const driver = await startOnce()
  await expect(driver.chainOf('devnetfaucet').checkIdentity()).rejects.toThrow('it is not ours')
  await expect(driver.chainOf('nobodyatall1').checkIdentity()).rejects.toThrow('there is no account')
})
