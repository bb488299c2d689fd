import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { address } from '@solana/kit'
import { getTransferSolInstruction } from '@solana-program/system'
import { getFreezeAccountInstruction } from '@solana-program/token'
import { afterAll, expect, test } from 'vitest'
import { holdingOf } from '../../src/chains/solana/address.ts'
import type { Outflow } from '../../src/domain/payouts/intent.ts'
import { PATIENCE_MS } from '../harness/patience.ts'
import { describeChain } from './chain_contract.ts'
import type { AddressCases } from './chain_driver.ts'
import { type SolanaDriver, startSolanaDriver } from './solana_driver.ts'
import { solanaFakes } from './solana_fakes.ts'

/** Real ones, of two exchanges. A spelling has no checksum: of these, nothing is left when the last letter is. */
const exchange = 'H8sMJSCQxfKiFTCfDR3DUMLPwcRbM61LGFJ8N4dK3WjS'
const other = 'FWznbcNXWQuHTawe9RxvQ2LdCENssh12dsznf4RiouN5'

const addresses: AddressCases = {
  valid: [
    { what: 'of an exchange', text: exchange, canonical: exchange },
    { what: 'of another one', text: other, canonical: other },
  ],
  invalid: [
    { what: 'the system program', text: '1'.repeat(32) },
    { what: 'what an address has of a token', text: 'FGETo8T8wMcN2wCjav8VK6eh3dLk63evNDPxzLSJra8B' },
    { what: 'with a letter that base58 does not have', text: `0${exchange.slice(1)}` },
    { what: 'one byte too few', text: exchange.slice(0, -2) },
    { what: 'in lower case', text: exchange.toLowerCase() },
    { what: 'an account of TRON', text: 'TMuA6YqfCeX8EhbfYEg5y7S4DqzSJireY9' },
    { what: 'an account of the XRP Ledger', text: 'rPT1Sjq2YGrBMTttX4GZHjKu9dyfzbpAYe' },
    { what: 'a Bitcoin address', text: '1BvBMSEYstWetqTFn5Au4m4GFg7xJaNVN2' },
  ],
}

let started: SolanaDriver | undefined
const running = () => {
  if (started === undefined) throw new Error('the driver was started')
  return started
}

describeChain({
  name: 'solana',
  isFinal: true,
  hidesWaiting: true,
  addresses,
  assets: ['SOL:SOL', 'USDC:SOL'],
  fakeDeposits: solanaFakes(running),
  start: async () => {
    started = await startSolanaDriver()
    return started
  },
})

/** A whole one in ledger units, of which there are 18 decimals. */
const USDC = 10n ** 18n
const SOL = 10n ** 9n

let payouts = 0
const payoutOf = (asset: Outflow['asset'], to: string, units: bigint): Outflow => ({
  payoutId: `CB900000000000${2_000 + payouts++}:1`,
  kind: 'payout',
  asset,
  units,
  address: to,
  tag: null,
})

let own: Promise<SolanaDriver> | undefined
const startOnce = () => {
  own ??= startSolanaDriver()
  return own
}

afterAll(async () => (await own)?.stop())

const nobody = async () => new Set<string>()

test('a deposit is told when it is final, and not a moment before', async () => {
  const driver = await startOnce()
  const { chain, devnet, info } = driver
  const [to, start] = [await driver.ourAddress(), await chain.head()]
  const txHash = await driver.send('SOL:SOL', to, SOL)
  devnet.trouble('SOL', { blocksBehind: info.finalDepth })
  await driver.mine(1)
  expect(await chain.lookup(txHash), 'a node has it in a block').toEqual({ where: 'mempool' })
  expect(await chain.balance('SOL:SOL', [to])).toBe(0n)
  expect(await chain.readBlock((await chain.head()).height + 1, nobody)).toBeNull()
  devnet.trouble('SOL', null)
  const { height } = await chain.head()
  const told = []
  for (let slot = start.height + 1; slot <= height; slot += 1)
    told.push(...((await chain.readBlock(slot, async () => new Set([to])))?.transfers ?? []))
  expect(told).toMatchObject([{ to, txHash, units: SOL }])
  expect(await chain.lookup(txHash)).toMatchObject({ where: 'block', succeeded: true })
})

test('of several payments in one transaction each address is told its sum', async () => {
  const driver = await startOnce()
  const { chain, faucet: source } = driver
  const [one, other] = [await driver.ourAddress(), await driver.ourAddress()]
  const pay = (to: string, amount: bigint) =>
    getTransferSolInstruction({ source, destination: address(to), amount })
  const start = await chain.head()
  const txHash = await driver.submit(pay(one, SOL), pay(other, 2n * SOL), pay(one, 3n * SOL))
  await driver.mine(1)
  const block = await firstWith(driver, start.height, [one, other])
  const sums = block.map(({ to, units }) => ({ to, units })).toSorted((a, b) => (a.units < b.units ? -1 : 1))
  expect(sums).toEqual([
    { to: other, units: 2n * SOL },
    { to: one, units: 4n * SOL },
  ])
  expect(new Set(block.map(({ id }) => id)).size).toBe(2)
  expect(block.every((each) => each.txHash === txHash)).toBe(true)
})

test('a slot that a node has lost is not taken for one that was skipped', async () => {
  const driver = await startOnce()
  await driver.mine(12)
  const { height } = await driver.chain.head()
  const skipped = height - ((height + 1) % 10)
  const told = await driver.chain.readBlock(skipped, nobody)
  const [before, after] = [
    await driver.chain.readBlock(skipped - 1, nobody),
    await driver.chain.readBlock(skipped + 1, nobody),
  ]
  expect(told).toMatchObject({ hash: `skipped:${skipped}`, parentHash: before?.hash, transfers: [] })
  expect(after?.parentHash).toBe(told?.hash)
  const forgetful = await openForgetful(driver.rpcUrl, skipped - 1)
  try {
    const chain = driver.chainAt(forgetful.url, PATIENCE_MS)
    expect(await chain.readBlock(skipped, nobody)).toEqual(told)
    await expect(chain.readBlock(skipped - 1, nobody)).rejects.toThrow('needs more history')
    await expect(chain.blockHash(skipped - 1)).rejects.toThrow('needs more history')
  } finally {
    forgetful.stop()
  }
})

/** A node that says of one slot what it says of skipped ones. */
async function openForgetful(rpcUrl: string, lost: number) {
  const server = createServer(async (request, response) => {
    const body = await text(request)
    const { id, method, params } = JSON.parse(body) as { id: number; method: string; params: number[] }
    const answer = (await (await fetch(rpcUrl, { method: 'POST', body })).json()) as { result?: number[] }
    const isLost = method === 'getBlock' && params[0] === lost
    if (method === 'getBlocks') answer.result = answer.result?.filter((slot) => slot !== lost) ?? []
    const error = { code: -32007, message: `Slot ${lost} was skipped, or missing` }
    response.end(JSON.stringify(isLost ? { jsonrpc: '2.0', id, error } : answer))
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const { port } = server.address() as AddressInfo
  return { url: `http://127.0.0.1:${port}`, stop: () => server.close() }
}

test('an attempt is over when no final block can have it, and is drafted again in blocks of its own', async () => {
  const driver = await startOnce()
  const { chain, info } = driver
  const isOver = chain.isOver ?? raise()
  const outflow = payoutOf('USDC:SOL', await driver.outsideAddress(), 5n * USDC)
  const intent = await draft(driver, outflow)
  const tx = await driver.sign(intent)
  expect(await isOver(intent, null), 'it may still be signed and sent').toBe(false)
  driver.devnet.trouble('SOL', { submits: ['drop'] })
  expect(await chain.broadcast(tx)).toBe('accepted')
  expect(chain.raise(intent, await bidOf(driver, outflow))).toMatchObject({
    ok: false,
    rejection: { code: 'network' },
  })
  // The last block that could have it is the 151st after the final one that it refers to, and is there, and is not final.
  await driver.mine(151 - 2 * info.finalDepth)
  expect(await chain.broadcast(tx)).toBe('refused')
  expect(await isOver(intent, tx.txHash), 'no block takes it, and not all are final').toBe(false)
  await driver.mine(1)
  expect(await isOver(intent, tx.txHash)).toBe(true)
  const next = chain.raise(intent, await bidOf(driver, outflow))
  if (!next.ok || next.value.family !== 'solana') return raise()
  expect(next.value.reference.height).toBeGreaterThanOrEqual(intent.lastHeight)
  expect(await chain.broadcast(await driver.sign(next.value))).toBe('accepted')
  await driver.mine(1)
  expect(await driver.holds('USDC:SOL', outflow.address)).toBe(5n * USDC)
})

test('one that is in a block is never over, however late it is', async () => {
  const driver = await startOnce()
  const outflow = payoutOf('SOL:SOL', await driver.outsideAddress(), SOL)
  const intent = await draft(driver, outflow)
  const tx = await driver.sign(intent)
  expect(await driver.chain.broadcast(tx)).toBe('accepted')
  await driver.mine(160)
  expect(await driver.chain.isOver?.(intent, tx.txHash)).toBe(false)
  expect(await driver.chain.broadcast(tx), 'expired, and there all the same').toBe('accepted')
  expect(await driver.chain.lookup(tx.txHash)).toMatchObject({ where: 'block', succeeded: true })
})

test('a node that has forgotten does not make an attempt look over', async () => {
  const driver = await startOnce()
  const outflow = payoutOf('SOL:SOL', await driver.outsideAddress(), SOL)
  const intent = await draft(driver, outflow)
  const tx = await driver.sign(intent)
  await driver.mine(155)
  expect(await driver.chain.isOver?.(intent, tx.txHash)).toBe(true)
  const elsewhere = { ...intent, reference: { ...intent.reference, blockhash: other } }
  await expect(driver.chain.isOver?.(elsewhere, tx.txHash)).rejects.toThrow('does not stand on')
  const lower = { ...intent, lastHeight: intent.lastHeight - 1 }
  expect(await driver.chain.isOver?.(lower, tx.txHash)).toBe(true)
})

test('equal payouts of one moment are two transactions', async () => {
  const driver = await startOnce()
  const outflow = payoutOf('SOL:SOL', await driver.outsideAddress(), SOL)
  const [one, other] = [
    await draft(driver, { ...outflow, payoutId: 'CB0000000000000003:1' }),
    await draft(driver, { ...outflow, payoutId: 'CB0000000000000002:1' }),
  ]
  const txs = [await driver.sign(one), await driver.sign(other)]
  expect(txs[0]?.txHash).not.toBe(txs[1]?.txHash)
  for (const tx of txs) expect(await driver.chain.broadcast(tx)).toBe('accepted')
  await driver.mine(1)
  expect(await driver.holds('SOL:SOL', outflow.address)).toBe(2n * SOL)
})

test('whoever has nothing of a token yet is made an account for it, and that is part of the cost', async () => {
  const driver = await startOnce()
  const to = await driver.outsideAddress()
  const costs: bigint[] = []
  for (let round = 0; round < 2; round += 1) {
    const tx = await driver.sign(await draft(driver, payoutOf('USDC:SOL', to, USDC)))
    expect(await driver.chain.broadcast(tx)).toBe('accepted')
    await driver.mine(1)
    const status = await driver.chain.lookup(tx.txHash)
    if (status.where === 'block') costs.push(status.cost.units)
  }
  expect(costs).toEqual([2_039_280n + 5_000n, 5_000n])
  expect(await driver.holds('USDC:SOL', to)).toBe(2n * USDC)
})

test('lamports at the place of a token keep nobody from being paid there, and make it cheaper', async () => {
  const driver = await startOnce()
  const to = await driver.outsideAddress()
  const place = await holdingOf(to, driver.info.mints.USDC.address)
  await driver.submit(
    getTransferSolInstruction({ source: driver.faucet, destination: address(place), amount: 900_000n }),
  )
  await driver.mine(1)
  const tx = await driver.sign(await draft(driver, payoutOf('USDC:SOL', to, USDC)))
  expect(await driver.chain.broadcast(tx)).toBe('accepted')
  await driver.mine(1)
  const status = await driver.chain.lookup(tx.txHash)
  expect(status).toMatchObject({ succeeded: true, cost: { units: 2_039_280n - 900_000n + 5_000n } })
  expect(await driver.holds('USDC:SOL', to)).toBe(USDC)
})

test('what an address holds is told of any slot near the newest', async () => {
  const driver = await startOnce()
  const { chain } = driver
  const to = await driver.ourAddress()
  const held = new Map<number, bigint>()
  for (let round = 1n; round <= 8n; round += 1n) {
    await driver.send('SOL:SOL', to, round * SOL)
    await driver.send('USDC:SOL', to, round * USDC)
    await driver.mine(1)
    held.set((await chain.head()).height, (round * (round + 1n)) / 2n)
  }
  for (const [height, sum] of held) {
    expect(await chain.balance('SOL:SOL', [to], height), `slot ${height}`).toBe(sum * SOL)
    expect(await chain.balance('USDC:SOL', [to], height), `slot ${height}`).toBe(sum * USDC)
  }
})

test('whoever Solana would not deliver to is no destination', async () => {
  const driver = await startOnce()
  const { chain, faucet, info } = driver
  const codeOf = async (outflow: Outflow) => {
    const bid = await chain.bid(outflow)
    return bid.ok ? 'ok' : bid.rejection.code
  }
  const [nobodyYet, frozen] = [await driver.outsideAddress(), await driver.outsideAddress()]
  expect(await codeOf(payoutOf('SOL:SOL', nobodyYet, 890_879n)), 'too little for an account').toBe(
    'destination',
  )
  expect(await codeOf(payoutOf('SOL:SOL', nobodyYet, 890_880n))).toBe('ok')
  expect(await codeOf(payoutOf('SOL:SOL', nobodyYet, 10n ** 15n)), 'more than there is').toBe('funds')
  expect(await codeOf(payoutOf('USDC:SOL', nobodyYet, 10n ** 9n * USDC))).toBe('funds')
  await driver.send('USDC:SOL', frozen, USDC)
  await driver.mine(1)
  const mint = info.mints.USDC.address
  const account = address(await holdingOf(frozen, mint))
  expect(await codeOf(payoutOf('USDC:SOL', frozen, USDC))).toBe('ok')
  await driver.submit(getFreezeAccountInstruction({ account, mint: address(mint), owner: faucet }))
  await driver.mine(1)
  expect(await codeOf(payoutOf('USDC:SOL', frozen, USDC)), 'a frozen account').toBe('destination')
  expect(await codeOf(payoutOf('SOL:SOL', frozen, SOL))).toBe('ok')
  expect(await codeOf(payoutOf('SOL:SOL', account, SOL)), 'an account of a program').toBe('destination')
  expect(chain.parseAddress(mint)).toMatchObject({ rejection: { code: 'address_unpayable' } })
})

test('what fails in its block because of ours there is too little is no fault of its payee', async () => {
  const driver = await startOnce()
  const { chain } = driver
  const reserve = await driver.reserveAddress()
  // Each of three takes more than a third, and finds all of it: none of the others is in a block yet.
  for (const asset of ['USDC:SOL', 'SOL:SOL'] as const) {
    const units = ((await chain.balance(asset, [reserve])) * 3n) / 8n
    const hashes: string[] = []
    for (let sent = 0; sent < 3; sent += 1) {
      const tx = await driver.sign(await draft(driver, payoutOf(asset, await driver.outsideAddress(), units)))
      expect(await chain.broadcast(tx)).toBe('accepted')
      hashes.push(tx.txHash)
    }
    await driver.mine(1)
    const ends = await Promise.all(hashes.map((txHash) => chain.lookup(txHash)))
    const paid = { where: 'block', succeeded: true }
    expect(ends).toMatchObject([paid, paid, { where: 'block', succeeded: false, fault: 'ours' }])
  }
})

async function firstWith({ chain }: SolanaDriver, from: number, ours: readonly string[]) {
  const { height } = await chain.head()
  for (let slot = from + 1; slot <= height; slot += 1) {
    const block = await chain.readBlock(
      slot,
      async (asked) => new Set(asked.filter((each) => ours.includes(each))),
    )
    if (block !== null && block.transfers.length > 0) return block.transfers
  }
  return raise()
}

async function bidOf({ chain }: SolanaDriver, outflow: Outflow) {
  const bid = await chain.bid(outflow)
  if (!bid.ok) throw new Error(bid.rejection.message)
  return bid.value
}

async function draft(driver: SolanaDriver, outflow: Outflow) {
  const funds = await driver.funds(outflow.asset, outflow.units)
  const intent = driver.chain.draft(outflow, await bidOf(driver, outflow), funds)
  if (!intent.ok || intent.value.family !== 'solana') return raise()
  return intent.value
}

function raise(): never {
  throw new Error('it should be there')
}
