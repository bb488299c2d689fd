import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { privateKeyToAccount } from 'viem/accounts'
import { bytesToHex } from 'viem/utils'
import { expect, test } from 'vitest'
import { assetOf } from '../../src/domain/catalog/assets.ts'
import type { ChainId } from '../../src/domain/catalog/networks.ts'
import { exactAmount, fromChainUnits } from '../../src/domain/money/amount.ts'
import type { Coin } from '../../src/domain/payouts/intent.ts'
import { isOutflowStopped } from '../../src/engine/books/stopped_outflows.ts'
import { openSandboxSeed } from '../../src/sandbox/keys.ts'
import { deriveKeys, type Keys } from '../../src/signer/derivation.ts'
import { signBitcoin } from '../../src/signer/transactions/bitcoin_transaction.ts'
import { bnbToEth, createOrder, expectPaidOut, payAndBury, usdtToBtc } from '../harness/orders.ts'
import { processEnvironment } from '../harness/process_environment.ts'
import { type TestSandbox, useTestSandbox } from '../harness/test_sandbox.ts'

/**
 * What: reserves that are taken out with the words stop their chain, `cambist ledger book` tells the books of it, and payouts
 * go on, out of what is left.
 * How: real nodes, a transaction that the service knows nothing of, signed with the sandbox's own keys, and the command as a
 * process of its own. At the end books, coins and chains agree, as after every test.
 */
const given = useTestSandbox()

test('coin of an account that was taken out is booked, and what waited is paid', async () => {
  const sandbox = given()
  sandbox.expectError('ledger and chain differ and nothing explains it')
  const order = await createOrder(sandbox, bnbToEth)
  await takeEtherOut(sandbox)
  await expectStopped(sandbox, 'ETH', true)
  await payAndBury(sandbox, order)
  await sandbox.eventually('its payout waits', async () => {
    const outflows = await sandbox.rows('SELECT trouble FROM outflows WHERE order_id = $1', [order.order_id])
    expect(outflows).toEqual([{ trouble: 'outflows of ETH are stopped: ledger and chain differ' }])
  })

  sandbox.log('the whole difference is booked, and nothing else')
  const difference = await differenceOf(sandbox, 'ETH:ETH')
  expect(await book(sandbox, 'ETH', '-1.5')).toContain(`the chain less the books is ${difference} ETH:ETH`)
  expect(await book(sandbox, 'ETH', difference)).toContain(`Booked ${difference} ETH:ETH against capital`)
  expect(await book(sandbox, 'ETH', difference)).toContain('there is nothing to book')
  await expectPaidOut(sandbox, order)
  await expectStopped(sandbox, 'ETH', false)
})

test('coins that were taken out are booked and planned with no more', async () => {
  const sandbox = given()
  const { kept, change, spentSatoshi } = await takeCoinsOut(sandbox)
  await expectStopped(sandbox, 'BTC', true)

  sandbox.log('the change came like any money to the reserve: all coins that were spent are missing')
  const difference = await differenceOf(sandbox, 'BTC:BTC')
  expect(difference).toBe(`-${exactAmount(fromChainUnits('BTC:BTC', spentSatoshi))}`)
  expect(await book(sandbox, 'BTC', difference)).toContain(
    'Coins that are spent and that no outflow of ours spent: 39',
  )
  await expectStopped(sandbox, 'BTC', false)
  await sandbox.eventually('BTC is offered again', async () => {
    expect(sandbox.service.world.market.isOffered(assetOf('BTC:BTC'))).toBe(true)
  })

  sandbox.log('the next payout has two coins left to spend')
  const order = await createOrder(sandbox, usdtToBtc)
  await payAndBury(sandbox, order)
  await expectPaidOut(sandbox, order)
  const spent = await sandbox.rows('SELECT tx_hash, output_index FROM coins WHERE spent_by = $1', [
    `${order.order_id}:1`,
  ])
  expect(spent).not.toEqual([])
  const left = [kept, change].map(({ txHash, index }) => ({ tx_hash: txHash, output_index: index }))
  expect(left).toEqual(expect.arrayContaining(spent))
})

async function keysOf({ dataDir }: TestSandbox): Promise<Keys> {
  return deriveKeys(await openSandboxSeed(dataDir, 0), { bitcoin: 'regtest', xrpNetworkId: 0 })
}

const RESERVE = { purpose: 'reserve', index: 0 } as const

async function takeEtherOut(sandbox: TestSandbox): Promise<void> {
  const { client } = sandbox.devnet.evm('ETH')
  const account = privateKeyToAccount(bytesToHex((await keysOf(sandbox)).privateKey('evm', RESERVE)))
  const to = (await sandbox.remote.freshAddress('ETH')) as `0x${string}`
  const bare = { to, value: 15n * 10n ** 17n, gas: 21_000n, chainId: await client.getChainId() }
  const serialized = await account.signTransaction({
    ...bare,
    nonce: await client.getTransactionCount({ address: account.address }),
    maxFeePerGas: 10n ** 11n,
    maxPriorityFeePerGas: 10n ** 9n,
  })
  await client.sendRawTransaction({ serializedTransaction: serialized })
  await sandbox.bury('ETH')
}

type TakenOut = {
  /** The coin of the reserve that was left. */
  readonly kept: Coin
  /** What came back to the reserve. */
  readonly change: Coin
  readonly spentSatoshi: bigint
}

/** Spends all coins of the reserve but one, with change to the reserve's address. */
async function takeCoinsOut(sandbox: TestSandbox): Promise<TakenOut> {
  const rows = await sandbox.rows<{
    tx_hash: string
    output_index: number
    satoshi: bigint
    address: string
  }>(
    "SELECT * FROM coins WHERE spent_by IS NULL AND key_purpose = 'reserve' ORDER BY satoshi, tx_hash, output_index",
  )
  const [kept, ...inputs] = rows.map(
    (row): Coin => ({
      txHash: row.tx_hash,
      index: row.output_index,
      satoshi: BigInt(row.satoshi),
      address: row.address,
      key: RESERVE,
    }),
  )
  if (kept === undefined) throw new Error('the reserve has no coins')
  const feeSatoshi = 50_000n
  const spentSatoshi = inputs.reduce((sum, { satoshi }) => sum + satoshi, 0n)
  const change = { address: kept.address, satoshi: 12_345_678n, key: RESERVE }
  const payment = {
    address: await sandbox.remote.freshAddress('BTC'),
    satoshi: spentSatoshi - change.satoshi - feeSatoshi,
  }
  const signed = signBitcoin(
    {
      family: 'bitcoin',
      chain: 'BTC',
      payoutId: 'outside',
      attempt: 1,
      inputs,
      payment,
      change,
      feeSatoshi,
    },
    await keysOf(sandbox),
    { network: 'regtest', feeRateSatPerVbMax: 1_000n, feeSatoshiMax: feeSatoshi },
  )
  if (!signed.ok) throw new Error(signed.rejection.message)
  expect(await sandbox.service.world.chains.get('BTC')?.broadcast(signed.value)).toBe('accepted')
  await sandbox.bury('BTC')
  return { kept, change: { ...change, txHash: signed.value.txHash, index: 1 }, spentSatoshi }
}

function expectStopped(sandbox: TestSandbox, chain: ChainId, isStopped: boolean): Promise<void> {
  return sandbox.eventually(`outflows of ${chain} ${isStopped ? 'are stopped' : 'go on'}`, async () => {
    expect(await isOutflowStopped(sandbox.service.world.db, chain)).toBe(isStopped)
  })
}

const CLI = join(import.meta.dirname, '../../src/cli.ts')

/** As `cambist ledger audit` says it, without its sign of the asset. */
async function differenceOf(sandbox: TestSandbox, asset: string): Promise<string> {
  const told = await cambist(sandbox, 'audit')
  const [, missing] = new RegExp(`([0-9.]+) ${asset} is missing on the chain`).exec(told) ?? []
  if (missing === undefined) throw new Error(`the audit names no ${asset}: ${told}`)
  return `-${missing}`
}

function book(sandbox: TestSandbox, asset: string, amount: string): Promise<string> {
  return cambist(sandbox, 'book', asset, amount, '--because', 'taken out')
}

/** A command of `cambist ledger`, as an operator gives it; all that it said. */
function cambist({ dataDir }: TestSandbox, ...args: string[]): Promise<string> {
  const env = { ...processEnvironment, CAMBIST_DATA_DIR: dataDir }
  return new Promise((resolve) => {
    execFile(
      process.execPath,
      [CLI, 'ledger', '--sandbox', ...args],
      { env, maxBuffer: 2 ** 26 },
      (_, out, errors) => resolve(`${out}\n${errors}`),
    )
  })
}
