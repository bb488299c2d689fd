import { type Address, type Hex, pad, parseTransaction, serializeTransaction, toHex } from 'viem'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { FindOurs, Transfer } from '../../src/chains/chain.ts'
import { evm } from '../../src/chains/evm/index.ts'
import { openHttpLine } from '../harness/http_line.ts'
import { type EvmDriver, startEvmDriver } from './evm_driver.ts'
import { code, listedToken, transfer } from './evm_fakes.ts'

/**
 * What: the ways to be paid that only EVM chains have, each found once, under an id that outlives the block.
 * How: a real anvil, contracts that pay; the fakes that look the same are in evm_fakes.ts.
 */
let driver: EvmDriver
beforeAll(async () => {
  driver = await startEvmDriver('ETH')
})
afterAll(() => driver?.stop())

const WEI = 10n ** 16n

/** Everything the newest block brings to `ours`. */
async function newest(ours: readonly string[], chain = driver.chain): Promise<readonly Transfer[]> {
  const { height } = await driver.chain.head()
  const findOurs: FindOurs = async (asked) => new Set(asked.filter((one) => ours.includes(one)))
  const block = await chain.readBlock(height, findOurs)
  if (block === null) throw new Error('the newest block is there')
  return block.transfers
}

const coins = (txHash: string, path: string, to: string, units: bigint): Transfer => ({
  id: `${txHash}:call:${path}`,
  txHash,
  to,
  asset: 'ETH:ETH',
  units,
})

describe('an internal transfer is found', () => {
  test('paid on by a contract', async () => {
    const to = await driver.ourAddress()
    const payer = await driver.deploy('Payer')
    const txHash = await driver.callAsFaucet(payer, driver.encode('Payer', 'forward', [to]), WEI)
    await driver.mine(1)
    expect(await newest([to])).toEqual([coins(txHash, '0.0', to, WEI)])
    expect(await driver.holds('ETH:ETH', to)).toBe(WEI)
  })

  test('paid by a constructor', async () => {
    const to = (await driver.ourAddress()) as Address
    const initCode: Hex = `0x5f5f5f5f3473${to.slice(2)}5af100`
    const txHash = await driver.callAsFaucet(null, initCode, WEI)
    await driver.mine(1)
    expect(await newest([to])).toEqual([coins(txHash, '0.0', to, WEI)])
  })

  test('left behind by a contract that destroys itself', async () => {
    const to = (await driver.ourAddress()) as Address
    const bomb = await driver.deployCode(code.selfdestruct)
    const txHash = await driver.callAsFaucet(bomb, pad(to), WEI)
    await driver.mine(1)
    expect(await newest([to])).toEqual([coins(txHash, '0.0', to, WEI)])
    expect(await driver.holds('ETH:ETH', to)).toBe(WEI)
  })

  test('whichever way the node traces, and by the same id', async () => {
    const to = (await driver.ourAddress()) as Address
    const contract = await driver.deployCode(code.precompileThenPay)
    const txHash = await driver.callAsFaucet(contract, pad(to), WEI)
    await driver.mine(1)
    const expected = [coins(txHash, '0.0', to, WEI)]
    await expectEachWay(to, expected)
  })

  test('left behind in half, after as much was paid, and both halves are', async () => {
    const to = (await driver.ourAddress()) as Address
    const contract = await driver.deployCode(code.payHalfThenLeave)
    const txHash = await driver.callAsFaucet(contract, pad(to), WEI)
    await driver.mine(1)
    await expectEachWay(to, [coins(txHash, '0.0', to, WEI / 2n), coins(txHash, '0.1', to, WEI / 2n)])
  })
})

/** Whichever way the node traces. */
async function expectEachWay(to: string, expected: readonly Transfer[]) {
  for (const tracing of ['debug', 'trace', 'auto', 'values'] as const) {
    expect(await newest([to], evm({ ...driver.settings, tracing })), tracing).toEqual(expected)
  }
}

/** anvil 1.7.1 tells the latest payment once more for each of them (https://github.com/bluealloy/revm/pull/3805). */
describe('a SELFDESTRUCT in its own favour brings nothing', () => {
  test('after a payment by the same contract', async () => {
    const to = (await driver.ourAddress()) as Address
    const txHash = await driver.callAsFaucet(await driver.deployCode(code.payThenStay), pad(to), WEI)
    await driver.mine(1)
    await expectEachWay(to, [coins(txHash, '0.0', to, WEI)])
    expect(await driver.holds('ETH:ETH', to)).toBe(WEI)
  })

  test('after a payment by another, however often it is made, and beside others', async () => {
    const to = (await driver.ourAddress()) as Address
    const other = (await driver.ourAddress()) as Address
    const stay = await driver.deployCode(code.stay)
    const touch = `5f5f5f5f5f73${stay.slice(2)}5af150`
    const pay = '5f5f5f5f345f355af150'
    const payer = await driver.deployCode(`${touch}${pay}${touch}${touch}${touch}00`)
    const half = await driver.deployCode(code.payHalfThenLeave)
    const often = await driver.callAsFaucet(payer, pad(to), WEI)
    const true_ = await driver.callAsFaucet(half, pad(to), 2n * WEI)
    const elsewhere = await driver.callAsFaucet(payer, pad(other), WEI)
    await driver.mine(1)
    await expectEachWay(to, [
      coins(often, '0.0', to, WEI),
      coins(true_, '0.0', to, WEI),
      coins(true_, '0.1', to, WEI),
    ])
    await expectEachWay(other, [coins(elsewhere, '0.0', other, WEI)])
    expect(await driver.holds('ETH:ETH', to)).toBe(3n * WEI)
  })
})

describe('a node that has too much to do just now', () => {
  test.each(['http_429', 'http_500', 'http_502'] as const)(
    'by %s is asked for the whole block again later, and for no less of it',
    async (fault) => {
      const to = (await driver.ourAddress()) as Address
      const bomb = await driver.deployCode(code.selfdestruct)
      const txHash = await driver.callAsFaucet(bomb, pad(to), WEI)
      await driver.mine(1)
      const line = await openHttpLine(driver.settings.rpcUrl)
      try {
        const chain = evm({ ...driver.settings, rpcUrl: line.url, tracing: 'auto' })
        const asked: string[] = []
        line.meddle(({ method }) => {
          asked.push(method)
          return method === 'trace_block' ? fault : null
        })
        await expect(newest([to], chain)).rejects.toThrow(fault.slice('http_'.length))
        expect(asked.filter((method) => /^(?:debug|trace)_/.test(method))).toEqual(['trace_block'])
        line.meddle(null)
        expect(await newest([to], chain)).toEqual([coins(txHash, '0.0', to, WEI)])
      } finally {
        await line.stop()
      }
    },
  )
})

test('a node that names another balance than its traces is not believed, and says what to do', async () => {
  const to = (await driver.ourAddress()) as Address
  const txHash = await driver.send('ETH:ETH', to, WEI)
  await driver.mine(1)
  const line = await openHttpLine(driver.settings.rpcUrl)
  try {
    line.meddle(({ method }) => (method === 'eth_getBalance' ? { tell: '0x0' } : null))
    const chain = evm({ ...driver.settings, rpcUrl: line.url })
    await expect(newest([to], chain)).rejects.toThrow(/wei less came to .* update it, or use another/)
    line.meddle(null)
    expect(await newest([to], chain)).toEqual([coins(txHash, '0', to, WEI)])
  } finally {
    await line.stop()
  }
})

test('no balance is asked for where nothing came to an address of ours', async () => {
  const payer = await driver.deploy('Payer')
  const outside = (await driver.outsideAddress()) as Address
  await driver.callAsFaucet(payer, driver.encode('Payer', 'forward', [outside]), WEI)
  await driver.mine(1)
  const line = await openHttpLine(driver.settings.rpcUrl)
  try {
    const asked: string[] = []
    line.meddle(({ method }) => {
      asked.push(method)
      return null
    })
    const chain = evm({ ...driver.settings, rpcUrl: line.url })
    const { height } = await driver.chain.head()
    await chain.readBlock(height, async () => new Set())
    expect(asked).toEqual(['eth_getBlockByNumber', 'eth_getBlockReceipts', 'trace_block'])
  } finally {
    await line.stop()
  }
})

test('a block is read whose calls are longer than anybody can tell, and what it brings is found', async () => {
  const to = await driver.ourAddress()
  const hoarse = await driver.deployCode(code.shout)
  const payer = await driver.deploy('Payer')
  const bomb = await driver.deployCode(code.selfdestruct)
  const { client } = driver
  await driver.callAsFaucet(hoarse, pad(toHex(7_000)))
  const paid = await driver.callAsFaucet(payer, driver.encode('Payer', 'forward', [to]), WEI)
  const left = await driver.callAsFaucet(bomb, pad(to as Address), WEI)
  await driver.mine(1)
  expect((await client.getBlock()).transactions.length).toBe(3)
  await expectEachWay(to, [coins(paid, '0.0', to, WEI), coins(left, '0.0', to, WEI)])
})

test('tips are found that the maker of a block takes to an address of ours', async () => {
  const to = (await driver.ourAddress()) as Address
  const other = await driver.outsideAddress()
  const { client } = driver
  const { miner } = await client.getBlock()
  await client.setCoinbase({ address: to })
  try {
    await driver.send('ETH:ETH', other, WEI)
    await driver.mine(1)
  } finally {
    await client.setCoinbase({ address: miner })
  }
  const [tips, ...more] = await newest([to])
  expect([tips?.asset, tips?.units, more]).toEqual(['ETH:ETH', await driver.holds('ETH:ETH', to), []])
  expect(tips?.units).toBeGreaterThan(0n)
})

test('a batch pays several of ours once each, and the ids stay when a reorg mines it elsewhere', async () => {
  const ours = await Promise.all([driver.ourAddress(), driver.ourAddress(), driver.ourAddress()])
  const [first = '', second = '', third = ''] = ours
  const outside = await driver.outsideAddress()
  const { client } = driver
  await driver.mine(1)
  const batch = await driver.sendTogether([
    { to: first, units: WEI },
    { to: outside, units: WEI },
    { to: second, units: 2n * WEI },
    { to: first, units: 3n * WEI },
  ])
  const token = await driver.send('USDT:ERC20', third, 10n ** 18n)
  const raw = await Promise.all([batch, token].map((hash) => rawTransaction(hash as Hex)))
  await driver.mine(1)
  const before = await newest(ours)
  expect(before.map(({ id, to, units }) => [id, to, units])).toEqual([
    [`${batch}:call:0.0`, first, WEI],
    [`${batch}:call:0.2`, second, 2n * WEI],
    [`${batch}:call:0.3`, first, 3n * WEI],
    [`${token}:log:0`, third, 10n ** 18n],
  ])
  const logIndex = async () => (await client.getTransactionReceipt({ hash: token as Hex })).logs[0]?.logIndex
  expect(await logIndex()).toBe(0)

  await driver.reorg(1)
  expect((await driver.chain.lookup(batch)).where).toBe('absent')
  // Another account's event gets in front, so that places within the block change.
  await noiseFirst()
  for (const serializedTransaction of raw) await client.sendRawTransaction({ serializedTransaction })
  await driver.mine(1)
  expect(await logIndex()).toBe(1)
  expect(await newest(ours)).toEqual(before)
})

/** An NFT minted by someone who pays more for being first. */
async function noiseFirst() {
  const { client } = driver
  const noisy: Address = '0x00000000000000000000000000000000000c0de5'
  const someone = (await driver.outsideAddress()) as Address
  await client.setCode({ address: noisy, bytecode: `0x${code.nftTransfer}` })
  await client.setBalance({ address: someone, value: 10n ** 20n })
  await client.impersonateAccount({ address: someone })
  const fees = { maxFeePerGas: 10n ** 12n, maxPriorityFeePerGas: 10n ** 12n }
  await client.sendTransaction({ account: someone, to: noisy, data: pad(someone), gas: 100_000n, ...fees })
}

async function rawTransaction(hash: Hex): Promise<Hex> {
  const { client } = driver
  const raw = await client.request({ method: 'eth_getRawTransactionByHash', params: [hash] } as never)
  const bytes = raw as Hex
  expect(serializeTransaction(parseTransaction(bytes) as never)).toBeTypeOf('string')
  return bytes
}

describe('a listed token whose word is worth less than its event is not credited', () => {
  const lies = [
    { what: 'it moves nothing', name: 'SpoofToken', args: [] },
    { what: 'it returns false', name: 'FalseReturnToken', args: [] },
    { what: 'it takes a fee', name: 'FeeOnTransferToken', args: [100n, 10n ** 12n] },
  ] as const
  test.each(lies)('$what', async ({ name, args }) => {
    const to = (await driver.ourAddress()) as Address
    const liar = await driver.deploy(name, args)
    const chain = evm({ ...driver.settings, tokens: { ...driver.settings.tokens, 'USDC:ERC20': liar } })
    const lie = await driver.callAsFaucet(liar, transfer(to, 5_000_000n))
    const truth = await driver.send('USDT:ERC20', to, 5n * 10n ** 18n)
    await driver.mine(1)
    expect(await newest([to], chain)).toEqual([
      { id: `${lie}:log:0`, txHash: lie, to, asset: { unlisted: liar }, units: 5_000_000n },
      { id: `${truth}:log:0`, txHash: truth, to, asset: 'USDT:ERC20', units: 5n * 10n ** 18n },
    ])
  })

  test('the same contracts are credited when they do what they say', async () => {
    const to = (await driver.ourAddress()) as Address
    const free = await driver.deploy('FeeOnTransferToken', [0n, 10n ** 12n])
    const chain = evm({ ...driver.settings, tokens: { 'USDC:ERC20': free } })
    const txHash = await driver.callAsFaucet(free, transfer(to, 5_000_000n))
    await driver.mine(1)
    expect(await newest([to], chain)).toMatchObject([{ txHash, asset: 'USDC:ERC20', units: 5n * 10n ** 18n }])
  })
})

test('tokens that arrive in the block in which others leave are credited', async () => {
  const { client } = driver
  const to = (await driver.ourAddress()) as Address
  await driver.send('USDT:ERC20', to, 5n * 10n ** 18n)
  await client.setBalance({ address: to, value: 10n ** 20n })
  await driver.mine(1)
  await client.impersonateAccount({ address: to })
  const spent = transfer((await driver.outsideAddress()) as Address, 5_000_000n)
  await client.sendTransaction({ account: to, to: listedToken(driver), data: spent, gas: 200_000n })
  const txHash = await driver.send('USDT:ERC20', to, 3n * 10n ** 18n)
  await driver.mine(1)
  expect(await driver.holds('USDT:ERC20', to)).toBe(3n * 10n ** 18n)
  expect(await newest([to])).toMatchObject([{ txHash, asset: 'USDT:ERC20', units: 3n * 10n ** 18n }])
})

test('a balance is the one of the height that was asked for', async () => {
  const [left, right] = [await driver.ourAddress(), await driver.ourAddress()]
  await driver.send('USDT:ERC20', left, 10n ** 18n)
  await driver.send('ETH:ETH', right, WEI)
  await driver.mine(1)
  const { height } = await driver.chain.head()
  await driver.send('USDT:ERC20', right, 2n * 10n ** 18n)
  await driver.mine(1)
  const { chain } = driver
  const both = [left, right, left]
  expect(await chain.balance('USDT:ERC20', both, height - 1)).toBe(0n)
  expect(await chain.balance('USDT:ERC20', both, height)).toBe(10n ** 18n)
  expect(await chain.balance('USDT:ERC20', both)).toBe(3n * 10n ** 18n)
  expect(await chain.balance('ETH:ETH', both, height)).toBe(WEI)
  await expect(chain.balance('ETH:ETH', both, height + 1_000)).rejects.toThrow()
})

test('a node that lists a token with other decimals, or no token at all, is refused', async () => {
  const payer = await driver.deploy('Payer')
  const withTokens = (contract: Address) => evm({ ...driver.settings, tokens: { 'USDT:ERC20': contract } })
  await expect(withTokens(payer).checkIdentity()).rejects.toThrow()
  await expect(withTokens(await wordyToken(18n)).checkIdentity()).rejects.toThrow(/18 decimals/)
  await expect(withTokens(await wordyToken(6n)).checkIdentity()).resolves.toBeUndefined()
  await expect(withTokens((await driver.outsideAddress()) as Address).checkIdentity()).rejects.toThrow(
    /no contract/,
  )
})

/** Answers every call with one number. */
function wordyToken(word: bigint): Promise<Address> {
  return driver.deployCode(`60${word.toString(16).padStart(2, '0')}5f5260205ff3`)
}

test('a node of another chain tells no nonce: the reserve has the same address there', async () => {
  const { chain, outsideAddress, stranger } = driver
  const address = await outsideAddress()
  expect(await chain.minedNonce(address)).toBe(0)
  await expect(stranger().minedNonce(address)).rejects.toThrow('the node is of chain')
})
