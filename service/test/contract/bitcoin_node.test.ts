import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { FeeBid, Funds } from '../../src/chains/chain.ts'
import type { Outflow } from '../../src/domain/payouts/intent.ts'
import { type BitcoinDriver, backings, scriptOf, startBitcoinDriver } from './bitcoin_driver.ts'

/**
 * What: what only Bitcoin has, beyond the contract: outputs spent since, branches with another truth, fee rates.
 * How: a real bitcoind on regtest and a simulated one, asked directly for the truth, and the real signer.
 */
describe.each(backings)('bitcoin on %s', (backing) => {
  let driver: BitcoinDriver
  beforeAll(async () => {
    driver = await startBitcoinDriver(backing)
  })
  afterAll(() => driver?.stop())

  /** Signed, and without change when `units` leaves no room for it. */
  async function payout(units: bigint, address: string, milliSatPerVb = 5_000n, funds?: Funds) {
    const outflow: Outflow = {
      payoutId: `CB${units}${address.slice(-8)}:1`,
      kind: 'payout',
      asset: 'BTC:BTC',
      units,
      address,
      tag: null,
    }
    const bid: FeeBid = { family: 'bitcoin', milliSatPerVb }
    const drafted = driver.chain.draft(outflow, bid, funds ?? (await driver.funds('BTC:BTC', 100_000n)))
    if (!drafted.ok) throw new Error(drafted.rejection.message)
    if (drafted.value.family !== 'bitcoin') throw new Error('a bitcoin intent')
    return { intent: drafted.value, tx: await driver.sign(drafted.value) }
  }

  test('a payout mined long ago, every output of it spent since, still counts as accepted', async () => {
    const { chain, rpc } = driver
    const to = await rpc<string>('getnewaddress', ['', 'bech32'])
    // The funds are coins of 70000, 65000 and 600: two of them pay this and leave too little for change.
    const { intent, tx } = await payout(134_000n, to)
    expect(intent.change).toBeNull()
    expect(await chain.broadcast(tx)).toBe('accepted')
    await driver.mine(1)
    const inputs = [{ txid: tx.txHash, vout: 0 }]
    const unsigned = await rpc('createrawtransaction', [inputs, [{ [to]: '0.00130000' }]])
    const { hex } = await rpc<{ hex: string }>('signrawtransactionwithwallet', [unsigned])
    await rpc('sendrawtransaction', [hex])
    await driver.mine(1)

    await expect(rpc('sendrawtransaction', [tx.bytes]), 'the node itself no longer knows').rejects.toThrow(
      'missingorspent',
    )
    expect(await chain.broadcast(tx)).toBe('accepted')
  })

  test('what was mined in a branch that lost and double-spent in the one that won is absent', async () => {
    const { chain, rpc } = driver
    const to = await driver.ourAddress()
    const old = await driver.send('BTC:BTC', to, 50_000n)
    await driver.mine(1)
    const status = await chain.lookup(old)
    expect(status.where).toBe('block')
    await driver.reorg(1)
    const fresh = await driver.replace(old, { units: 60_000n })
    await driver.mine(1)

    const indexed = await rpc<{ confirmations?: number; blockhash?: string }>('getrawtransaction', [
      old,
      true,
    ])
    expect(indexed.blockhash, 'the index still names the lost block').toBeDefined()
    expect(await chain.lookup(old)).toEqual({ where: 'absent' })
    expect(await chain.lookup(fresh)).toMatchObject({ where: 'block', succeeded: true })
  })

  test('what a payout spends is brought back with it when the node has dropped that', async () => {
    const { chain, rpc } = driver
    const funds = await driver.funds('BTC:BTC', 100_000n)
    if (funds.model !== 'coins') throw new Error('bitcoin has coins')
    const [coin] = funds.coins
    if (coin === undefined) throw new Error('there are coins')
    // It belongs in no block so low, so that the node drops it while it takes the blocks back.
    const hex = await driver.build(
      [{ script: scriptOf(coin.address), satoshi: 90_000n }],
      (await chain.head()).height,
    )
    const parent = await rpc<string>('sendrawtransaction', [hex])
    await driver.mine(2)
    const { tx } = await payout(50_000n, await driver.outsideAddress(), 5_000n, {
      ...funds,
      coins: [{ ...coin, txHash: parent, index: 0, satoshi: 90_000n }],
    })
    await driver.reorg(3)
    expect(await chain.lookup(parent)).toEqual({ where: 'absent' })

    expect(await chain.broadcast(tx)).toBe('accepted')
    await driver.mine(1)
    expect(await chain.lookup(parent)).toMatchObject({ where: 'block' })
    expect(await chain.lookup(tx.txHash)).toMatchObject({ where: 'block', succeeded: true })
  })

  test.each([1_000n, 5_000n, 12_345n, 100_000n])(
    'a bid of %d msat/vB is what the node sees paid',
    async (rate) => {
      const { intent, tx } = await payout(50_000n, await driver.outsideAddress(), rate)
      expect(await driver.chain.broadcast(tx)).toBe('accepted')
      const { vsize, fees } = await driver.rpc<{ vsize: number; fees: { base: number } }>('getmempoolentry', [
        tx.txHash,
      ])
      expect(intent.change).not.toBeNull()
      expect(fees.base.toFixed(8)).toBe(`0.${intent.feeSatoshi.toString().padStart(8, '0')}`)
      const paid = (intent.feeSatoshi * 1_000n) / BigInt(vsize)
      expect(paid).toBeGreaterThanOrEqual(rate)
      expect(paid).toBeLessThan((rate * 102n) / 100n + 10n)
      await driver.mine(1)
    },
  )

  test('bytes the node can never take are refused', async () => {
    const { tx } = await payout(50_000n, await driver.outsideAddress())
    const spoilt = Buffer.from(tx.bytes, 'hex')
    // The last byte before the lock time belongs to a public key: the signature no longer fits, the hash is the same.
    spoilt.writeUInt8(spoilt.readUInt8(spoilt.length - 5) ^ 1, spoilt.length - 5)
    expect(await driver.chain.broadcast({ ...tx, bytes: spoilt.toString('hex') })).toBe('refused')
    expect(await driver.chain.broadcast({ ...tx, bytes: tx.bytes.slice(0, -2) })).toBe('refused')
    expect(await driver.chain.broadcast(tx), 'and the right ones are taken all the same').toBe('accepted')
  })

  test('balances asked for at the same time are all answered', async () => {
    const paid = await Promise.all(
      [10_001n, 20_002n, 30_003n].map(async (units) => {
        const address = await driver.ourAddress()
        await driver.send('BTC:BTC', address, units)
        return { address, units }
      }),
    )
    await driver.mine(1)
    const asked = paid.map(({ address }) => driver.chain.balance('BTC:BTC', [address]))
    expect(await Promise.all(asked)).toEqual(paid.map(({ units }) => units))
    const all = await driver.chain.balance(
      'BTC:BTC',
      paid.map(({ address }) => address),
    )
    expect(all).toBe(60_006n)
    expect(await driver.chain.balance('BTC:BTC', [])).toBe(0n)
  })

  test('a block reward paid to us is not held, beside a transfer that is', async () => {
    const address = await driver.ourAddress()
    await driver.rpc('generatetoaddress', [1, address])
    await driver.send('BTC:BTC', address, 12_345n)
    await driver.mine(1)
    expect(await driver.chain.balance('BTC:BTC', [address])).toBe(12_345n)
  })
})
