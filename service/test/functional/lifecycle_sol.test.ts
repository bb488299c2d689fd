import { address, createKeyPairSignerFromPrivateKeyBytes } from '@solana/kit'
import {
  findAssociatedTokenPda,
  getFreezeAccountInstruction,
  TOKEN_PROGRAM_ADDRESS,
} from '@solana-program/token'
import { expect, test } from 'vitest'
import { balanceOf, chainUnits, send } from '../harness/amounts.ts'
import { attemptsOf } from '../harness/attempts.ts'
import {
  bookedFor,
  createOrder,
  createUnderpaid,
  depositsOf,
  expectPaidOut,
  expectRefunded,
  type Pair,
  payAndBury,
} from '../harness/orders.ts'
import { submitSolana } from '../harness/submit_solana.ts'
import { type TestSandbox, useTestSandbox } from '../harness/test_sandbox.ts'

/**
 * What: SOL and USDC on Solana come in, go out and come back, as soon as they are final; a payout is signed again only when
 * the final chain shows that the first never happens.
 * How: the devnet's Solana, whose transactions run on a real virtual machine; what arrived is asked of it without the service.
 */
const given = useTestSandbox({ networks: ['BTC', 'ETH', 'BNB', 'SOL'] })

const solToUsdc: Pair = { from: 'SOL', from_network: 'SOL', to: 'USDC', to_network: 'SOL' }
const usdcToSol: Pair = { from: 'USDC', from_network: 'SOL', to: 'SOL', to_network: 'SOL' }
const bnbToSol: Pair = { from: 'BNB', from_network: 'BNB', to: 'SOL', to_network: 'SOL' }
const bnbToUsdc: Pair = { from: 'BNB', from_network: 'BNB', to: 'USDC', to_network: 'SOL' }

/** A transaction may be in the 151 blocks after the one that it refers to, which is final when it is signed. */
const BLOCKS_OF_LIFE = 151

async function statusOf({ devnet }: TestSandbox, signature: string): Promise<unknown> {
  const params = [[signature], { searchTransactionHistory: true }]
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'getSignatureStatuses', params })
  const answer = await fetch(devnet.networks.SOL?.rpcUrl ?? '', { method: 'POST', body })
  return ((await answer.json()) as { result: { value: unknown[] } }).result.value[0]
}

test('SOL is exchanged for USDC on Solana, and back', async () => {
  const sandbox = given()
  for (const pair of [solToUsdc, usdcToSol]) {
    const order = await createOrder(sandbox, pair)
    expect(order.deposit_address).toMatch(/^[1-9A-HJ-NP-Za-km-z]{32,44}$/)
    expect(order.deposit_tag).toBeNull()
    await payAndBury(sandbox, order)
    await expectPaidOut(sandbox, order)
  }
})

test('the account that a payout makes for its token is in the network fee of the quote', async () => {
  const sandbox = given()
  const fees = await Promise.all(
    [bnbToUsdc, bnbToSol].map(
      async (pair) => (await sandbox.client.getRate({ ...pair, amount: 1, rate_type: 'float' })).network_fee,
    ),
  )
  const [usdc = 0, sol = 0] = fees
  // 0.00204 SOL of rent at 150 dollars, and fees of next to nothing.
  expect(usdc).toBeGreaterThan(0.3)
  expect(usdc).toBeLessThan(0.4)
  expect(sol).toBeLessThan(0.0001)
})

test.each([
  ['with a letter that base58 does not have', '0aWsL2Wq9nFJvS7dX8Kxg6YyqyrKcDxQ3mYcVZyXzZ1P'],
  ['of an EVM chain', '0xd8dA6BF26964aF9D7eEd9e03E53415D37aA96045'],
  ['of the system program', '1'.repeat(32)],
  ['that is where somebody else has a token', 'FGETo8T8wMcN2wCjav8VK6eh3dLk63evNDPxzLSJra8B'],
])('an order that pays to an address %s is refused', async (_, destination) => {
  for (const pair of [usdcToSol, solToUsdc]) {
    const refused = createOrder(given(), pair, { destination })
    await expect(refused).rejects.toMatchObject({ code: 'INVALID_ADDRESS', status: 400 })
  }
})

test('nothing is paid to the mint of a token', async () => {
  const destination = given().devnet.networks.SOL?.mints.USDC.address ?? ''
  await expect(createOrder(given(), usdcToSol, { destination })).rejects.toMatchObject({
    code: 'INVALID_ADDRESS',
  })
})

test('USDC for an account that is frozen is a matter for its customer', async () => {
  const sandbox = given()
  sandbox.expectError('the destination cannot be paid')
  const destination = await sandbox.remote.freshAddress('SOL')
  await send(sandbox, 'SOL', 'USDC', destination, '1')
  await sandbox.mine('SOL', 1)
  await freeze(sandbox, destination)
  const order = await createOrder(sandbox, bnbToUsdc, { destination })
  await payAndBury(sandbox, order)
  const stuck = await sandbox.waitForStatus(order.order_id, 'EMERGENCY')
  expect(stuck.emergency?.reasons).toEqual(['DESTINATION_PROBLEM'])
  expect(await bookedFor(sandbox, order.order_id, 'payouts_owed', 'USDC:SOL')).toBe(0n)
})

async function freeze(sandbox: TestSandbox, holder: string): Promise<void> {
  const { mints, faucetKey } = sandbox.devnet.networks.SOL ?? raise()
  const owner = await createKeyPairSignerFromPrivateKeyBytes(Buffer.from(faucetKey, 'hex'))
  const mint = address(mints.USDC.address)
  const [account] = await findAssociatedTokenPda({
    owner: address(holder),
    mint,
    tokenProgram: TOKEN_PROGRAM_ADDRESS,
  })
  await submitSolana(sandbox.devnet, owner, getFreezeAccountInstruction({ account, mint, owner }))
  await sandbox.mine('SOL', 1)
}

test.each([
  ['SOL', solToUsdc, '0.6'],
  ['USDC', usdcToSol, '300'],
])('too little %s goes back', async (_, pair, amount) => {
  const sandbox = given()
  const stuck = await createUnderpaid(sandbox, pair, amount)
  const refund_address = await sandbox.remote.freshAddress(pair.from_network)
  await sandbox.client.chooseEmergencyAction(stuck.order_id, { action: 'refund', refund_address })
  await expectRefunded(sandbox, stuck)
})

test.each([
  ['SOL', bnbToSol],
  ['USDC', bnbToUsdc],
])(
  'a payout of %s that the network accepts and loses is signed again when its blockhash is too old, and pays once',
  async (_, pair) => {
    const sandbox = given()
    const { finalDepth } = sandbox.devnet.networks.SOL ?? raise()
    const order = await createOrder(sandbox, pair)
    // Lost whenever it is sent, until no block could take it.
    sandbox.devnet.trouble('SOL', { submits: Array.from({ length: 500 }, () => 'drop' as const) })
    await payAndBury(sandbox, order)
    const { withdraw_tx_hash: lost } = await sandbox.waitForStatus(order.order_id, 'WITHDRAW')
    sandbox.log('no block can take it any more, and not all of those that could are final')
    await sandbox.mine('SOL', BLOCKS_OF_LIFE - 2 * finalDepth)
    await sandbox.remote.advanceClock(600)
    await sandbox.eventually('the network refuses it, and nothing else is signed', async () => {
      expect(await attemptsOf(sandbox, order.order_id)).toMatchObject([{ attempt: 1, answer: 'refused' }])
    })
    sandbox.devnet.trouble('SOL', null)
    await sandbox.mine('SOL', 1)
    await sandbox.remote.advanceClock(600)
    await sandbox.eventually('another attempt is sent', async () => {
      const { withdraw_tx_hash: sent } = await sandbox.client.getOrder(order.order_id)
      expect(sent).not.toBe(lost)
    })
    await expectPaidOut(sandbox, order)
    expect(await statusOf(sandbox, lost ?? '')).toBeNull()
    expect((await attemptsOf(sandbox, order.order_id)).map(({ attempt }) => attempt)).toEqual([1, 2])
  },
)

test('a payout whose answer is lost is not paid a second time', async () => {
  const sandbox = given()
  const order = await createOrder(sandbox, bnbToUsdc)
  sandbox.devnet.trouble('SOL', { submits: ['lose reply'] })
  await payAndBury(sandbox, order)
  await expectPaidOut(sandbox, order)
  await sandbox.mine('SOL', BLOCKS_OF_LIFE)
  await sandbox.settle()
  expect(await attemptsOf(sandbox, order.order_id)).toMatchObject([{ attempt: 1, state: 'confirmed' }])
})

test('a deposit whose block is undone before it is final was never there, and made again counts once', async () => {
  const sandbox = given()
  const order = await createOrder(sandbox, solToUsdc)
  const txHash = await sandbox.remote.pay(order.order_id)
  await sandbox.mine('SOL', 0)
  expect(await statusOf(sandbox, txHash)).not.toBeNull()
  await sandbox.settle('SOL')
  expect((await sandbox.client.getOrder(order.order_id)).status).toBe('NEW')
  await sandbox.devnet.reorg('SOL', 1)
  await sandbox.mine('SOL', 1)
  await sandbox.settle('SOL')
  expect(await statusOf(sandbox, txHash)).toBeNull()
  expect((await sandbox.client.getOrder(order.order_id)).status).toBe('NEW')
  expect(await depositsOf(sandbox, order.order_id)).toEqual([])
  await payAndBury(sandbox, order)
  await expectPaidOut(sandbox, order)
})

test('a payout whose block is undone before it is final is sent again as it is, and pays once', async () => {
  const sandbox = given()
  const order = await createOrder(sandbox, bnbToSol)
  await payAndBury(sandbox, order)
  const { withdraw_tx_hash: sent } = await sandbox.waitForStatus(order.order_id, 'WITHDRAW')
  await sandbox.mine('SOL', 0)
  expect(await statusOf(sandbox, sent ?? raise())).not.toBeNull()
  await sandbox.settle('SOL')
  expect((await sandbox.client.getOrder(order.order_id)).status).toBe('WITHDRAW')
  await sandbox.devnet.reorg('SOL', 1)
  expect(await statusOf(sandbox, sent ?? raise())).toBeNull()
  await sandbox.eventually('it is in a block again', async () => {
    await sandbox.remote.advanceClock(20)
    await sandbox.mine('SOL', 1)
    expect(await statusOf(sandbox, sent ?? raise())).not.toBeNull()
  })
  const done = await expectPaidOut(sandbox, order)
  expect(done.withdraw_tx_hash).toBe(sent)
  expect(await attemptsOf(sandbox, order.order_id)).toMatchObject([{ attempt: 1, state: 'confirmed' }])
})

test('a payout that fails in its block is charged and stands in EMERGENCY', async () => {
  const sandbox = given()
  const order = await createOrder(sandbox, bnbToUsdc)
  sandbox.devnet.trouble('SOL', { submits: [{ failWith: 'ProgramFailedToComplete' }] })
  await payAndBury(sandbox, order)
  await sandbox.waitForStatus(order.order_id, 'WITHDRAW')
  await sandbox.bury('SOL')
  const stuck = await sandbox.waitForStatus(order.order_id, 'EMERGENCY')
  expect(stuck.emergency?.reasons).toEqual(['DESTINATION_PROBLEM'])
  expect(await balanceOf(sandbox, order.destination, 'USDC', 'SOL')).toBe(0n)
})

test('USDC that reaches the address of an order that waits for SOL is booked, and the order does not count it', async () => {
  const sandbox = given()
  const order = await createOrder(sandbox, solToUsdc)
  const txHash = await send(sandbox, 'SOL', 'USDC', order.deposit_address, '25')
  await sandbox.bury('SOL')
  await sandbox.eventually('it is booked, and not counted', async () => {
    const found = await sandbox.rows<{ role: string; units: bigint }>(
      'SELECT role, units FROM deposits WHERE tx_hash = $1',
      [txHash],
    )
    expect(found).toEqual([{ role: 'foreign', units: chainUnits('25', 'USDC', 'BEP20') }])
  })
  expect((await sandbox.client.getOrder(order.order_id)).status).toBe('NEW')
})

test('ledger and chain are equal', async () => {
  const sandbox = given()
  await sandbox.eventually('they are compared after the last payment', async () => {
    const rows = await sandbox.rows<{ asset: string; difference: bigint; differing_count: number }>(
      `SELECT asset, difference, differing_count FROM reconciliations WHERE asset IN ('SOL:SOL', 'USDC:SOL')
       ORDER BY asset`,
    )
    expect(rows).toMatchObject([
      { asset: 'SOL:SOL', difference: 0n, differing_count: 0 },
      { asset: 'USDC:SOL', difference: 0n, differing_count: 0 },
    ])
  })
})

function raise(): never {
  throw new Error('it should be there')
}
