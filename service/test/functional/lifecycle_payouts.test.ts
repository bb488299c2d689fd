import type { Hash } from 'viem'
import { afterAll, expect, test } from 'vitest'
import { saveSeal } from '../../src/db/orders.ts'
import type { ChainId } from '../../src/domain/catalog/networks.ts'
import { auditChain } from '../../src/engine/books/audit_chain.ts'
import { balanceOf, chainUnits } from '../harness/amounts.ts'
import { attemptsOf, expectRefused } from '../harness/attempts.ts'
import { type HttpLine, openHttpLine } from '../harness/http_line.ts'
import {
  btcToUsdt,
  createOrder,
  expectPaidOut,
  expectRefunded,
  payAndBury,
  quickPair,
  statusesOf,
  usdtToBtc,
} from '../harness/orders.ts'
import { type TestSandbox, useTestSandbox } from '../harness/test_sandbox.ts'

/**
 * What: a payout is paid once, whatever the network says or keeps to itself: slow blocks, lost answers, refusals.
 * How: real transactions over a line that loses answers or refuses on command; every transaction that was ever signed
 * is looked for on the chain.
 */
const lines = new Map<ChainId, HttpLine>()
afterAll(async () => {
  await Promise.all([...lines.values()].map((line) => line.stop()))
})
const given = useTestSandbox({
  reach: async (chain, rpcUrl) => {
    const line = await openHttpLine(rpcUrl)
    lines.set(chain, line)
    return line.url
  },
})

test.each([
  ['an account chain', quickPair, 'BEP20', 'BNB', 2 * 60],
  ['Bitcoin', usdtToBtc, 'BTC', 'BTC', 31 * 60],
] as const)(
  'a slow payout on %s gets a higher fee; the replacement excludes the first',
  async (_where, pair, network, chain, seconds) => {
    const sandbox = given()
    const order = await createOrder(sandbox, pair)
    await payAndBury(sandbox, order)
    const first = (await sandbox.waitForStatus(order.order_id, 'WITHDRAW')).withdraw_tx_hash ?? ''
    sandbox.log('no block comes for too long')
    await sandbox.remote.advanceClock(seconds)
    const second = await sandbox.eventually('the replacement is shown', async () => {
      const now = await sandbox.client.getOrder(order.order_id)
      expect(now.withdraw_tx_hash).not.toBe(first)
      return now.withdraw_tx_hash ?? ''
    })
    expect(await whereIs(sandbox, chain, first)).toBe('absent')
    expect(await whereIs(sandbox, chain, second)).toBe('mempool')
    const done = await expectPaidOut(sandbox, order)
    expect(done.withdraw_tx_hash).toBe(second)
    expect(await whereIs(sandbox, chain, first)).toBe('absent')
    expect(await whereIs(sandbox, chain, second)).toBe('block')
    expect((await attemptsOf(sandbox, order.order_id)).map(({ tx_hash }) => tx_hash)).toEqual([first, second])
    expect(network).toBe(order.receive_network)
  },
)

test('when the first attempt is mined while the second is sent, the order tells the first', async () => {
  const sandbox = given()
  const line = lineTo('BNB')
  const order = await createOrder(sandbox, quickPair)
  await payAndBury(sandbox, order)
  const first = (await sandbox.waitForStatus(order.order_id, 'WITHDRAW')).withdraw_tx_hash ?? ''
  sandbox.log('the replacement never reaches the node')
  line.meddle(({ method }) =>
    method === 'eth_sendRawTransaction' ? { refuse: 'replacement transaction underpriced' } : null,
  )
  await sandbox.remote.advanceClock(2 * 60)
  await sandbox.eventually('the replacement was refused', async () => {
    expect((await attemptsOf(sandbox, order.order_id)).map(({ answer }) => answer)).toEqual([
      'accepted',
      'refused',
    ])
  })
  line.meddle(null)
  const done = await expectPaidOut(sandbox, order)
  expect(done.withdraw_tx_hash).toBe(first)
})

test.each([
  ['an account chain', quickPair, 'BNB', 'eth_sendRawTransaction'],
  ['Bitcoin', usdtToBtc, 'BTC', 'sendrawtransaction'],
] as const)(
  'a payout whose answer is lost on the way back from %s is looked for, and not signed again',
  async (_where, pair, chain, method) => {
    const sandbox = given()
    const line = lineTo(chain)
    const order = await createOrder(sandbox, pair)
    line.meddle((call) => (call.method === method ? 'drop_reply' : null))
    await payAndBury(sandbox, order)
    await sandbox.eventually('every answer was lost, and it is found all the same', async () => {
      expect(line.count()).toBeGreaterThan(0)
      expect(await attemptsOf(sandbox, order.order_id)).toMatchObject([{ answer: 'accepted' }])
    })
    const [attempt] = await attemptsOf(sandbox, order.order_id)
    expect(await whereIs(sandbox, chain, attempt?.tx_hash ?? '')).toBe('mempool')
    line.meddle(null)
    const done = await expectPaidOut(sandbox, order)
    expect(done.withdraw_tx_hash).toBe(attempt?.tx_hash)
    expect(await attemptsOf(sandbox, order.order_id)).toHaveLength(1)
  },
)

test('a payout that the network refuses for good has its nonce filled; the next one passes, the order asks', async () => {
  const sandbox = given()
  const line = lineTo('BNB')
  const order = await createOrder(sandbox, quickPair)
  sandbox.log('every payout is refused')
  line.meddle(({ method }) =>
    method === 'eth_sendRawTransaction' ? { refuse: 'intrinsic gas too low' } : null,
  )
  await payAndBury(sandbox, order)
  const stuck = (await expectRefused(sandbox, order.order_id)).tx_hash ?? ''
  sandbox.log('a later payout waits behind the nonce')
  const next = await createOrder(sandbox, quickPair)
  await payAndBury(sandbox, next)
  await sandbox.eventually('the later one was drafted', async () => {
    expect(await attemptsOf(sandbox, next.order_id)).toHaveLength(1)
  })
  sandbox.log('only the stuck one is refused from now on; after too long its nonce is filled')
  refuseOnBnb(order.destination)
  await sandbox.remote.advanceClock(31 * 60)
  await sandbox.eventually('the filler is sent', async () => {
    const [filler] = await sandbox.rows(
      "SELECT state FROM outflows WHERE kind = 'filler' AND nonce IS NOT NULL",
    )
    expect(filler).toEqual({ state: 'broadcast' })
  })
  const passed = await expectPaidOut(sandbox, next)
  expect(passed.receive_final_amount).toBe(next.receive_amount)
  const emergency = await sandbox.waitForStatus(order.order_id, 'EMERGENCY')
  expect(emergency.emergency?.reasons).toEqual(['NETWORK_PROBLEM'])
  expect(await whereIs(sandbox, 'BNB', stuck)).toBe('absent')
  sandbox.log('the node would take anything now: the old bytes cannot pay any more')
  line.meddle(null)
  await sandbox.client.chooseEmergencyAction(order.order_id, { action: 'continue' })
  await expectPaidOut(sandbox, order)
  expect(await whereIs(sandbox, 'BNB', stuck)).toBe('absent')
})

const REFUSED_BY_RULES = -26
/** What was sent is looked at when a block comes, and when none has come for so long. */
const WITHOUT_A_BLOCK_S = 30
/** What was refused is tried again, and what must not be sent is looked at again, within so long. */
const AFTER_A_REFUSAL_S = 10

test.each(['the signer', 'the network'] as const)(
  'a Bitcoin payout that %s refuses for good: its coins come back to us, the order asks, and is refunded',
  async (who) => {
    const sandbox = given()
    const order = await createOrder(sandbox, usdtToBtc)
    const [{ seal } = raise()] = await sandbox.rows<{ seal: string }>(
      'SELECT seal FROM orders WHERE order_id = $1',
      [order.order_id],
    )
    if (who === 'the signer') await saveSeal(sandbox.service.world.db, order.order_id, 'a'.repeat(64))
    else refuseOnBitcoin(() => true)
    await payAndBury(sandbox, order)
    const stuck = await sandbox.eventually('the payout is refused', async () => {
      const [payout] = await sandbox.rows<{ trouble: string | null }>(
        'SELECT trouble FROM outflows WHERE order_id = $1',
        [order.order_id],
      )
      expect(payout?.trouble).toContain('refuses')
      return (await attemptsOf(sandbox, order.order_id))[0] ?? raise()
    })
    expect(stuck.bytes === null).toBe(who === 'the signer')
    const payee = await scriptOf(sandbox, order.destination)
    if (who === 'the network') refuseOnBitcoin((bytes) => bytes.includes(payee))
    const before = await networkCosts(sandbox)
    await sandbox.remote.advanceClock(31 * 60)
    const first = await sandbox.eventually('the filler is sent', () => sentFiller(sandbox, order.order_id, 1))
    sandbox.log('no block comes for too long: the filler gets a higher fee')
    await sandbox.remote.advanceClock(31 * 60)
    const filler = await sandbox.eventually('it is raised', () => sentFiller(sandbox, order.order_id, 2))
    expect(BigInt(filler.fee)).toBeGreaterThan(BigInt(first.fee))
    expect(await whereIs(sandbox, 'BTC', first.tx_hash)).toBe('absent')
    expect(await whereIs(sandbox, 'BTC', filler.tx_hash)).toBe('mempool')

    sandbox.log('one block is not deep enough to say that the payout is dead')
    await sandbox.mine('BTC', 1)
    await expectBooksOfBitcoin(sandbox)
    expect((await sandbox.client.getOrder(order.order_id)).status).toBe('EXCHANGE')
    await sandbox.bury('BTC')
    const emergency = await sandbox.waitForStatus(order.order_id, 'EMERGENCY')
    expect(emergency.emergency?.reasons).toEqual(['NETWORK_PROBLEM'])
    await sandbox.eventually('the filler is booked', async () => {
      expect((await fillersOf(sandbox, order.order_id))[0]?.state).toBe('confirmed')
    })
    expect((await networkCosts(sandbox)) - before).toBe(BigInt(filler.fee))
    await expectBooksOfBitcoin(sandbox)

    sandbox.log('nobody refuses any more: the old bytes cannot pay')
    await saveSeal(sandbox.service.world.db, order.order_id, seal)
    lineTo('BTC').meddle(null)
    if (stuck.bytes !== null)
      await expect(sandbox.devnet.bitcoin.rpc('sendrawtransaction', [stuck.bytes])).rejects.toThrow()
    const refund_address = await sandbox.remote.freshAddress('BEP20')
    await sandbox.client.chooseEmergencyAction(order.order_id, { action: 'refund', refund_address })
    await expectRefunded(sandbox, order)
    expect(await balanceOf(sandbox, order.destination, 'BTC', 'BTC')).toBe(0n)
  },
)

test('a payout that the network took, forgot and then refuses for good has its nonce filled; the order asks', async () => {
  const sandbox = given()
  const order = await createOrder(sandbox, quickPair)
  await payAndBury(sandbox, order)
  const sent = (await sandbox.waitForStatus(order.order_id, 'WITHDRAW')).withdraw_tx_hash ?? ''
  sandbox.log('the node loses it, and takes it no more at any fee')
  refuseOnBnb(order.destination)
  await sandbox.devnet.evm('BNB').client.dropTransaction({ hash: sent as Hash })
  await sandbox.remote.advanceClock(WITHOUT_A_BLOCK_S)
  await expectRefused(sandbox, order.order_id)
  const next = await createOrder(sandbox, quickPair)
  await payAndBury(sandbox, next)
  await sandbox.waitForStatus(next.order_id, 'WITHDRAW')
  await sandbox.remote.advanceClock(31 * 60)
  await sandbox.eventually('its nonce is filled', async () => {
    const fillers = await sandbox.rows(
      "SELECT 1 FROM outflows WHERE kind = 'filler' AND state = 'broadcast' AND chain = 'BNB'",
    )
    expect(fillers).toHaveLength(1)
  })
  await expectPaidOut(sandbox, next)
  const emergency = await sandbox.waitForStatus(order.order_id, 'EMERGENCY')
  expect(emergency.emergency?.reasons).toEqual(['NETWORK_PROBLEM'])
  lineTo('BNB').meddle(null)
  await sandbox.client.chooseEmergencyAction(order.order_id, { action: 'continue' })
  await expectPaidOut(sandbox, order)
  expect(await whereIs(sandbox, 'BNB', sent)).toBe('absent')
})

test('a Bitcoin payout that our node took, forgot and then refuses: its coins come back, though others still have it', async () => {
  const sandbox = given()
  const order = await createOrder(sandbox, usdtToBtc)
  await payAndBury(sandbox, order)
  const sent = (await sandbox.waitForStatus(order.order_id, 'WITHDRAW')).withdraw_tx_hash ?? ''
  sandbox.log('our node says that it does not know it, and takes it no more')
  const payee = await scriptOf(sandbox, order.destination)
  const known = async () => (await attemptsOf(sandbox, order.order_id)).map(({ tx_hash }) => tx_hash)
  const hashes = new Set<unknown>(await known())
  lineTo('BTC').meddle(({ method, params }) => {
    if (method === 'sendrawtransaction' && String(params?.[0]).includes(payee))
      return { refuse: 'non-mandatory-script-verify-flag', code: REFUSED_BY_RULES }
    if (method === 'getrawtransaction' && hashes.has(params?.[0]))
      return { refuse: 'No such mempool or blockchain transaction. Use gettransaction.', code: -5 }
    return null
  })
  await sandbox.remote.advanceClock(WITHOUT_A_BLOCK_S)
  await expectRefused(sandbox, order.order_id)
  await sandbox.remote.advanceClock(31 * 60)
  await sandbox.eventually('what takes its coins back is sent', () => sentFiller(sandbox, order.order_id, 1))
  lineTo('BTC').meddle(null)
  expect(await whereIs(sandbox, 'BTC', sent), 'it is outbid where it was known').toBe('absent')
  await sandbox.bury('BTC')
  const emergency = await sandbox.waitForStatus(order.order_id, 'EMERGENCY')
  expect(emergency.emergency?.reasons).toEqual(['NETWORK_PROBLEM'])
  await expectBooksOfBitcoin(sandbox)
  await sandbox.client.chooseEmergencyAction(order.order_id, { action: 'continue' })
  await expectPaidOut(sandbox, order)
  await expectBooksOfBitcoin(sandbox)
})

test('a payout that is refused because fees have risen gets a higher fee and is paid', async () => {
  const sandbox = given()
  const order = await createOrder(sandbox, quickPair)
  sandbox.log('the node wants more than the first attempt bids')
  const first = { bytes: '' }
  lineTo('BNB').meddle(({ method, params }) => {
    if (method !== 'eth_sendRawTransaction') return null
    first.bytes ||= String(params?.[0])
    return first.bytes === params?.[0] ? { refuse: 'max fee per gas less than block base fee' } : null
  })
  await payAndBury(sandbox, order)
  await expectRefused(sandbox, order.order_id)
  await sandbox.remote.advanceClock(2 * 60)
  await expectPaidOut(sandbox, order)
  expect((await attemptsOf(sandbox, order.order_id)).map(({ answer }) => answer)).toEqual([
    'refused',
    'accepted',
  ])
  lineTo('BNB').meddle(null)
})

test('a Bitcoin payout that is sent after all is not replaced, and makes its filler needless', async () => {
  const sandbox = given()
  const order = await createOrder(sandbox, usdtToBtc)
  sandbox.log('nothing is sent, neither the payout nor what would take its coins back')
  refuseOnBitcoin(() => true)
  await payAndBury(sandbox, order)
  await expectRefused(sandbox, order.order_id)
  await sandbox.remote.advanceClock(31 * 60)
  const filler = await sandbox.eventually('the filler is refused', async () => {
    const [row] = await fillersOf(sandbox, order.order_id)
    expect(row).toMatchObject({ answer: 'refused' })
    return row ?? raise()
  })
  sandbox.log('the payout is let through first')
  refuseOnBitcoin((bytes) => bytes === filler.bytes)
  await sandbox.remote.advanceClock(AFTER_A_REFUSAL_S)
  await sandbox.waitForStatus(order.order_id, 'WITHDRAW')
  sandbox.log('the filler could be sent now, and is not')
  let tries = 0
  refuseOnBitcoin((bytes) => {
    if (bytes === filler.bytes) tries += 1
    return false
  })
  const { claim_fence: fence } = (await fillersOf(sandbox, order.order_id))[0] ?? raise()
  for (const looks of [1, 2]) {
    await sandbox.remote.advanceClock(AFTER_A_REFUSAL_S)
    await sandbox.eventually('the filler was looked at', async () => {
      expect((await fillersOf(sandbox, order.order_id))[0]?.claim_fence).toBeGreaterThanOrEqual(fence + looks)
    })
  }
  expect(tries).toBe(0)
  await sandbox.mine('BTC', 1)
  await expectBooksOfBitcoin(sandbox)
  const done = await expectPaidOut(sandbox, order)
  const hashes = (await attemptsOf(sandbox, order.order_id)).map(({ tx_hash }) => tx_hash)
  expect(hashes).toContain(done.withdraw_tx_hash)
  await sandbox.eventually('the filler is over', async () => {
    expect((await fillersOf(sandbox, order.order_id))[0]?.state).toBe('failed')
  })
  expect(await whereIs(sandbox, 'BTC', filler.tx_hash)).toBe('absent')
  await expectBooksOfBitcoin(sandbox)
})

test('many payouts at once leave in one go and each once', async () => {
  const sandbox = given()
  const orders = await Promise.all(
    Array.from({ length: 20 }, (_, index) => createOrder(sandbox, index % 2 === 0 ? btcToUsdt : usdtToBtc)),
  )
  await Promise.all(orders.map((order) => sandbox.remote.pay(order.order_id)))
  await Promise.all([sandbox.bury('BTC'), sandbox.bury('BNB')])
  await Promise.all(orders.map((order) => sandbox.waitForStatus(order.order_id, 'WITHDRAW')))
  await Promise.all([sandbox.bury('BTC'), sandbox.bury('ETH')])
  const done = await Promise.all(orders.map((order) => sandbox.waitForStatus(order.order_id, 'DONE')))
  for (const order of done) {
    const [currency, network] =
      order.receive_currency === 'BTC' ? (['BTC', 'BTC'] as const) : (['USDT', 'ERC20'] as const)
    expect(await balanceOf(sandbox, order.destination, currency, network)).toBe(
      chainUnits(order.receive_final_amount, currency, network),
    )
    expect((await statusesOf(sandbox, order.order_id)).at(-1)).toBe('DONE')
  }
  expect(new Set(done.map(({ withdraw_tx_hash }) => withdraw_tx_hash)).size).toBe(20)
})

async function whereIs(
  { service }: TestSandbox,
  chain: ChainId,
  txHash: string,
): Promise<string | undefined> {
  return (await service.world.chains.get(chain)?.lookup(txHash))?.where
}

/** Every transaction that pays this address, at whatever fee. */
function refuseOnBnb(payee: string): void {
  lineTo('BNB').meddle(({ method, params }) =>
    method === 'eth_sendRawTransaction' && String(params?.[0]).includes(payee.slice(2).toLowerCase())
      ? { refuse: 'intrinsic gas too low' }
      : null,
  )
}

/** What a transaction that pays this address has in it. */
async function scriptOf({ devnet }: TestSandbox, address: string): Promise<string> {
  const { scriptPubKey } = (await devnet.bitcoin.rpc('validateaddress', [address])) as {
    scriptPubKey: string
  }
  return scriptPubKey
}

function refuseOnBitcoin(isRefused: (bytes: string) => boolean): void {
  lineTo('BTC').meddle(({ method, params }) =>
    method === 'sendrawtransaction' && isRefused(String(params?.[0]))
      ? { refuse: 'non-mandatory-script-verify-flag', code: REFUSED_BY_RULES }
      : null,
  )
}

type FillerRow = {
  claim_fence: number
  state: string
  tx_hash: string
  bytes: string
  answer: string | null
  fee: string
}

/** What takes the coins of this order's payout back. */
function fillersOf({ rows }: TestSandbox, orderId: string): Promise<FillerRow[]> {
  return rows<FillerRow>(
    `SELECT f.claim_fence, f.state, a.tx_hash, a.bytes, a.answer, a.intent->'feeSatoshi'->>'$bigint' AS fee
     FROM outflows f JOIN attempts a USING (bucket, payout_id) WHERE f.fills LIKE $1 || ':%'
     ORDER BY a.attempt`,
    [orderId],
  )
}

async function sentFiller(sandbox: TestSandbox, orderId: string, attempts: number): Promise<FillerRow> {
  const sent = await fillersOf(sandbox, orderId)
  expect(sent).toHaveLength(attempts)
  const filler = sent.at(-1)
  expect(filler).toMatchObject({ state: 'broadcast', answer: 'accepted' })
  return filler ?? raise()
}

/** Ledger, chain and list of coins agree to the satoshi. */
async function expectBooksOfBitcoin(sandbox: TestSandbox): Promise<void> {
  await sandbox.settle('BTC')
  const { chains, db, clock } = sandbox.service.world
  await sandbox.eventually('the books of Bitcoin agree', async () => {
    expect((await auditChain(db, chains.get('BTC') ?? raise(), clock)).problems).toEqual([])
  })
}

async function networkCosts({ rows }: TestSandbox): Promise<bigint> {
  const [sum] = await rows<{ units: bigint }>(
    `SELECT coalesce(sum(units), 0)::numeric(78,0) AS units FROM journal
     WHERE owner = 'house' AND asset = 'BTC:BTC' AND debit = 'network_costs' AND credit = 'wallet'`,
  )
  return sum?.units ?? 0n
}

function lineTo(chain: ChainId): HttpLine {
  const line = lines.get(chain)
  if (line === undefined) throw new Error(`there is no line to ${chain}`)
  return line
}

function raise(): never {
  throw new Error('there is none')
}
