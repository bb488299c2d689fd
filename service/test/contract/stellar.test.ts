import {
  Asset,
  encodeMuxedAccount,
  encodeMuxedAccountToAddress,
  Memo,
  Operation,
} from '@stellar/stellar-sdk/base'
import { afterAll, expect, test } from 'vitest'
import { parsePlace } from '../../src/chains/stellar/address.ts'
import { assert } from '../../src/domain/assert.ts'
import type { Outflow } from '../../src/domain/payouts/intent.ts'
import { describeChain } from './chain_contract.ts'
import type { AddressCases } from './chain_driver.ts'
import { type Outsider, type StellarDriver, startStellarDriver, XLM } from './stellar_driver.ts'
import { stellarFakes } from './stellar_fakes.ts'

// The examples of SEP-23, https://stellar.org/protocol/sep-23
const account = 'GA7QYNF7SOWQ3GLR2BGMZEHXAVIRZA4KVWLTJJFC7MGXUA74P7UJVSGZ'
const muxed = 'MA7QYNF7SOWQ3GLR2BGMZEHXAVIRZA4KVWLTJJFC7MGXUA74P7UJUAAAAAAAAAAAACJUQ'

const addresses: AddressCases = {
  valid: [
    { what: 'an account', text: account, canonical: account },
    { what: 'a muxed address', text: muxed, canonical: muxed },
  ],
  invalid: [
    { what: 'a mistyped letter', text: `${account.slice(0, -1)}A` },
    { what: 'a contract', text: 'CA3D5KRYM6CB7OWQ6TWYRR3Z4T7GNZLKERYNZGGA5SOAOPIFY6YQGAXE' },
    { what: 'the account of nobody', text: 'GAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAWHF' },
    { what: 'a secret', text: 'SBGWSG6BTNCKCOB3DIFBGCVMUPQFYPA2G4O34RMTB343OYPXU5DJDVMN' },
    { what: 'a federated name', text: 'bob*example.com' },
    { what: 'an EVM address', text: '0xd8dA6BF26964aF9D7eEd9e03E53415D37aA96045' },
    { what: 'a classic XRP address', text: 'rPT1Sjq2YGrBMTttX4GZHjKu9dyfzbpAYe' },
  ],
}

let started: StellarDriver | undefined
const running = () => {
  if (started === undefined) throw new Error('the driver was started')
  return started
}

describeChain({
  name: 'stellar',
  isFinal: true,
  hidesWaiting: true,
  isPlain: true,
  addresses,
  assets: ['XLM:XLM'],
  fakeDeposits: stellarFakes(running),
  start: async () => {
    started = await startStellarDriver()
    return started
  },
})

let own: Promise<StellarDriver> | undefined
function startOnce(): Promise<StellarDriver> {
  own ??= startStellarDriver()
  return own
}
afterAll(async () => (await own)?.stop())

const native = Asset.native()
type Brings = {
  readonly what: string
  send(sender: Outsider, to: string, place: { account: string; id: string }): Promise<string>
  readonly stroops: bigint
}

test.each<Brings>([
  {
    what: 'a memo of the kind id',
    send: (sender, _to, { account: destination, id }) =>
      sender.submit(Operation.payment({ destination, asset: native, amount: '5' }), { memo: Memo.id(id) }),
    stroops: 5n * XLM,
  },
  {
    what: 'a memo of the kind text',
    send: (sender, _to, { account: destination, id }) =>
      sender.submit(Operation.payment({ destination, asset: native, amount: '5' }), { memo: Memo.text(id) }),
    stroops: 5n * XLM,
  },
  {
    what: 'muxed id and memo that say the same',
    send: (sender, to, { id }) =>
      sender.submit(Operation.payment({ destination: to, asset: native, amount: '5' }), {
        memo: Memo.id(id),
      }),
    stroops: 5n * XLM,
  },
  {
    what: 'a note in words beside a muxed id',
    send: (sender, to) =>
      sender.submit(Operation.payment({ destination: to, asset: native, amount: '5' }), {
        memo: Memo.text('thank you'),
      }),
    stroops: 5n * XLM,
  },
  {
    what: 'an envelope that somebody else paid the fee of',
    send: (sender, to) =>
      sender.submit(Operation.payment({ destination: to, asset: native, amount: '5' }), { bump: true }),
    stroops: 5n * XLM,
  },
  {
    what: 'a path payment, by what arrives',
    send: (sender, to) =>
      sender.submit(
        Operation.pathPaymentStrictReceive({
          sendAsset: native,
          sendMax: '9',
          destination: to,
          destAsset: native,
          destAmount: '5',
        }),
      ),
    stroops: 5n * XLM,
  },
  {
    what: 'an account that ends, with all that was left',
    send: (sender, to) => sender.submit(Operation.accountMerge({ destination: to })),
    stroops: 100n * XLM - 100n,
  },
  {
    what: 'the end of an account, the fee paid by somebody else',
    send: (sender, to) => sender.submit(Operation.accountMerge({ destination: to }), { bump: true }),
    stroops: 100n * XLM,
  },
])('a deposit: $what', async ({ send, stroops }) => {
  const driver = await startOnce()
  const to = await driver.ourAddress()
  const sender = await driver.outsider()
  const place = parsePlace(to)
  assert(place.ok && place.value.id !== null, 'ours is a muxed address')
  const { account, id } = place.value
  const txHash = await send(sender, to, { account, id })
  await driver.mine(1)
  const { height } = await driver.chain.head()
  const block = await driver.chain.readBlock(height, async () => new Set([to]))
  expect(block?.transfers).toMatchObject([{ txHash, to, asset: 'XLM:XLM', units: stroops }])
})

test('a hundred operations under one memo are a hundred deposits', async () => {
  const driver = await startOnce()
  const to = await driver.ourAddress()
  const sender = await driver.outsider(200n * XLM)
  await sender.submit(
    Array.from({ length: 100 }, () => Operation.payment({ destination: to, asset: native, amount: '1' })),
  )
  await driver.mine(1)
  const { height } = await driver.chain.head()
  const transfers = (await driver.chain.readBlock(height, async () => new Set([to])))?.transfers ?? []
  expect(new Set(transfers.map(({ id }) => id)).size).toBe(100)
})

test('what an account held at a ledger is known later, whatever came and went since', async () => {
  const driver = await startOnce()
  const { chain } = driver
  const reserve = await driver.reserveAddress()
  const seen: { height: number; held: bigint }[] = []
  for (let round = 1n; round <= 3n; round += 1n) {
    const sender = await driver.outsider()
    await sender.submit(Operation.accountMerge({ destination: await driver.ourAddress() }))
    const paid = await payout(driver, await driver.outsideAddress(), 3n * XLM)
    expect(await chain.broadcast(paid)).toBe('accepted')
    await driver.mine(1)
    const { height } = await chain.head()
    seen.push({ height, held: await driver.holds('XLM:XLM', reserve) })
  }
  expect(new Set(seen.map(({ held }) => held)).size).toBe(3)
  for (const { height, held } of seen) expect(await chain.balance('XLM:XLM', [reserve], height)).toBe(held)
})

test('all that an account can spare is paid out, and what it has to keep is known', async () => {
  const driver = await startOnce()
  const reserve = await driver.reserveAddress()
  const locked = (await driver.chain.lockedUnits?.()) ?? 0n
  const held = await driver.chain.balance('XLM:XLM', [reserve])
  const to = await driver.outsideAddress()
  const most = await payout(driver, to, held - locked)
  expect(await driver.chain.broadcast(most)).toBe('accepted')
  await driver.mine(1)
  expect(await driver.chain.lookup(most.txHash)).toMatchObject({ where: 'block', succeeded: true })
  expect(await driver.holds('XLM:XLM', to)).toBe(held - locked)
  await driver.send('XLM:XLM', reserve, held)
  await driver.mine(1)
})

const payoutTo = (address: string, stroops: bigint, tag: string | null = null): Outflow => ({
  payoutId: `CB${Math.random().toString().slice(2, 18).padEnd(16, '0')}:1`,
  kind: 'payout',
  asset: 'XLM:XLM',
  units: stroops,
  address,
  tag,
})

async function payout(driver: StellarDriver, address: string, stroops: bigint) {
  const outflow = payoutTo(address, stroops)
  const bid = await driver.chain.bid(outflow)
  assert(bid.ok, 'it can be paid')
  const intent = driver.chain.draft(outflow, bid.value, await driver.funds('XLM:XLM', stroops))
  assert(intent.ok, 'it is drafted')
  return driver.sign(intent.value)
}

test('of two payouts the second waits for its ledger, and is sent again as it is', async () => {
  const driver = await startOnce()
  const { chain } = driver
  const [one, two] = [await driver.outsideAddress(), await driver.outsideAddress()]
  const [first, second] = [await payout(driver, one, 3n * XLM), await payout(driver, two, 4n * XLM)]
  expect(await chain.broadcast(second), 'its turn is yet to come').toBe('unknown')
  expect(await chain.broadcast(first)).toBe('accepted')
  expect(await chain.broadcast(second), 'there is one place').toBe('unknown')
  await driver.mine(1)
  expect(await chain.broadcast(second)).toBe('accepted')
  await driver.mine(1)
  expect(await driver.holds('XLM:XLM', one)).toBe(3n * XLM)
  expect(await driver.holds('XLM:XLM', two)).toBe(4n * XLM)
})

test('whoever the ledger would not deliver to is no destination', async () => {
  const driver = await startOnce()
  const codeOf = async (outflow: Outflow) => {
    const bid = await driver.chain.bid(outflow)
    return bid.ok ? 'ok' : bid.rejection.code
  }
  const nobody = await driver.outsideAddress()
  expect(await codeOf(payoutTo(nobody, XLM - 1n)), 'less than makes an account').toBe('destination')
  expect(await codeOf(payoutTo(nobody, XLM))).toBe('ok')
  const muxedNobody = encodeMuxedAccountToAddress(encodeMuxedAccount(nobody, '7'))
  expect(await codeOf(payoutTo(muxedNobody, 10n * XLM)), 'a muxed address makes none').toBe('destination')
  const strict = await driver.outsider()
  expect(await codeOf(payoutTo(strict.account, 1n))).toBe('ok')
  await strict.submit(Operation.manageData({ name: 'config.memo_required', value: '1' }))
  await driver.mine(1)
  expect(await driver.chain.bid(payoutTo(strict.account, 1n)), 'it wants a memo').toMatchObject({
    rejection: { code: 'destination', wouldArrive: true },
  })
  expect(await codeOf(payoutTo(strict.account, 1n, '7'))).toBe('ok')
  const muxedStrict = encodeMuxedAccountToAddress(encodeMuxedAccount(strict.account, '7'))
  expect(await codeOf(payoutTo(muxedStrict, 1n))).toBe('ok')
  expect(await codeOf(payoutTo(await driver.ourAddress(), 1n)), 'ourselves').toBe('destination')
})
