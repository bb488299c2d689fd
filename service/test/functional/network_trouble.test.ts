import type { Troubles } from '@cambist/devnet'
import type { CreatedOrder, CreateOrderRequest } from '@cambist/sdk'
import { expect, onTestFinished, test } from 'vitest'
import { LIFE_S } from '../../src/chains/stellar/bid.ts'
import { LEDGERS_TO_LIVE } from '../../src/chains/xrp/bid.ts'
import { answersOf, createOrder, expectPaidOut, type Pair, payAndBury } from '../harness/orders.ts'
import { type TestSandbox, useTestSandbox } from '../harness/test_sandbox.ts'

/**
 * What: a network that hangs, fails, lags or lies stops nobody but who needs it, and is back by itself.
 * How: four simulated networks are given the same trouble at once, beside one that is well. Before it, orders are
 * created that need each of them on either side; meanwhile another order goes all its way. Then answers get lost.
 */
const NODE_TIMEOUT_MS = 1_000
/** Longer than most looks take on a machine that is busy with others. */
const CHAIN_TROUBLE_MS = 8_000

const given = useTestSandbox({
  networks: ['ETH', 'XRP', 'XLM', 'TRX', 'EOS'],
  nodeTimeoutMs: NODE_TIMEOUT_MS,
  policy: { chainTroubleMs: CHAIN_TROUBLE_MS, restMs: 300 },
})

const troubled = ['XRP', 'XLM', 'TRX', 'EOS'] as const
type Troubled = (typeof troubled)[number]

const elsewhere: Pair = { from: 'USDT', from_network: 'ERC20', to: 'USDC', to_network: 'ERC20' }

function payingInto(chain: Troubled): Pair {
  return { from: 'ETH', from_network: 'ETH', to: chain, to_network: chain }
}

function paidOutOf(chain: Troubled): Pair {
  return { from: chain, from_network: chain, to: 'USDC', to_network: 'ERC20' }
}

/** What is on while a test goes on, and off when it ends. */
function beginTrouble({ devnet }: TestSandbox, trouble: Partial<Troubles>): { end(): void } {
  const end = () => {
    for (const chain of troubled) devnet.trouble(chain, null)
  }
  onTestFinished(end)
  for (const chain of troubled) devnet.trouble(chain, trouble)
  return { end }
}

test.each<[string, Partial<Troubles>]>([
  ['hangs', { hangs: true }],
  ['answers every request with an error', { errs: true }],
  ['answers when nobody waits any more', { delayMs: 2 * NODE_TIMEOUT_MS }],
  ['says that it is another network', { isStranger: true }],
  ['goes backwards', { blocksBehind: 3 }],
])(
  'a network that %s is off the list until it is well, and its orders wait; others go on',
  async (_, trouble) => {
    const sandbox = given()
    // So that there are blocks to go back by.
    for (const chain of troubled) await sandbox.mine(chain, 4)
    await sandbox.settle()
    // A machine that is busy takes longer for its first looks than a network may be silent here.
    await expectOffered(sandbox)
    const waiting: CreatedOrder[] = []
    for (const chain of troubled) {
      const tag = chain === 'TRX' ? {} : { destination_tag: '7' }
      waiting.push(await createWhenOffered(sandbox, payingInto(chain), tag))
      waiting.push(await createWhenOffered(sandbox, paidOutOf(chain)))
    }
    sandbox.log('the trouble begins, and the orders that need these networks are paid')
    const { end } = beginTrouble(sandbox, trouble)
    for (const { order_id } of waiting) await sandbox.remote.pay(order_id)
    await sandbox.bury('ETH')
    await goAllTheWay(sandbox)
    await expectUnavailable(sandbox)
    await goAllTheWay(sandbox)
    for (const { order_id } of waiting) {
      const { status } = await sandbox.client.getOrder(order_id)
      expect(['NEW', 'PENDING', 'EXCHANGE', 'WITHDRAW']).toContain(status)
    }

    sandbox.log('the trouble is over')
    end()
    for (const chain of troubled) await sandbox.bury(chain)
    await expectOffered(sandbox)
    await Promise.all(waiting.map((order) => expectPaidOut(sandbox, order)))
  },
)

/** More than a payout lives, and on TRON and EOS until that is known where no reorganisation reaches. */
const BLOCKS_TO_RUN_OUT: Readonly<Record<Troubled, number>> = {
  XRP: LEDGERS_TO_LIVE + 1,
  XLM: LIFE_S + 1,
  TRX: 85,
  EOS: 130,
}

test.each(
  troubled.flatMap((chain) => [
    { chain, fate: 'lose reply' as const, attempts: 1, what: 'done without an answer' },
    { chain, fate: 'lose request' as const, attempts: 2, what: 'lost without an answer' },
  ]),
)(
  'a payout on $chain that is $what, and whose time runs out unheard, arrives once',
  async ({ chain, fate, attempts }) => {
    const sandbox = given()
    // On TRON a payout refers to a block that is solid.
    await sandbox.bury(chain)
    const tag = chain === 'TRX' ? {} : { destination_tag: '7' }
    const order = await createWhenOffered(sandbox, payingInto(chain), tag)
    sandbox.devnet.trouble(chain, { submits: Array.from({ length: 50 }, () => fate) })
    onTestFinished(() => sandbox.devnet.trouble(chain, null))
    await payAndBury(sandbox, order)
    await sandbox.eventually('the network did not say', async () => {
      expect(await answersOf(sandbox, order.order_id)).toContain('unknown')
    })
    sandbox.log('nothing more is heard of it until its time is over')
    sandbox.devnet.trouble(chain, { errs: true })
    await sandbox.mine(chain, BLOCKS_TO_RUN_OUT[chain])
    sandbox.devnet.trouble(chain, null)
    await sandbox.remote.advanceClock(10 * 60)
    await expectPaidOut(sandbox, order)
    expect(await answersOf(sandbox, order.order_id)).toHaveLength(attempts)
  },
)

/** An order of the network that is well. */
async function goAllTheWay(sandbox: TestSandbox): Promise<void> {
  const order = await createWhenOffered(sandbox, elsewhere)
  await payAndBury(sandbox, order)
  await expectPaidOut(sandbox, order)
}

/** Off the list, named as unhealthy, and nothing is quoted from or to them; the process as a whole is ready. */
async function expectUnavailable(sandbox: TestSandbox): Promise<void> {
  await sandbox.eventually('they are known to be in trouble, and why', async () => {
    const { status, checks } = await readinessOf(sandbox)
    expect(status).toBe(200)
    expect(checks.chain_ETH).toEqual({ ok: true })
    for (const chain of troubled) {
      const told = { ok: false, detail: expect.stringMatching(/ago: .+/) }
      expect(checks[`chain_${chain}`], chain).toEqual(told)
    }
  })
  await sandbox.eventually('nothing is quoted from or to them', async () => {
    const currencies = await sandbox.client.getCurrencies()
    for (const chain of troubled) {
      expect(currencies[chain]?.enabled, chain).toBe(false)
      for (const pair of [payingInto(chain), paidOutOf(chain)]) {
        await expect(rateOf(sandbox, pair)).rejects.toMatchObject({ code: 'MAINTENANCE', status: 503 })
      }
    }
    expect(currencies.USDT?.enabled, 'USDT travels on another network too').toBe(true)
  })
}

async function expectOffered(sandbox: TestSandbox): Promise<void> {
  await sandbox.eventually('they are well again', async () => {
    const { checks } = await readinessOf(sandbox)
    for (const chain of troubled) expect(checks[`chain_${chain}`], chain).toEqual({ ok: true })
  })
  await sandbox.eventually('they are offered again', async () => {
    const currencies = await sandbox.client.getCurrencies()
    for (const chain of troubled) {
      expect(currencies[chain]?.enabled, chain).toBe(true)
      await rateOf(sandbox, payingInto(chain))
      await rateOf(sandbox, paidOutOf(chain))
    }
  })
}

/** On a machine that is busy a look may take longer than a network may be silent here; the next one has it on the list again. */
function createWhenOffered(sandbox: TestSandbox, ...asked: [Pair, Partial<CreateOrderRequest>?]) {
  return sandbox.eventually('an order is taken', () => createOrder(sandbox, ...asked))
}

function rateOf({ client }: TestSandbox, pair: Pair) {
  return client.getRate({ ...pair, amount: 100, direction: 'to' })
}

async function readinessOf({ baseUrl }: TestSandbox) {
  const answer = await fetch(`${baseUrl}/readyz`)
  const { checks } = (await answer.json()) as { checks: Record<string, object> }
  return { status: answer.status, checks }
}
