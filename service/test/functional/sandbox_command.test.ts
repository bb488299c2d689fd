import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { removePostgres } from '@cambist/devnet'
import type { CreatedOrder, Order } from '@cambist/sdk'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { isKept } from '../../src/sandbox/own_folder.ts'
import { eventually } from '../harness/eventually.ts'
import { PATIENCE_MS, START_PATIENCE_MS } from '../harness/patience.ts'
import {
  killAll,
  launchSandbox,
  living,
  type Pids,
  pidsOf,
  type RunningSandbox,
  run,
  startSandboxProcess,
} from './processes/running_sandbox.ts'

/**
 * What: the sandbox as a person or a tool meets it: what it prints, sandbox.json, Ctrl-C, a second start, kill -9 of the
 * service and of everything, --reset, a machine without bitcoind, and the demos.
 * How: the real command in a process of its own, on one data folder from test to test: the file is one story.
 */
const dataDir = join(mkdtempSync(join(tmpdir(), 'cambist-sandbox-')), 'data')
let sandbox: RunningSandbox
let order: CreatedOrder

beforeAll(async () => {
  sandbox = await startSandboxProcess(dataDir)
})

afterAll(() => {
  killAll({ sandbox: sandbox.pid, ...pidsOf(dataDir) })
  removePostgres(join(dataDir, 'postgres'))
  rmSync(join(dataDir, '..'), { recursive: true, force: true })
})

const ALL = ['bnb', 'btc', 'eth', 'postgres']
const quick = { from: 'ETH', from_network: 'ETH', to: 'USDT', to_network: 'BEP20' } as const

function stillThere(pids: Pids): string[] {
  return living({ ...pids, sandbox: sandbox.pid })
}

/** The sandbox mines a block every second, or every three: these tests have no time for thirty of them. */
function mineQuickly(networks: readonly string[]): { stop(): Promise<void> } {
  const until = new AbortController()
  const work = Promise.all(
    networks.map(async (network) => {
      for (; !until.signal.aborted; await pause(300)) await sandbox.remote.mine(network, 1)
    }),
  )
  return {
    stop: async () => {
      until.abort()
      await work
    },
  }
}

async function untilDone(orderId: string, networks: readonly string[] = ['ETH', 'BNB']): Promise<Order> {
  const miner = mineQuickly(networks)
  try {
    return await sandbox.client.waitForStatus(orderId, ['DONE'], { pollMs: 100, timeoutMs: 60_000 })
  } finally {
    await miner.stop()
  }
}

async function rateNow(): Promise<number> {
  return (await sandbox.client.getRate({ ...quick, amount: 1 })).to_amount
}

test('it prints at most a screen, with everything a stranger needs and one line that says it is ready', () => {
  const { file } = sandbox
  const lines = sandbox.output().trimEnd().split('\n')
  expect(lines.length).toBeLessThanOrEqual(24)
  expect(lines.filter((line) => line.startsWith('Cambist sandbox ready'))).toEqual([
    `Cambist sandbox ready at ${file.base_url}`,
  ])
  for (const told of [
    file.base_url,
    `${file.base_url}/docs`,
    file.api_key,
    file.api_secret,
    'npm run demo',
    'Ctrl-C',
  ]) {
    expect(sandbox.output()).toContain(told)
  }
  expect(Math.max(...lines.map((line) => line.length))).toBeLessThanOrEqual(120)
})

test('everything in its folder is known as its own, so that --reset leaves nothing behind', () => {
  expect(readdirSync(dataDir).filter((name) => !isKept(name))).toEqual([])
})

test('a folder of somebody else is refused, and nothing is left in it', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'cambist-of-somebody-'))
  mkdirSync(join(folder, 'thesis'))
  const env = { CAMBIST_DATA_DIR: folder, PORT: '0' }
  for (const args of [['sandbox'], ['sandbox', '--reset']]) {
    const refused = await run('service/src/cli.ts', args, env)
    expect([refused.code, refused.output]).toEqual([1, expect.stringContaining('thesis is in it')])
  }
  expect(readdirSync(folder)).toEqual(['thesis'])
  rmSync(folder, { recursive: true })
})

test("another sandbox's database is refused, and --reset deletes no database of somebody else", async () => {
  const { database_url: databaseUrl } = JSON.parse(readFileSync(join(dataDir, 'sandbox.json'), 'utf8'))
  const elsewhere = join(dataDir, '..', 'elsewhere')
  const script = 'service/src/cli.ts'
  const env = { CAMBIST_DATA_DIR: elsewhere, DATABASE_URL: databaseUrl }
  const foreign = await run(script, ['sandbox'], env)
  const notOurs = 'DATABASE_URL names a database that is not of the sandbox in'
  expect([foreign.code, foreign.output]).toEqual([1, expect.stringContaining(notOurs)])
  expect(living(pidsOf(elsewhere))).toEqual([])
  const reset = await run(script, ['sandbox', '--reset'], env)
  const undone = 'drop and create the database that DATABASE_URL names'
  expect([reset.code, reset.output]).toEqual([1, expect.stringContaining(undone)])
  expect((await sandbox.client.getCurrencies()).BTC).toMatchObject({ enabled: true })
})

test('sandbox.json has what tools rely on, and nobody else may read it', async () => {
  const { file } = sandbox
  expect(Object.keys(file)).toEqual([
    'base_url',
    'api_key',
    'api_secret',
    'webhook_secret',
    'networks',
    'database_url',
    'mailbox_url',
    'smtp_url',
  ])
  expect(file.mailbox_url).toBe(`${file.base_url}/sandbox/mailbox`)
  expect(file.smtp_url).toMatch(/^smtp:\/\/127\.0\.0\.1:\d+$/)
  expect(file.base_url).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/)
  expect(file.api_key).toMatch(/^ck_\w+$/)
  expect(file.api_secret).toMatch(/^[0-9a-f]{64}$/)
  expect(file.webhook_secret).toMatch(/^whsec_[A-Za-z0-9+/]+=*$/)
  const address = /^0x[0-9a-fA-F]{40}$/
  const tokens = (decimals: number) => ({
    USDT: { address: expect.stringMatching(address), decimals },
    USDC: { address: expect.stringMatching(address), decimals },
  })
  expect(file.networks).toEqual({
    BTC: { rpcUrl: expect.stringMatching(/^http:/), backing: 'bitcoind', binary: expect.any(String) },
    ETH: { rpcUrl: expect.stringMatching(/^http:/), chainId: 31337, tokens: tokens(6) },
    BNB: { rpcUrl: expect.stringMatching(/^http:/), chainId: expect.any(Number), tokens: tokens(18) },
    XRP: {
      rpcUrl: expect.stringMatching(/^http:/),
      wsUrl: expect.stringMatching(/^ws:/),
      networkId: expect.any(Number),
    },
    XLM: { horizonUrl: expect.stringMatching(/^http:/), passphrase: expect.any(String) },
    TRX: expect.objectContaining({
      fullNodeUrl: expect.stringMatching(/^http:/),
      genesisBlockId: expect.stringMatching(/^[0-9a-f]{64}$/),
    }),
    EOS: expect.objectContaining({
      rpcUrl: expect.stringMatching(/^http:/),
      chainId: expect.stringMatching(/^[0-9a-f]{64}$/),
    }),
    SOL: expect.objectContaining({
      rpcUrl: expect.stringMatching(/^http:/),
      genesisHash: expect.any(String),
    }),
  })
  expect(statSync(join(dataDir, 'sandbox.json')).mode & 0o777).toBe(0o600)
  expect((await fetch(`${file.base_url}/docs`)).status).toBe(200)
  expect(living(pidsOf(dataDir))).toEqual(ALL)
})

test('the demos end with exit 0, show each state, and print both transactions', async () => {
  const play = (name: string) =>
    run('service/src/demo.ts', name === '' ? [] : [name], { CAMBIST_DATA_DIR: dataDir })
  // The late one moves the clock for everybody, so it goes last.
  const miner = mineQuickly(['BTC', 'ETH'])
  const [exchange, underpaid, late] = await Promise.all([play(''), play('underpaid')])
    .then(async (both) => [...both, await play('late')] as const)
    .finally(miner.stop)
  const hash = '[0-9a-f]{64}'
  const expectations: readonly (readonly [typeof exchange, readonly RegExp[]])[] = [
    [exchange, [/NEW/, /PENDING/, /EXCHANGE/, /WITHDRAW/, /DONE/, new RegExp(`payout +0x${hash}`)]],
    [underpaid, [/EMERGENCY/, /UNDERPAID/, /recalculate/, /DONE/, new RegExp(`payout +0x${hash}`)]],
    [late, [/EXPIRED/, /EMERGENCY/, /LATE_DEPOSIT/, /REFUNDED/, new RegExp(`refund +${hash}`)]],
  ]
  for (const [{ code, output }, patterns] of expectations) {
    expect(code, output).toBe(0)
    for (const pattern of [...patterns, new RegExp(`deposit +${hash}`)]) expect(output).toMatch(pattern)
  }
  const wrong = await play('nonsense')
  expect(wrong.code).toBe(1)
  expect(wrong.output).toMatch(/there is no demo "nonsense"/)
})

test('a second sandbox on the same folder, and one on the same port, are refused in words and harm nothing', async () => {
  const twin = launchSandbox(dataDir)
  expect(await twin.ended).toBe(1)
  expect(twin.output()).toMatch(/already|runs|running/)
  expect(twin.output()).not.toMatch(/\n\s+at /)
  // The file of the one that runs is still there.
  expect(existsSync(join(dataDir, 'sandbox.json'))).toBe(true)

  const other = join(dataDir, '..', 'other')
  const neighbour = launchSandbox(other, { PORT: new URL(sandbox.file.base_url).port })
  expect(await neighbour.ended).toBe(1)
  expect(neighbour.output()).toMatch(/port/i)
  expect(neighbour.output()).toContain(new URL(sandbox.file.base_url).port)
  expect(neighbour.output()).not.toMatch(/\n\s+at /)
  expect(living(pidsOf(other))).toEqual([])
  removePostgres(join(other, 'postgres'))

  const open = launchSandbox(other, { HOST: '0.0.0.0' })
  expect(await open.ended).toBe(1)
  expect(open.output()).toContain('HOST')
  expect((await fetch(`${sandbox.file.base_url}/healthz`)).status).toBe(200)
})

test('Ctrl-C leaves no process and no sandbox.json', async () => {
  await sandbox.remote.setPrice('ETH', '4321')
  await sandbox.remote.advanceClock(100)
  order = await sandbox.client.createOrder({
    ...{
      ...quick,
      amount: '0.5',
      rate_type: 'float',
      destination: await sandbox.remote.freshAddress('BEP20'),
    },
  })
  const pids = pidsOf(dataDir)
  expect(await sandbox.end('SIGINT')).toBe(0)
  expect(stillThere(pids)).toEqual([])
  expect(existsSync(join(dataDir, 'sandbox.json'))).toBe(false)
  expect(sandbox.output()).toContain('Everything has stopped')
})

test('a second start goes on: same key, order, clock and prices', async () => {
  const { file: before } = sandbox
  sandbox = await startSandboxProcess(dataDir)
  expect(sandbox.file).toMatchObject({ api_key: before.api_key, api_secret: before.api_secret })
  expect(sandbox.file.networks.ETH).toMatchObject({
    tokens: (before.networks.ETH as { tokens?: object }).tokens,
  })
  const seen = await sandbox.client.getOrder(order.order_id)
  expect(seen).toMatchObject({ status: 'NEW', deposit_address: order.deposit_address, rate: order.rate })
  expect((await sandbox.client.getOrderByToken(order.short_id, order.token)).order_id).toBe(order.order_id)
  expect(await rateNow()).toBeGreaterThan(4_200)
  expect(await rateNow()).toBeLessThan(4_321)
  // The demo moved the clock by 16 minutes, the test before by 100 seconds.
  const sinceMs = Date.now()
  const answer = await fetch(`${sandbox.file.base_url}/sandbox/clock`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: '{"advance_seconds":0}',
  })
  const { now } = ((await answer.json()) as { data: { now: string } }).data
  const movedByMs = (16 * 60 + 100) * 1_000
  expect(Date.parse(now) - movedByMs).toBeGreaterThanOrEqual(sinceMs)
  expect(Date.parse(now) - movedByMs).toBeLessThanOrEqual(Date.now())
})

test('after kill -9 of the service alone, the next start adopts the nodes and PostgreSQL', async () => {
  const pids = pidsOf(dataDir)
  expect(await sandbox.end('SIGKILL')).toBe('SIGKILL')
  expect(stillThere(pids)).toEqual(ALL)
  sandbox = await startSandboxProcess(dataDir)
  expect(pidsOf(dataDir)).toEqual(pids)
  expect(living(pids)).toEqual(ALL)
  expect((await sandbox.client.getOrder(order.order_id)).status).toBe('NEW')
})

test('after kill -9 of everything, the next start goes on from what was on disk, and the order ends DONE', async () => {
  await sandbox.remote.pay(order.order_id)
  await sandbox.client.waitForStatus(order.order_id, ['PENDING', 'EXCHANGE', 'WITHDRAW'], {
    pollMs: 50,
    timeoutMs: 2 * PATIENCE_MS,
  })
  const killed = pidsOf(dataDir)
  const confirmed = async () => (await sandbox.client.getOrder(order.order_id)).deposit_confirmations
  // In a block, and that saved to disk, which happens every second.
  await eventually('the deposit is three blocks deep', async () =>
    expect(await confirmed()).toBeGreaterThanOrEqual(3),
  )
  killAll({ sandbox: sandbox.pid, ...killed })
  await eventually('all are dead', () => expect(stillThere(killed)).toEqual([]))
  sandbox = await startSandboxProcess(dataDir)
  for (const [name, pid] of Object.entries(pidsOf(dataDir)))
    expect([name, pid]).not.toEqual([name, killed[name]])
  const done = await untilDone(order.order_id)
  expect(done.withdraw_tx_hash).toMatch(/^0x[0-9a-f]{64}$/)
  expect(await sandbox.remote.balance('BEP20', order.destination, 'USDT')).toBe(done.receive_final_amount)
})

test('--reset starts anew; without any bitcoind it says so in one line, simulates it and does everything', async () => {
  const { file: before } = sandbox
  expect(await sandbox.end('SIGTERM')).toBe(0)
  sandbox = await startSandboxProcess(dataDir, { BITCOIND_BIN: '/nonexistent', CAMBIST_LOG_LEVEL: 'info' }, [
    '--reset',
  ])
  expect(sandbox.file.api_key).not.toBe(before.api_key)
  await expect(sandbox.client.getOrder(order.order_id)).rejects.toMatchObject({ code: 'ORDER_NOT_FOUND' })
  expect(living(pidsOf(dataDir))).toEqual(['bnb', 'eth', 'postgres'])
  const lines = sandbox.output().trimEnd().split('\n')
  expect(lines.length).toBeLessThanOrEqual(24)
  expect(lines.filter((line) => /bitcoin/i.test(line))).toHaveLength(1)
  expect(sandbox.output()).toMatch(/Bitcoin +simulated on regtest \(no bitcoind was found/)
  expect(Object.keys(sandbox.file.networks)).toEqual(['BTC', 'ETH', 'BNB', 'XRP', 'XLM', 'TRX', 'EOS', 'SOL'])
  expect(sandbox.file.networks.BTC).toMatchObject({ backing: 'simulated' })

  const currencies = await sandbox.client.getCurrencies()
  expect(Object.entries(currencies).filter(([, { enabled }]) => !enabled)).toEqual([])
  for (const [from, to, network, amount] of [
    ['BTC', 'ETH', 'ETH', '0.01'],
    ['ETH', 'BTC', 'BTC', '0.25'],
  ] as const) {
    const pair = { from, from_network: from, to, to_network: to, amount, rate_type: 'fixed' } as const
    const destination = await sandbox.remote.freshAddress(network)
    const fresh = await sandbox.client.createOrder({ ...pair, destination })
    await sandbox.remote.pay(fresh.order_id)
    const done = await untilDone(fresh.order_id, ['BTC', 'ETH'])
    expect(await sandbox.remote.balance(network, destination, to)).toBe(done.receive_final_amount)
  }
})

test('Ctrl-C while it is still starting leaves no process either', async () => {
  const pids = pidsOf(dataDir)
  expect(await sandbox.end('SIGINT')).toBe(0)
  expect(stillThere(pids)).toEqual([])
  const other = join(dataDir, '..', 'early')
  const early = launchSandbox(other)
  await eventually('a node runs already', () => expect(living(pidsOf(other)).length).toBeGreaterThan(1))
  early.child.kill('SIGINT')
  await early.ended
  expect(living(pidsOf(other)), early.output()).toEqual([])
  expect(early.output()).not.toMatch(/Cambist sandbox ready/)
  removePostgres(join(other, 'postgres'))
})

test('Ctrl-C leaves no process where nobody reads any more what it prints', async () => {
  const unread = join(dataDir, '..', 'unread')
  onTestFinished(() => killAll(pidsOf(unread)))
  const deaf = launchSandbox(unread, { CAMBIST_LOG_LEVEL: 'info' })
  deaf.child.stdout?.destroy()
  const log = join(unread, 'service.log')
  await eventually(
    'it has printed that it is ready',
    () => expect(readFileSync(log, 'utf8')).toContain('what signing needs'),
    {
      timeoutMs: START_PATIENCE_MS,
      context: deaf.output,
    },
  )
  deaf.child.kill('SIGINT')
  expect([await deaf.ended, deaf.output()]).toEqual([0, ''])
  expect(living(pidsOf(unread))).toEqual([])
  removePostgres(join(unread, 'postgres'))
})

test('what it leaves on disk tells no secret to others, and the log has no error', () => {
  const secret = ['demo_account.json', 'keystore.json'].filter((name) => existsSync(join(dataDir, name)))
  expect(secret).toHaveLength(2)
  for (const name of secret) expect([name, statSync(join(dataDir, name)).mode & 0o077]).toEqual([name, 0])
  const log = readFileSync(join(dataDir, 'service.log'), 'utf8').split('\n').filter(Boolean)
  expect(log.length).toBeGreaterThan(3)
  expect(log.filter((line) => JSON.parse(line).level >= 50)).toEqual([])
  expect(readdirSync(dataDir).filter((name) => name.endsWith('.new'))).toEqual([])
})
