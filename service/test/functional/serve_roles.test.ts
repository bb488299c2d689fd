import { readFileSync } from 'node:fs'
import { Agent, get } from 'node:http'
import type { Client, CreatedOrder } from '@cambist/sdk'
import { parseAbiItem } from 'viem'
import { afterAll, beforeAll, expect, onTestFailed, onTestFinished, test } from 'vitest'
import { createKeystore, newMnemonic } from '../../src/signer/keystore.ts'
import { eventually } from '../harness/eventually.ts'
import { openHttpLine } from '../harness/http_line.ts'
import { type Ground, startGround } from './processes/ground.ts'
import type { RunningProcess } from './processes/running_process.ts'

/**
 * What: the roles of the service in processes of their own, which are killed, frozen and doubled, pay every order once.
 * How: `cambist serve` on one PostgreSQL and a real node, the signer behind its socket, prices from venues on this
 * machine; a block is mined whenever the test looks, and what was paid is counted on the chain.
 */
let ground: Ground
let client: Client
/** What a signer is started with instead of the keystore of the database; null: with that. */
let otherKeystore: string | null = null
const running: Record<'api' | 'watcher' | 'engine' | 'signer' | 'notifier', RunningProcess> = {} as never

beforeAll(async () => {
  ground = await startGround((environment) =>
    otherKeystore === null || !('CAMBIST_KEYSTORE_FILE' in environment)
      ? environment
      : { ...environment, CAMBIST_KEYSTORE_FILE: otherKeystore },
  )
  const roles = ['api', 'watcher', 'engine', 'signer', 'notifier'] as const
  // All at once on an empty database: one of them migrates, the others wait.
  await Promise.all(
    roles.map(async (role) => {
      running[role] = await ground.start(role)
    }),
  )
  await ground.fund(running.api)
  client = await ground.clientOf(running.api)
})

afterAll(async () => {
  await ground?.stop()
})

function tellLogsOnFailure() {
  onTestFailed(() => {
    for (const each of ground.processes) {
      console.error(`— ${each.roles} (${each.pid})\n${each.output().slice(-2_000)}`)
    }
  })
}

async function createOrder(): Promise<CreatedOrder> {
  return client.createOrder({
    from: 'ETH',
    from_network: 'ETH',
    to: 'USDT',
    to_network: 'ERC20',
    amount: '0.1',
    rate_type: 'fixed',
    destination: await ground.devnet.freshAddress('ETH'),
  })
}

async function pay(orders: readonly CreatedOrder[]): Promise<void> {
  for (const { deposit_address } of orders)
    await ground.devnet.send('ETH', 'ETH', deposit_address, 10n ** 17n)
}

/** Mines a block at every look. */
function mineUntil(what: string, look: () => Promise<void>): Promise<void> {
  return eventually(
    what,
    async () => {
      await ground.devnet.mine('ETH', 1)
      await look()
    },
    { timeoutMs: 60_000 },
  )
}

function mineUntilDone(orders: readonly CreatedOrder[]): Promise<void> {
  return mineUntil(`${orders.length} orders are DONE`, async () => {
    const statuses = await Promise.all(
      orders.map(async (each) => (await client.getOrder(each.order_id)).status),
    )
    expect(statuses).toEqual(orders.map(() => 'DONE'))
  })
}

/** On the chain: one transfer to each destination, of exactly what was promised; in the tables: one outflow each. */
async function expectPaidOnce(orders: readonly CreatedOrder[]): Promise<void> {
  const { client: node } = ground.devnet.evm('ETH')
  const token = ground.devnet.networks.ETH?.tokens.USDT.address
  if (token === undefined) throw new Error('the devnet has USDT')
  const event = parseAbiItem('event Transfer(address indexed from, address indexed to, uint256 value)')
  for (const order of orders) {
    const to = order.destination as `0x${string}`
    const transfers = await node.getLogs({ address: token, event, args: { to }, fromBlock: 0n })
    const units = BigInt(Math.round(order.receive_amount * 1e6))
    expect(
      transfers.map(({ args }) => args.value),
      order.order_id,
    ).toEqual([units])
  }
  const outflows = await ground.database.query<{ order_id: string; state: string }>(
    'SELECT order_id, state FROM outflows WHERE order_id = ANY($1) ORDER BY order_id',
    [orders.map(({ order_id }) => order_id)],
  )
  expect(outflows).toEqual(
    orders
      .map(({ order_id }) => ({ order_id, state: 'confirmed' }))
      .sort((a, b) => (a.order_id < b.order_id ? -1 : 1)),
  )
}

async function countOutflows(state: string): Promise<number> {
  const [row] = await ground.database.query<{ count: number }>(
    'SELECT count(*)::int AS count FROM outflows WHERE state = $1',
    [state],
  )
  return row?.count ?? 0
}

test('an exchange goes through api, watcher, engine and signer to DONE', async () => {
  tellLogsOnFailure()
  const order = await createOrder()
  await pay([order])
  await mineUntilDone([order])
  await expectPaidOnce([order])
})

test('only the role api has the interface; every process answers its operator', async () => {
  for (const process of Object.values(running)) {
    const get = (path: string) => fetch(`${process.origin}${path}`)
    expect((await get('/healthz')).status, process.roles).toBe(200)
    expect((await get('/readyz')).status, process.roles).toBe(200)
    expect(await (await get('/metrics')).text(), process.roles).toContain('cambist_orders')
    const isApi = process.roles === 'api'
    for (const path of ['/v1/currencies', '/openapi.json', '/docs', '/logos/BTC.svg']) {
      expect((await get(path)).status === 200, `${process.roles} ${path}`).toBe(isApi)
    }
  }
})

test('what the process with the interface has no node or contract of is not listed', async () => {
  tellLogsOnFailure()
  const listed = Object.entries(await client.getCurrencies()).map(([code, { networks }]) => [code, networks])
  expect(Object.fromEntries(listed)).toEqual({ ETH: ['ETH'], USDT: ['ERC20'], USDC: ['ERC20'] })
  const rate = await fetch(`${running.api.origin}/v1/rate?from=ETH&to=USDT&to_network=TRC20&amount=1`)
  expect([rate.status, await rate.json()]).toMatchObject([400, { error_code: 'NETWORK_MISMATCH' }])
})

test('a kill -9 of engine and signer in the middle of payouts loses none and pays none twice', async () => {
  tellLogsOnFailure()
  const orders = await Promise.all(Array.from({ length: 6 }, createOrder))
  await pay(orders)
  const [before = 0] = [await countOutflows('confirmed')]
  await mineUntil('payouts are under way', async () => {
    expect((await countOutflows('signed')) + (await countOutflows('broadcast'))).toBeGreaterThan(0)
  })
  await Promise.all([running.engine.kill(), running.signer.kill()])
  expect(await countOutflows('confirmed')).toBeLessThan(before + orders.length)

  // The engine alone has to wait for its signer, and does.
  running.engine = await ground.start('engine')
  running.signer = await ground.start('signer')
  await mineUntilDone(orders)
  await expectPaidOnce(orders)
})

function sentBy(engine: RunningProcess, orders: readonly CreatedOrder[]): number {
  const payouts = new Set<unknown>(orders.map(({ order_id }) => `${order_id}:1`))
  const lines = engine.log().filter(({ msg }) => msg === 'an outflow was sent')
  return lines.filter(({ payout }) => payouts.has(payout)).length
}

test('two engines pay twenty orders once each', async () => {
  tellLogsOnFailure()
  const second = await ground.start('engine')
  // One of them may take all that is due at a moment: then this shows nothing, and is done again.
  for (let round = 1; ; round += 1) {
    const orders = await Promise.all(Array.from({ length: 20 }, createOrder))
    await pay(orders)
    await mineUntilDone(orders)
    await expectPaidOnce(orders)
    const sent = [sentBy(running.engine, orders), sentBy(second, orders)] as const
    expect(sent[0] + sent[1]).toBe(orders.length)
    if (sent.every((count) => count > 0)) break
    expect(round, 'one engine has done everything').toBeLessThan(5)
  }
  await second.kill()
})

type Lease = { readonly holder: string; readonly fence: number }

async function readLease(): Promise<Lease> {
  const [lease] = await ground.database.query<Lease>(
    "SELECT holder, fence FROM leases WHERE name = 'watch:ETH'",
  )
  if (lease === undefined) throw new Error('nobody watches')
  return lease
}

const holds = (lease: Lease, { pid }: RunningProcess) => lease.holder.includes(`-${pid}-`)

test('another watcher takes over from one that was killed', async () => {
  tellLogsOnFailure()
  const second = await ground.start('watcher')
  const before = await readLease()
  expect(holds(before, running.watcher)).toBe(true)
  await running.watcher.kill()
  await eventually('the other one watches', async () => expect(holds(await readLease(), second)).toBe(true))
  expect((await readLease()).fence).toBe(before.fence + 1)
  running.watcher = second

  const order = await createOrder()
  await pay([order])
  await mineUntilDone([order])
})

test('a watcher that slept through its lease wakes up with no say', async () => {
  tellLogsOnFailure()
  const other = await ground.start('watcher')
  const before = await readLease()
  running.watcher.send('SIGSTOP')
  await eventually('the other one watches', async () => expect(holds(await readLease(), other)).toBe(true))
  running.watcher.send('SIGCONT')

  const orders = await Promise.all(Array.from({ length: 3 }, createOrder))
  await pay(orders)
  await mineUntilDone(orders)
  await expectPaidOnce(orders)
  const after = await readLease()
  expect(holds(after, other)).toBe(true)
  expect(after.fence).toBe(before.fence + 1)
  await running.watcher.kill()
  running.watcher = other
})

async function troubleOf({ order_id }: CreatedOrder): Promise<string> {
  const [outflow] = await ground.database.query<{ trouble: string | null }>(
    'SELECT trouble FROM outflows WHERE order_id = $1',
    [order_id],
  )
  return outflow?.trouble ?? ''
}

/** Of the same passphrase. Answers its file. */
async function makeOtherKeystore(): Promise<string> {
  const { CAMBIST_KEYSTORE_FILE: own, CAMBIST_KEYSTORE_PASSPHRASE_FILE: passphraseFile = '' } =
    ground.environmentOf('signer')
  const path = `${own}.other`
  const passphrase = readFileSync(passphraseFile, 'utf8').trimEnd()
  const mnemonic = newMnemonic()
  ground.secrets.add(mnemonic)
  const kind = { environment: 'sandbox', nowMs: Date.now(), scryptN: 2 ** 10 } as const
  expect(await createKeystore({ path, passphrase, mnemonic, ...kind })).toMatchObject({ ok: true })
  return path
}

async function readinessOf({ origin }: RunningProcess) {
  const answer = await fetch(`${origin}/readyz`)
  const { checks } = (await answer.json()) as { checks: { keystore: { ok: boolean; detail?: string } } }
  return { status: answer.status, keystore: checks.keystore }
}

test('a signer that comes back with another keystore is asked for nothing, until it has the right one', async () => {
  tellLogsOnFailure()
  const order = await createOrder()
  await running.signer.kill()
  otherKeystore = await makeOtherKeystore()
  running.signer = await ground.start('signer')
  await pay([order])
  await mineUntil('the payout waits', async () =>
    expect(await troubleOf(order)).toContain('OtherKeystore: the signer derives '),
  )
  await eventually('every process says so', async () => {
    for (const process of Object.values(running)) {
      expect(await readinessOf(process), process.roles).toMatchObject({
        status: 503,
        keystore: { ok: false, detail: expect.stringContaining('CAMBIST_KEYSTORE_FILE') },
      })
    }
  })
  await expect(createOrder()).rejects.toMatchObject({ code: 'MAINTENANCE' })

  await running.signer.kill()
  otherKeystore = null
  running.signer = await ground.start('signer')
  // Also when the engine is not the one that found it.
  await running.engine.kill()
  running.engine = await ground.start('engine')
  const ready = async () => expect((await readinessOf(running.api)).status).toBe(200)
  await eventually('it goes on by itself', ready)
  await mineUntilDone([order])
  await expectPaidOnce([order])
})

test('the signer does not pay what was changed in the database', async () => {
  tellLogsOnFailure()
  const address = await ground.devnet.freshAddress('ETH')
  const changes = [
    ['to_asset', 'USDC:ERC20'],
    ['from_asset', 'USDC:ERC20'],
    ['destination', address],
  ] as const
  await running.signer.kill()
  const orders = await Promise.all(changes.map(createOrder))
  const intended = await createOrder()
  const all = [...orders, intended]
  await pay(all)
  await mineUntil('every payout waits for the signer', async () => {
    for (const order of all) expect(await troubleOf(order)).toContain('does not say whether it has signed')
  })

  const redirect = (order: CreatedOrder | undefined, column: string, value: string) =>
    ground.tamper(`UPDATE orders SET ${column} = $2 WHERE order_id = $1`, [order?.order_id, value])
  for (const [at, [column, value]] of changes.entries()) await redirect(orders[at], column, value)
  // Refused for its order's sake, its intent is written down and not signed: there it can be changed.
  await redirect(intended, 'destination', address)
  running.signer = await ground.start('signer')
  await mineUntil('the signer refuses each', async () => {
    for (const order of all) expect(await troubleOf(order)).toContain('seal_broken')
  })
  const usdc = ground.devnet.networks.ETH?.tokens.USDC.address
  await ground.tamper(
    `UPDATE attempts SET intent = jsonb_set(intent, '{token}', to_jsonb($2::text)) WHERE payout_id LIKE $1 || ':%'`,
    [intended.order_id, usdc],
  )
  await redirect(intended, 'destination', intended.destination)
  await mineUntil('and what was not intended', async () =>
    expect(await troubleOf(intended)).toContain('not_the_asset'),
  )
  const signed = await ground.database.query(
    "SELECT 1 AS one FROM signer.signed_transactions WHERE split_part(payout_id, ':', 1) = ANY($1)",
    [all.map(({ order_id }) => order_id)],
  )
  expect(signed).toEqual([])
})

/** Asks again and again over one connection until an answer says that it will be closed; how many it got. */
async function askUntilClosed(origin: string, path: string): Promise<number> {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  for (let answered = 1; ; answered += 1) {
    const { status, isLast, body } = await ask(agent, `${origin}${path}`)
    expect(status, body).toBe(200)
    expect(JSON.parse(body).success).toBe(true)
    if (isLast) return answered
  }
}

function ask(agent: Agent, url: string): Promise<{ status: number; isLast: boolean; body: string }> {
  return new Promise((resolve, reject) => {
    const asked = get(url, { agent }, (response) => {
      let body = ''
      response.on('data', (chunk) => {
        body += chunk
      })
      response.on('error', reject)
      const isLast = response.headers.connection === 'close'
      response.on('end', () => resolve({ status: response.statusCode ?? 0, isLast, body }))
    })
    asked.on('error', reject)
  })
}

test('asked to stop under load, every process answers what it was asked and ends with 0', async () => {
  tellLogsOnFailure()
  const rate = '/v1/rate?from=ETH&to=USDT&to_network=ERC20&amount=1&rate_type='
  const clients = Array.from({ length: 24 }, (_, at) =>
    askUntilClosed(running.api.origin, rate + (at % 2 === 0 ? 'fixed' : 'float')),
  )
  await eventually('the load is there', () => {
    const served = running.api.log().filter(({ route }) => route === '/v1/rate')
    expect(served.length).toBeGreaterThan(2_000)
  })
  const active = Object.values(running)
  for (const process of active) process.send('SIGTERM')
  const answered = await Promise.all(clients)
  expect(Math.min(...answered)).toBeGreaterThan(1)
  for (const process of active) {
    expect(await process.ended, process.roles).toBe(0)
    expect(process.log().at(-1)?.msg, process.roles).toBe('the service has stopped')
  }
  const ERROR = 50
  expect(active.flatMap((process) => process.log().filter(({ level }) => level >= ERROR))).toEqual([])
})

test('stopping does not wait long for a node that does not answer, and a second signal not at all', async () => {
  tellLogsOnFailure()
  const watches = (one: RunningProcess) =>
    eventually('it watches', async () => expect(holds(await readLease(), one)).toBe(true))
  const line = await openHttpLine(ground.environmentOf('watcher').CAMBIST_ETH_URL ?? '')
  onTestFinished(() => line.stop())
  const env = { CAMBIST_ETH_URL: line.url, CAMBIST_NODE_TIMEOUT_SECONDS: '600' }
  const patient = await ground.start('watcher', { env, stopSeconds: 8 })
  await watches(patient)
  const urgent = await ground.start('watcher', { env })
  line.meddle(() => 'drop_request')
  // Between two looks it waits for nothing, and stops at once.
  await eventually('a look waits for the node', () => expect(line.count()).toBeGreaterThan(0))
  patient.send('SIGTERM')
  expect(await patient.ended).toBe(1)
  expect(patient.output()).toContain('Not everything stopped within 8 s.')

  await watches(urgent)
  await eventually('the second signal ends it', () => {
    urgent.send('SIGTERM')
    expect(urgent.isRunning()).toBe(false)
  })
  expect(await urgent.ended).toBe(130)
})

test('no process has written a secret to its log', () => {
  expect(ground.secrets.size).toBeGreaterThan(30)
  for (const process of ground.processes) {
    const output = process.output()
    expect(output.length, process.roles).toBeGreaterThan(100)
    for (const secret of ground.secrets) {
      expect(output.includes(secret), `${process.roles} tells ${secret.slice(0, 6)}…`).toBe(false)
    }
  }
})
