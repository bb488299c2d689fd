import { classicAddressToXAddress } from 'ripple-address-codec'
import { expect, test } from 'vitest'
import { connect } from '../../src/chains/xrp/rpc.ts'
import type { Outflow } from '../../src/domain/payouts/intent.ts'
import { openHttpLine } from '../harness/http_line.ts'
import { PATIENCE_MS } from '../harness/patience.ts'
import { describeChain } from './chain_contract.ts'
import type { AddressCases } from './chain_driver.ts'
import { startXrpDriver, type XrpDriver } from './xrp_driver.ts'
import { xrpFakes } from './xrp_fakes.ts'

const account = 'rPT1Sjq2YGrBMTttX4GZHjKu9dyfzbpAYe'
const xOf = (tag: number | false) => classicAddressToXAddress(account, tag, true)

const addresses: AddressCases = {
  valid: [
    { what: 'a classic address', text: account, canonical: account },
    { what: 'an X-address with a tag', text: xOf(7), canonical: xOf(7) },
    { what: 'an X-address without one', text: xOf(false), canonical: account },
  ],
  invalid: [
    { what: 'a mistyped letter', text: `${account.slice(0, -1)}f` },
    { what: 'an X-address of the main network', text: classicAddressToXAddress(account, 7, false) },
    { what: 'the account of nobody', text: 'rrrrrrrrrrrrrrrrrrrrrhoLvTp' },
    { what: 'a Bitcoin address', text: '1BvBMSEYstWetqTFn5Au4m4GFg7xJaNVN2' },
    { what: 'an EVM address', text: '0xd8dA6BF26964aF9D7eEd9e03E53415D37aA96045' },
    { what: 'a seed', text: 'sn259rEFXrQrWyx3Q7XneWcwV6dfL' },
  ],
}

let started: XrpDriver | undefined
const running = () => {
  if (started === undefined) throw new Error('the driver was started')
  return started
}

describeChain({
  name: 'xrp ledger',
  isFinal: true,
  addresses,
  assets: ['XRP:XRP'],
  fakeDeposits: xrpFakes(running),
  start: async () => {
    started = await startXrpDriver()
    return started
  },
})

const payoutTo = (address: string, drops: bigint, tag: string | null = null): Outflow => ({
  payoutId: 'CB0000000000000001:1',
  kind: 'payout',
  asset: 'XRP:XRP',
  units: drops,
  address,
  tag,
})

async function codeOfBid(outflow: Outflow): Promise<string> {
  const driver = await startOnce()
  const bid = await driver.chain.bid(outflow)
  return bid.ok ? 'ok' : bid.rejection.code
}

let own: Promise<XrpDriver> | undefined
function startOnce(): Promise<XrpDriver> {
  own ??= startXrpDriver()
  return own
}

/** Two XRP, to an account that they make. */
async function signedPayout({ chain, outsideAddress, funds, sign }: XrpDriver) {
  const outflow = payoutTo(await outsideAddress(), 2_000_000n)
  const bid = await chain.bid(outflow)
  if (!bid.ok) throw new Error(bid.rejection.message)
  const intent = chain.draft(outflow, bid.value, await funds(outflow.asset, outflow.units))
  if (!intent.ok) throw new Error(intent.rejection.message)
  return { outflow, tx: await sign(intent.value) }
}

test('a payout that the node refuses and keeps is in a ledger all the same, is found there, and pays once', async () => {
  const driver = await startXrpDriver()
  try {
    const { chain } = driver
    const { outflow, tx } = await signedPayout(driver)
    driver.failNext('telINSUF_FEE_P')
    expect(await chain.broadcast(tx)).toBe('refused')
    expect(await chain.lookup(tx.txHash), 'it is on its way nowhere').toEqual({ where: 'absent' })
    await driver.mine(1)
    expect(await chain.lookup(tx.txHash), 'it is in the next open ledger').toEqual({ where: 'mempool' })
    await driver.mine(1)
    expect(await chain.lookup(tx.txHash)).toMatchObject({ where: 'block', succeeded: true })
    expect(await chain.broadcast(tx), 'sent again').toBe('accepted')
    await driver.mine(1)
    expect(await driver.holds('XRP:XRP', outflow.address)).toBe(2_000_000n)
  } finally {
    await driver.stop()
  }
})

test('a payout that waits in the queue is on its way', async () => {
  const driver = await startXrpDriver()
  try {
    const { chain } = driver
    const { tx } = await signedPayout(driver)
    driver.failNext('terQUEUED')
    expect(await chain.broadcast(tx)).toBe('accepted')
    expect(await chain.lookup(tx.txHash)).toEqual({ where: 'mempool' })
    await driver.mine(2)
    expect(await chain.lookup(tx.txHash)).toMatchObject({ where: 'block', succeeded: true })
  } finally {
    await driver.stop()
  }
})

test('whoever the ledger would not deliver to is no destination', async () => {
  const driver = await startOnce()
  try {
    const nobody = await driver.outsideAddress()
    expect(await codeOfBid(payoutTo(nobody, 999_999n)), 'less than makes an account').toBe('destination')
    expect(await codeOfBid(payoutTo(nobody, 1_000_000n))).toBe('ok')
    const strict = await driver.outsider()
    expect(await codeOfBid(payoutTo(strict.account, 1n))).toBe('ok')
    await strict.submit({ TransactionType: 'AccountSet', SetFlag: 1 })
    await driver.mine(1)
    const message = expect.any(String)
    expect(await driver.chain.bid(payoutTo(strict.account, 1n)), 'it wants a tag').toEqual({
      ok: false,
      rejection: { code: 'destination', message },
    })
    expect(await codeOfBid(payoutTo(strict.account, 1n, '7'))).toBe('ok')
    expect(await codeOfBid(payoutTo(classicAddressToXAddress(strict.account, 7, true), 1n))).toBe('ok')
    for (const flag of [3, 9]) {
      const closed = await driver.outsider()
      await closed.submit({ TransactionType: 'AccountSet', SetFlag: flag })
      await driver.mine(1)
      const bid = await driver.chain.bid(payoutTo(closed.account, 1n, '7'))
      expect(bid).toEqual({ ok: false, rejection: { code: 'destination', message } })
    }
    expect(await codeOfBid(payoutTo(await driver.ourAddress(), 1n)), 'ourselves').toBe('destination')
  } finally {
    await driver.stop()
  }
})

test('a ledger of which a node leaves out a deposit is read again', async () => {
  const driver = await startXrpDriver()
  const line = await openHttpLine(driver.rpcUrl)
  try {
    const ours = await driver.ourAddress()
    for (const units of [2_000_000n, 3_000_000n, 4_000_000n]) await driver.send('XRP:XRP', ours, units)
    await driver.mine(1)
    const { height } = await driver.chain.head()
    const asked = { ledger_index: height, transactions: true, expand: true }
    const whole = await connect(driver.rpcUrl, PATIENCE_MS).call('ledger', asked)
    const ledger = whole.ledger as { readonly transactions: readonly unknown[] }
    const chain = driver.chainAt(line.url, PATIENCE_MS)
    const readWith = (transactions: readonly unknown[]) => {
      const cut = { ...whole, ledger: { ...ledger, transactions } }
      line.meddle(({ method }) => (method === 'ledger' ? { tell: cut } : null))
      return chain.readBlock(height, async () => new Set([ours]))
    }
    const [first, second, third] = ledger.transactions
    expect((await readWith([first, second, third]))?.transfers.map(({ units }) => units)).toEqual([
      2_000_000n,
      3_000_000n,
      4_000_000n,
    ])
    for (const cut of [[first, second], [second, third], [first, third], [first], []])
      await expect(readWith(cut), `${cut.length} are told`).rejects.toThrow('ledger transactions')
  } finally {
    await line.stop()
    await driver.stop()
  }
})
