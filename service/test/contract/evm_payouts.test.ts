import type { Address } from 'viem'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Chain } from '../../src/chains/chain.ts'
import { type EvmSettings, evm } from '../../src/chains/evm/index.ts'
import type { AssetId } from '../../src/domain/catalog/assets.ts'
import { assetOf } from '../../src/domain/catalog/assets.ts'
import type { EvmIntent, Outflow } from '../../src/domain/payouts/intent.ts'
import { type EvmDriver, startEvmDriver } from './evm_driver.ts'
import { listedToken, transfer } from './evm_fakes.ts'

/**
 * What: a payment that cannot be made is refused before anything is signed, and the refusal says who must act.
 * How: a real anvil with recipients and tokens that refuse.
 */
let driver: EvmDriver
beforeAll(async () => {
  driver = await startEvmDriver('ETH')
})
afterAll(() => driver?.stop())

function outflow(asset: AssetId, address: string, units = assetOf(asset).minPayout): Outflow {
  return { payoutId: 'CB0000000000000000:1', kind: 'payout', asset, units, address, tag: null }
}

/** keccak256("Transfer(address,address,uint256)") */
const TRANSFER_TOPIC = 'ddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef'

async function refusal(of: Outflow, chain: Chain = driver.chain): Promise<string> {
  const bid = await chain.bid(of)
  return bid.ok ? 'accepted' : bid.rejection.code
}

const chainWith = (change: Partial<EvmSettings>) => evm({ ...driver.settings, ...change })

test('what can be paid gets a bid', async () => {
  const to = await driver.outsideAddress()
  expect(await refusal(outflow('ETH:ETH', to))).toBe('accepted')
  expect(await refusal(outflow('USDT:ERC20', to))).toBe('accepted')
})

test('a contract that refuses coin is a matter of the destination, and may still get tokens', async () => {
  const receiver = await driver.deploy('RejectingReceiver')
  expect(await refusal(outflow('ETH:ETH', receiver))).toBe('destination')
  expect(await refusal(outflow('USDT:ERC20', receiver))).toBe('accepted')
})

test('a contract that burns our gas is a matter of the destination', async () => {
  const glutton = await driver.deployCode('5b5f56')
  expect(await refusal(outflow('ETH:ETH', glutton))).toBe('destination')
})

test('more than the reserve holds waits for funds', async () => {
  const to = await driver.outsideAddress()
  const reserve = await driver.reserveAddress()
  for (const asset of ['ETH:ETH', 'USDT:ERC20'] as const) {
    const held = await driver.holds(asset, reserve)
    expect(await refusal(outflow(asset, to, held + 10n ** 18n)), asset).toBe('funds')
  }
  const all = await driver.holds('ETH:ETH', reserve)
  expect(await refusal(outflow('ETH:ETH', to, all)), 'nothing left for the fee').toBe('funds')
})

test('tokens without coin for the fee wait for funds', async () => {
  const poor = (await driver.outsideAddress()) as Address
  await driver.send('USDT:ERC20', poor, 10n ** 20n)
  await driver.mine(1)
  const chain = chainWith({ reserveAddress: () => poor })
  expect(await refusal(outflow('USDT:ERC20', await driver.outsideAddress()), chain)).toBe('funds')
})

test('a chain dearer than the cap is refused by the cap, and one near it is bid at the cap', async () => {
  const to = await driver.outsideAddress()
  expect(await refusal(outflow('ETH:ETH', to), chainWith({ maxFeePerGasWeiMax: 1n }))).toBe('fee_cap')
  const { baseFeePerGas } = await driver.client.getBlock()
  const capWei = (baseFeePerGas ?? 0n) + 10n ** 9n
  const bid = await chainWith({ maxFeePerGasWeiMax: capWei }).bid(outflow('ETH:ETH', to))
  expect(bid).toMatchObject({ ok: true, value: { maxFeePerGasWei: capWei } })
})

test('more gas than the cap allows is refused by the cap, for a payout that would go through', async () => {
  const usdt = outflow('USDT:ERC20', await driver.outsideAddress())
  expect(await refusal(usdt, chainWith({ gasLimitMax: 30_000n }))).toBe('fee_cap')
})

test('a node that is not there is a matter of the network', async () => {
  const chain = chainWith({ rpcUrl: 'http://127.0.0.1:1', timeoutMs: 1_000 })
  expect(await refusal(outflow('ETH:ETH', await driver.outsideAddress()), chain)).toBe('network')
  await expect(chain.estimatePayout('ETH:ETH')).rejects.toThrow()
})

describe('a token that refuses', () => {
  /** Holds more than enough for anybody; what `transfer` does is `onTransfer`. */
  const token = (onTransfer: string) => {
    const isBalanceOf = '5f3560e01c6370a0823114'
    const jump = (0x0b + 3 + onTransfer.length / 2).toString(16).padStart(2, '0')
    const richAnswer = '5b6fffffffffffffffffffffffffffffffff5f5260205ff3'
    return driver.deployCode(`${isBalanceOf}60${jump}57${onTransfer}${richAnswer}`)
  }
  const revert = '5f5ffd'
  const answer = (word: '5f' | '6001') => `${word}5f5260205ff3`
  /** If the recipient is the sender jump over the revert and answer true: 0x0b + 3 bytes stand before it. */
  const blocksOthers = `6004353314601957${revert}5b${answer('6001')}`

  const refusals = [
    { what: 'by answering false', onTransfer: answer('5f'), code: 'destination' },
    { what: 'this recipient only', onTransfer: blocksOthers, code: 'destination' },
    { what: 'everybody, because it is paused', onTransfer: revert, code: 'network' },
    { what: 'nobody', onTransfer: answer('6001'), code: 'accepted' },
  ]
  test.each(refusals)('$what: $code', async ({ onTransfer, code }) => {
    const contract = await token(onTransfer)
    const chain = chainWith({ tokens: { 'USDT:ERC20': contract } })
    expect(await refusal(outflow('USDT:ERC20', await driver.outsideAddress()), chain)).toBe(code)
  })
})

describe('a sweep out of a deposit address', () => {
  const sweep = async (asset: AssetId, address: string, units: bigint): Promise<Outflow> => ({
    ...outflow(asset, await driver.reserveAddress(), units),
    kind: 'sweep',
    from: { key: { purpose: 'deposit', index: 0 }, address },
  })

  test('is priced although the address has no gas yet, and refused when the token is not there', async () => {
    const address = (await driver.outsideAddress()) as Address
    await driver.send('USDT:ERC20', address, 10n ** 20n)
    await driver.mine(1)
    const bid = await driver.chain.bid(await sweep('USDT:ERC20', address, 10n ** 20n))
    expect(bid).toMatchObject({ ok: true, value: { family: 'evm' } })
    expect(bid.ok && bid.value.family === 'evm' && bid.value.gasLimit).toBeGreaterThan(40_000n)
    expect(await refusal(await sweep('USDT:ERC20', address, 10n ** 20n + 10n ** 12n))).toBe('funds')
    expect(await driver.chain.bid(await sweep('ETH:ETH', address, 1n))).toMatchObject({
      ok: true,
      value: { gasLimit: 21_000n },
    })
  })

  test('waits while the chain is dearer than the cap', async () => {
    const address = await driver.outsideAddress()
    expect(await refusal(await sweep('ETH:ETH', address, 1n), chainWith({ maxFeePerGasWeiMax: 1n }))).toBe(
      'fee_cap',
    )
  })

  test('waits for a token that will not move', async () => {
    // Holds plenty for anybody, and reverts every transfer.
    const contract = await driver.deployCode(
      '5f3560e01c6370a08231146011575f5ffd5b6fffffffffffffffffffffffffffffffff5f5260205ff3',
    )
    const chain = chainWith({ tokens: { 'USDT:ERC20': contract } })
    const address = await driver.outsideAddress()
    expect(await refusal(await sweep('USDT:ERC20', address, 10n ** 18n), chain)).toBe('network')
  })
})

test('a transaction that failed is in its block, unsuccessful, and cost something', async () => {
  const [contract] = Object.values(driver.settings.tokens)
  if (contract === undefined) throw new Error('a token is listed')
  const to = (await driver.outsideAddress()) as Address
  const txHash = await driver.callAsFaucet(contract, transfer(to, 10n ** 40n))
  await driver.mine(1)
  const { gasUsed, effectiveGasPrice, blockNumber, blockHash } = await driver.client.getTransactionReceipt({
    hash: txHash,
  })
  expect(await driver.chain.lookup(txHash)).toEqual({
    where: 'block',
    block: { height: Number(blockNumber), hash: blockHash },
    succeeded: false,
    cost: { asset: 'ETH:ETH', units: gasUsed * effectiveGasPrice },
  })
})

describe('a transfer of a token that its chain did not reject', () => {
  const attempt: EvmIntent = {
    ...{ family: 'evm', chain: 'ETH', evmChainId: 1, payoutId: 'CB0000000000000000:1', attempt: 1, nonce: 0 },
    ...{
      from: { purpose: 'reserve', index: 0 },
      gasLimit: 0n,
      maxFeePerGasWei: 0n,
      maxPriorityFeePerGasWei: 0n,
    },
    ...{ to: '', units: 1_000n, token: null },
  }
  const paid = async (token: Address) => {
    const to = (await driver.outsideAddress()) as Address
    const txHash = await driver.callAsFaucet(token, transfer(to, 1_000n))
    await driver.mine(1)
    return driver.chain.lookup(txHash, { ...attempt, to, token })
  }
  const answerTrue = '60015f5260205ff3'
  /** Says that it has moved 99 of 100 units. */
  const keepsAFee = `6064602435606302045f52600435337f${TRANSFER_TOPIC}60205fa3${answerTrue}`

  test('has paid when it says that it has moved just this', async () => {
    const status = await paid(listedToken(driver))
    expect(status).toMatchObject({ where: 'block', succeeded: true })
    expect(status).not.toHaveProperty('movedOtherwise')
  })

  test('has paid nothing when it answers false and says nothing', async () => {
    expect(await paid(await driver.deployCode('5f5f5260205ff3'))).toMatchObject({ succeeded: false })
  })

  test('is for a person to look at when it has begun to keep a fee', async () => {
    expect(await paid(await driver.deployCode(keepsAFee))).toMatchObject({
      succeeded: true,
      movedOtherwise: expect.stringContaining('and moved 990 units'),
    })
  })
})

test('bytes that are no transaction are refused', async () => {
  const txHash = `0x${'ab'.repeat(32)}`
  expect(await driver.chain.broadcast({ txHash, bytes: '02abcd' })).toBe('refused')
})
