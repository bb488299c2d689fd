import type { CreatedOrder, Order } from '@cambist/sdk'
import { expect } from 'vitest'
import type { ToldSecret } from '../../src/accounts/keys.ts'
import type { CurrencyCode } from '../../src/domain/catalog/currencies.ts'
import type { NetworkId } from '../../src/domain/catalog/networks.ts'
import { balanceOf, chainUnits } from '../harness/amounts.ts'
import { type Chance, chanceFrom } from '../harness/chance.ts'
import { createOrder, type Pair, quickPair } from '../harness/orders.ts'
import type { TestSandbox } from '../harness/test_sandbox.ts'
import { readTags } from '../harness/told_tags.ts'
import { type Answer, keysPlaceOf, makeKey, openWire, type Wire } from '../harness/wire.ts'
import { type Action, findWrongEnd } from './emergency_race/ends.ts'
import { checkAllEnded, inSandbox } from './in_sandbox.ts'
import { prove } from './prove.ts'

/**
 * What: of many choices for an order in EMERGENCY at the same moment exactly one is taken, whoever makes them and
 * wherever, and money leaves once for each order, as that choice said.
 * How: really underpaid orders; twenty signed requests for each at once, over two keys of the account, to two processes
 * of the service, some of them repetitions of one another. What was paid or returned is read from the blocks, and has to be
 * what was offered before anybody chose; some are paid in XRP, to the tag that was asked for.
 */
prove('of twenty actions at once each order takes one and pays once', async ({ seed, sized, figure }) => {
  const count = sized({ short: 40, long: 1_000 })
  const chance = chanceFrom(seed)
  await inSandbox({ policy: { poolSize: 200 }, networks: ['BTC', 'ETH', 'BNB', 'XRP'] }, async (sandbox) => {
    const other = await sandbox.startAnother(['api', 'engine', 'signer'])
    try {
      const stuck = await bringToEmergency(sandbox, count)
      const desks = await openDesks(sandbox, other.origin)
      const told: Told[] = []
      await inTurns(stuck, ORDERS_AT_ONCE, async (order) => {
        const { emergency } = await sandbox.client.getOrder(order.order.order_id)
        told.push({ ...(await race(order, desks, chance)), offers: emergency?.options ?? null })
      })
      await bringToEnd(sandbox)
      await expectOneOutflowEach(sandbox, told)
      await tell(sandbox, told, figure)
    } finally {
      await other.stop()
    }
  })
})

const ACTIONS = 20
const ORDERS_AT_ONCE = 8
const CREATED_AT_ONCE = 8

type Stuck = { readonly order: CreatedOrder; readonly refundAddress: string }

/** Orders that were paid half of what they asked, many in a block. */
async function bringToEmergency(sandbox: TestSandbox, count: number): Promise<Stuck[]> {
  const stuck: Stuck[] = []
  await inTurns([...Array(count).keys()], CREATED_AT_ONCE, async (number) => {
    const refundAddress = await sandbox.devnet.freshAddress('ETH')
    const wish = { amount: String(2 * PAID_USDT), refund_address: refundAddress }
    const order =
      number % IN_XRP_EVERY === 0
        ? await createOrder(sandbox, usdtToXrp, { ...wish, destination_tag: String(number) })
        : await createOrder(sandbox, quickPair, wish)
    stuck.push({ order, refundAddress })
  })
  for (const [at, { order }] of stuck.entries()) {
    await sandbox.devnet.send('ETH', 'USDT', order.deposit_address, chainUnits(PAID_USDT, 'USDT', 'ERC20'))
    if (at % PAYMENTS_A_BLOCK === 0) await sandbox.mine('ETH', 1)
  }
  await sandbox.bury('ETH')
  await waitForCount(sandbox, 'EMERGENCY', count)
  return stuck
}

/** Half of what is asked. */
const PAID_USDT = 50
const PAYMENTS_A_BLOCK = 200
/** There, one payout of an account after the other is in a ledger. */
const IN_XRP_EVERY = 8
const usdtToXrp: Pair = { from: 'USDT', from_network: 'ERC20', to: 'XRP', to_network: 'XRP' }

async function waitForCount(sandbox: TestSandbox, status: string, wanted: number): Promise<void> {
  const patience = { timeoutMs: 60_000 + wanted * 200 }
  const look = async () => {
    const rows = await sandbox.rows('SELECT order_id FROM orders WHERE status = $1', [status])
    if (rows.length !== wanted) throw new Error(`${rows.length} of ${wanted}`)
  }
  await sandbox.eventually(`${wanted} orders are ${status}`, look, patience)
}

/** Somewhere a choice can be made, and by whom. */
type Desk = { readonly wire: Wire; readonly key: ToldSecret }

async function openDesks(sandbox: TestSandbox, otherUrl: string): Promise<Desk[]> {
  const { account } = sandbox
  const [owner] = await keysPlaceOf(sandbox).db.query<{ account_id: string }>(
    'SELECT account_id FROM api_keys WHERE key_id = $1',
    [account.api_key],
  )
  const keys = [
    { keyId: account.api_key, secret: account.api_secret },
    await makeKey(sandbox, { accountId: owner?.account_id ?? '' }),
  ]
  const wires = [await openWire(sandbox), await openWire({ account, baseUrl: otherUrl })]
  return wires.flatMap((wire) => keys.map((key) => ({ wire, key })))
}

const actions = ['continue', 'recalculate', 'refund'] as const satisfies readonly Action[]

type Raced = Stuck & { readonly taken: readonly Action[]; readonly repeated: number }

/** With what was offered before anybody chose. */
type Told = Raced & { readonly offers: NonNullable<Order['emergency']>['options'] | null }

/** All at once: most under a key of their own, some under one that they share, and one twice in the same bytes. */
async function race(stuck: Stuck, desks: readonly Desk[], chance: Chance): Promise<Raced> {
  const target = `/v1/order/${stuck.order.order_id}/emergency`
  const shared = { key: `shared-${stuck.order.short_id}`, action: chance.pick(actions) }
  const signedOnce = {
    desk: chance.pick(desks),
    action: chance.pick(actions),
    timestamp: String(Math.floor(Date.now() / 1_000)),
  }
  const choices = chance.shuffled([...Array(ACTIONS).keys()]).map((number) => {
    const { wire, key: as } = number < SIGNED_ONCE ? signedOnce.desk : chance.pick(desks)
    if (number < SIGNED_ONCE)
      return choose(wire, target, signedOnce.action, 'signed once', { as, timestamp: signedOnce.timestamp })
    if (number < SIGNED_ONCE + SHARING)
      return choose(wire, target, shared.action, shared.key, {
        as,
        headers: { 'Idempotency-Key': shared.key },
      })
    const key = `own-${stuck.order.short_id}-${number}`
    return choose(wire, target, chance.pick(actions), key, { as, headers: { 'Idempotency-Key': key } })
  })
  return judge(stuck, await Promise.all(choices))
}

const SIGNED_ONCE = 2
const SHARING = 4

type Choice = { readonly act: string; readonly action: Action; readonly answer: Answer }

async function choose(
  wire: Wire,
  target: string,
  action: Action,
  act: string,
  given: Parameters<Wire['signed']>[3],
): Promise<Choice> {
  return { act, action, answer: await wire.signed('POST', target, JSON.stringify({ action }), given) }
}

/** One act is taken, and everybody who repeats it is told the same; all others are told that there is no emergency. */
function judge(stuck: Stuck, choices: readonly Choice[]): Raced {
  const id = stuck.order.order_id
  const yes = choices.filter(({ answer }) => answer.status === 200)
  const no = choices.filter(({ answer }) => answer.status !== 200)
  expect(new Set(yes.map(({ act }) => act)).size, `${id}: acts that were taken`).toBe(1)
  expect(new Set(yes.map(({ answer }) => answer.text)).size, `${id}: what they were told`).toBe(1)
  const first = yes.filter(({ answer }) => answer.headers.get('idempotent-replayed') !== 'true')
  expect(first, `${id}: told for the first time`).toHaveLength(1)
  for (const { answer } of no) {
    expect([answer.status, answer.json.error_code], id).toEqual([409, 'NOT_EMERGENCY'])
  }
  return { ...stuck, taken: first.map(({ action }) => action), repeated: yes.length - 1 }
}

async function bringToEnd(sandbox: TestSandbox): Promise<void> {
  const unsent = async () => {
    const rows = await sandbox.rows(
      `SELECT payout_id FROM outflows WHERE state IN ('planned', 'signed') UNION ALL
       SELECT order_id FROM orders WHERE status = 'EXCHANGE' AND payout_id IS NULL`,
    )
    if (rows.length > 0) throw new Error(`${rows.length} are not sent yet`)
  }
  await sandbox.eventually('all outflows are sent', unsent, { timeoutMs: 300_000 })
  // They are more than a block takes, so that the last of them are not as deep as the first.
  const unmined = async () => {
    for (const network of ['ETH', 'BNB', 'XRP'] as const) await sandbox.bury(network)
    await sandbox.settle()
    const rows = await sandbox.rows(`SELECT payout_id FROM outflows WHERE state = 'broadcast'`)
    if (rows.length > 0) throw new Error(`${rows.length} are not final yet`)
  }
  await sandbox.eventually('all outflows are final', unmined, { timeoutMs: 300_000 })
  await checkAllEnded(sandbox)
}

async function expectOneOutflowEach(sandbox: TestSandbox, told: readonly Told[]): Promise<void> {
  const outflows = await sandbox.rows<{ order_id: string; kind: string; state: string }>(
    'SELECT order_id, kind, state FROM outflows',
  )
  expect(outflows).toHaveLength(told.length)
  expect(new Set(outflows.map(({ order_id }) => order_id)).size).toBe(told.length)
  for (const one of told) {
    const { order, refundAddress, offers } = one
    const [action] = one.taken
    if (action === undefined || offers === null) throw new Error(`${order.order_id} was offered nothing`)
    const end = await sandbox.client.getOrder(order.order_id)
    const { currency, network } = receivedAs(order)
    const arrived = await balanceOf(sandbox, order.destination, currency, network)
    const returned = await balanceOf(sandbox, refundAddress, 'USDT', 'ERC20')
    const paidIn = { currency: 'USDT', network: 'ERC20', amount: PAID_USDT } as const
    const found = findWrongEnd({ order, paidIn, offers, action, end, arrived, returned })
    expect(found, order.order_id).toEqual([])
  }
  await expectTagsTold(sandbox, told)
}

function receivedAs({ receive_currency, receive_network }: CreatedOrder) {
  return { currency: receive_currency as CurrencyCode, network: receive_network as NetworkId }
}

/** Of an order that was refunded nothing arrived, for anybody. */
async function expectTagsTold({ devnet }: TestSandbox, told: readonly Told[]): Promise<void> {
  const inXrp = told.filter(({ order }) => order.receive_network === 'XRP')
  const tags = await readTags(
    devnet,
    'XRP',
    inXrp.map(({ order }) => order.destination),
  )
  for (const { order, taken } of inXrp)
    expect(tags.get(order.destination), order.order_id).toEqual(
      taken[0] === 'refund' ? [] : [order.destination_tag],
    )
}

async function tell(
  { rows }: TestSandbox,
  told: readonly Told[],
  figure: (what: string, value: number | string) => void,
): Promise<void> {
  figure('orders', told.length)
  figure('actions', told.length * ACTIONS)
  figure(
    'accepted',
    told.reduce((sum, { taken }) => sum + taken.length, 0),
  )
  const counts = actions.map(
    (action) => `${told.filter(({ taken }) => taken[0] === action).length} ${action}`,
  )
  figure('of these', counts.join(', '))
  figure(
    'repetitions of these, told the same',
    told.reduce((sum, { repeated }) => sum + repeated, 0),
  )
  const [made] = await rows<{ count: number }>('SELECT count(*) AS count FROM outflows')
  figure('outflows', made?.count ?? 0)
}

async function inTurns<Item>(
  items: readonly Item[],
  atOnce: number,
  work: (item: Item) => Promise<void>,
): Promise<void> {
  const left = [...items]
  const keepWorking = async () => {
    for (let item = left.shift(); item !== undefined; item = left.shift()) await work(item)
  }
  await Promise.all(Array.from({ length: atOnce }, keepWorking))
}
