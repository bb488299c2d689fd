import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { ToldSecret } from '../../src/accounts/keys.ts'
import { type Ground, startGround } from '../functional/processes/ground.ts'
import type { RunningProcess } from '../functional/processes/running_process.ts'
import { eventually } from '../harness/eventually.ts'
import { type ProofSize, prove } from './prove.ts'
import { formsOf, openSearch } from './secrets/secret_search.ts'
import { keepTexts, type Texts } from './secrets/written_texts.ts'

/**
 * What: no secret that the service holds, or is told, ever stands in a log, an answer, a metric, what a command prints or
 * what a process writes when it breaks.
 * How: real processes at the log level trace, on a database and a node whose URLs carry passwords. Orders go well, are
 * refused, and meet a broken database and a node that is silent; commands work and fail. Everything that was written is
 * then searched for every secret in every form; and planted leaks are found by the same search.
 */
const nodePassword = randomBytes(16).toString('hex')
const providerKey = randomBytes(16).toString('hex')
let folder: string
let ground: Ground
let texts: Texts
let key: ToldSecret
const running: RunningProcess[] = []

function plant(environment: Readonly<Record<string, string>>): Record<string, string> {
  const node = environment.CAMBIST_ETH_URL
  const url = new URL(node ?? 'http://nowhere')
  url.username = 'cambist'
  url.password = nodePassword
  url.searchParams.set('apikey', providerKey)
  return {
    ...environment,
    CAMBIST_LOG_LEVEL: 'trace',
    ...(node !== undefined && { CAMBIST_ETH_URL: url.href, CAMBIST_NODE_TIMEOUT_SECONDS: '1' }),
  }
}

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'cambist-canary-'))
  ground = await startGround(plant)
  for (const secret of [nodePassword, providerKey, new URL(ground.databaseUrl).password]) {
    ground.secrets.add(decodeURIComponent(secret))
  }
  texts = keepTexts(ground.secrets)
  const roles = ['api', 'watcher', 'engine', 'signer']
  running.push(...(await Promise.all(roles.map((role) => ground.start(role)))))
  await ground.fund(api())
  const told = await texts.command(['keys', 'create', 'A shop', '--json'], env('api'), SHOWN_SECRET)
  key = JSON.parse(told.output) as ToldSecret
})

afterAll(async () => {
  await ground?.stop()
  rmSync(folder, { recursive: true, force: true })
})

const PLANTED = new URL('./secrets/planted_trouble.ts', import.meta.url).href
const SHOWN_SECRET = /"secret": "([^"]+)"/
const SHOWN_WORDS = /^ {2}((?:[a-z]+ ){23}[a-z]+)$/m

function api(): RunningProcess {
  const [first] = running
  if (first === undefined) throw new Error('the processes have not started')
  return first
}

function env(role: string, changes: Readonly<Record<string, string>> = {}): Record<string, string> {
  return { ...ground.environmentOf(role), ...changes }
}

function file(name: string, text: string): string {
  const path = join(folder, name)
  writeFileSync(path, `${text}\n`)
  return path
}

type Created = { readonly order_id: string; readonly token: string; readonly deposit_address: string }

async function createOrder(): Promise<Created> {
  const destination = await ground.devnet.freshAddress('ETH')
  const pair = { from: 'ETH', from_network: 'ETH', to: 'USDT', to_network: 'ERC20' }
  const body = { ...pair, amount: 0.1, rate_type: 'fixed', destination }
  const answer = await texts.ask(api().origin, { target: '/v1/order/create', body, as: key })
  return answer.json.data as Created
}

/** Orders that are paid and end; one that is paid too little, and refunded. */
async function exchange(count: number): Promise<Created> {
  const orders = await Promise.all(Array.from({ length: count }, createOrder))
  const short = await createOrder()
  for (const { deposit_address } of orders)
    await ground.devnet.send('ETH', 'ETH', deposit_address, 10n ** 17n)
  await ground.devnet.send('ETH', 'ETH', short.deposit_address, 10n ** 16n)
  await untilStatus(short, 'EMERGENCY')
  const target = `/v1/order/${short.order_id}/emergency`
  const body = { action: 'refund', refund_address: await ground.devnet.freshAddress('ETH') }
  await texts.ask(api().origin, { target, body, as: key })
  for (const order of orders) await untilStatus(order, 'DONE')
  await untilStatus(short, 'REFUNDED')
  return short
}

/** Mines a block at every look. */
async function untilStatus({ order_id, token }: Created, status: string): Promise<void> {
  await eventually(
    `${order_id} is ${status}`,
    async () => {
      await ground.devnet.mine('ETH', 1)
      const headers = [['X-ORDER-TOKEN', token]] as const
      const { json } = await texts.ask(api().origin, { target: `/v1/order/${order_id}`, headers })
      expect(json.data.status).toBe(status)
    },
    { timeoutMs: 60_000 },
  )
}

/** Everything about an order that can be asked, with its secrets in every place where somebody may put them. */
async function askAround({ order_id, token }: Created): Promise<number[]> {
  const order = `/v1/order/${order_id}`
  const own = { keyId: key.keyId, secret: 'not the secret at all' }
  const answers = await Promise.all([
    texts.ask(api().origin, { target: order, as: key }),
    texts.ask(api().origin, { target: order, as: own }),
    texts.ask(api().origin, { target: `${order}?token=${token}` }),
    texts.ask(api().origin, { target: `/v1/order/${token}`, as: key }),
    texts.ask(api().origin, { target: order, headers: [['Authorization', `Bearer ${key.secret}`]] }),
    texts.ask(api().origin, { target: order, headers: [['X-ORDER-TOKEN', `${token}0`]] }),
    texts.ask(api().origin, {
      target: order,
      headers: [
        ['X-API-KEY', key.secret],
        ['X-API-SIGN', 'x'],
      ],
    }),
    texts.ask(api().origin, { target: `${order}/qr` }),
    texts.ask(api().origin, { target: `${order}/emergency`, body: { action: 'continue' }, as: key }),
    texts.ask(api().origin, { target: '/v1/order/create', body: { destination: key.secret }, as: key }),
    texts.ask(api().origin, { target: '/v1/order/create', body: `{"${'x'.repeat(9)}"`, as: key }),
    texts.ask(api().origin, { target: '/v1/nothing', body: 'x', as: key }),
    ...running.flatMap(({ origin }) =>
      ['/metrics', '/readyz', '/healthz', '/openapi.json'].map((target) => texts.ask(origin, { target })),
    ),
  ])
  return answers.map(({ status }) => status)
}

async function withBrokenDatabase(look: () => Promise<void>): Promise<void> {
  const intruder = new pg.Client({ connectionString: ground.databaseUrl })
  await intruder.connect()
  try {
    await intruder.query('ALTER TABLE orders RENAME TO orders_away')
    await look()
    await intruder.query('ALTER TABLE orders_away RENAME TO orders')
    await intruder.query('CREATE DATABASE broken')
  } finally {
    await intruder.end()
  }
  const broken = new pg.Client({ connectionString: databaseUrl({ pathname: '/broken' }) })
  await broken.connect()
  await broken.query('CREATE TABLE orders (nothing int)')
  await broken.end()
}

async function withSilentNode(look: () => Promise<void>): Promise<void> {
  const node = ground.devnet.processes.find(({ network }) => network === 'ETH')
  if (node === undefined) throw new Error('the devnet has Ethereum')
  process.kill(node.pid, 'SIGSTOP')
  try {
    await look()
  } finally {
    process.kill(node.pid, 'SIGCONT')
  }
}

function databaseUrl(changes: Partial<Pick<URL, 'pathname' | 'password' | 'port' | 'protocol'>>): string {
  return Object.assign(new URL(ground.databaseUrl), changes).href
}

type Run = readonly [args: readonly string[], env: Readonly<Record<string, string>>, shows?: RegExp]

/** Commands that do what they are for; a process for each costs a second, so that the short form has fewer. */
function goodCommands({ order_id }: Created, size: ProofSize): readonly Run[] {
  const passphrase = env('signer').CAMBIST_KEYSTORE_PASSPHRASE_FILE ?? ''
  const create = ['keystore', 'create', join(folder, 'new.json'), '--test', '--passphrase-file', passphrase]
  const always: readonly Run[] = [
    [['keys', 'rotate', key.keyId, '--json'], env('api'), SHOWN_SECRET],
    [['order', 'show', order_id, '--json'], env('api')],
    [['ledger', 'audit'], env('api')],
    [create, env('signer'), SHOWN_WORDS],
  ]
  if (size === 'short') return always
  return [
    ...always,
    [['keys', 'list'], env('api')],
    [['order', 'list', '--json'], env('api')],
    [['order', 'show', order_id], env('api')],
    [['migrate'], env('api')],
  ]
}

/** Commands that fail, each with a secret at hand. */
function badCommands(size: ProofSize): readonly Run[] {
  const socket = { CAMBIST_SIGNER_SOCKET: join(folder, 'other.sock') }
  const planted = { NODE_OPTIONS: `--import ${PLANTED}` }
  const wrongPassphrase = { CAMBIST_KEYSTORE_PASSPHRASE_FILE: file('wrong', canary('wrong')) }
  const always: readonly Run[] = [
    [['order', 'list'], env('api', { DATABASE_URL: databaseUrl({ password: canary('password') }) })],
    [['migrate'], env('api', { DATABASE_URL: databaseUrl({ pathname: '/broken' }) })],
    [['serve', '--roles', 'api'], env('api', { CAMBIST_ORDER_SEAL_KEY: canary('seal') })],
    [['serve', '--roles', 'signer'], env('signer', { ...socket, ...wrongPassphrase })],
    [['serve', '--roles', 'signer'], env('signer', { ...socket, ...planted })],
  ]
  if (size === 'short') return always
  const words = [...ground.secrets].find((secret) => secret.split(' ').length === 24) ?? ''
  const restore = [
    'keystore',
    'create',
    join(folder, 'bad.json'),
    '--mnemonic-file',
    file('words', words.slice(words.indexOf(' '))),
  ]
  const keystore = file('keystore', `{"x":"${canary('keystore')}"}`)
  return [
    ...always,
    [['order', 'list'], env('api', { DATABASE_URL: databaseUrl({ port: '1' }) })],
    [['order', 'list'], env('api', { DATABASE_URL: `mysql://me:${canary('password')}@127.0.0.1/x` })],
    [['keys', 'list'], env('api', { CAMBIST_ACCOUNT_KEY_FILE: file('account.key', canary('key')) })],
    [
      ['serve', '--roles', 'watcher'],
      env('watcher', { CAMBIST_ETH_URL: `wss://me:${canary('password')}@127.0.0.1` }),
    ],
    [['serve', '--roles', 'signer'], env('signer', { ...socket, CAMBIST_KEYSTORE_FILE: keystore })],
    [['serve', '--roles', 'signer'], env('signer', { ...socket, PORT: new URL(api().origin).port })],
    [[...restore, '--passphrase-file', file('passphrase', canary('passphrase'))], env('signer')],
  ]
}

function canary(name: string): string {
  const secret = `${name}-${randomBytes(12).toString('hex')}`
  ground.secrets.add(secret)
  return secret
}

async function runAll(runs: readonly Run[], wanted: number): Promise<void> {
  const ended = await Promise.all(
    runs.map(([args, environment, shows]) => texts.command(args, environment, shows)),
  )
  const codes = ended.map(({ code, output }, at) => [
    runs[at]?.[0].join(' '),
    code,
    output.length > 20 ? '' : output,
  ])
  expect(codes).toEqual(runs.map(([args]) => [args.join(' '), wanted, '']))
}

prove('no secret stands in any log, answer or output', async ({ size, sized, figure }) => {
  const order = await exchange(sized({ short: 2, long: 40 }))
  const usual = await askAround(order)
  expect(usual.filter((status) => status >= 500)).toEqual([])
  await withBrokenDatabase(async () => {
    const broken = await askAround(order)
    expect(broken.filter((status) => status === 500).length).toBeGreaterThan(3)
  })
  await withSilentNode(() =>
    eventually('the watcher complains', () => {
      expect(running[1]?.log().filter(({ loop }) => loop === 'watch ETH').length).toBeGreaterThan(0)
    }),
  )
  await runAll(goodCommands(order, size), 0)
  await runAll(badCommands(size), 1)
  for (const one of running) one.send('SIGTERM')
  for (const one of running) expect(await one.ended, one.output().slice(-500)).toBe(0)

  const written = [
    ...texts.all,
    ...running.map((one) => ({ where: `the log of ${one.roles}`, text: one.output() })),
  ]
  const search = openSearch(ground.secrets)
  const leaks = written.flatMap(({ where, text }) =>
    search(text).map(({ secret, form }) => `${where}: ${secret.slice(0, 6)}…, ${form}`),
  )
  figure('secrets', ground.secrets.size)
  figure('texts searched', written.length)
  figure(
    'characters',
    written.reduce((sum, { text }) => sum + text.length, 0),
  )
  figure(
    'log lines',
    running.reduce((sum, one) => sum + one.log().length, 0),
  )
  figure('leaks', leaks.length)
  expect([...new Set(leaks)]).toEqual([])
})

describe('a leak is found', () => {
  const secrets = {
    'a password': 'a "secret" of words & ünïcode',
    'a key in hex': randomBytes(32).toString('hex'),
    'a token': randomBytes(32).toString('base64url'),
  }

  test.each(Object.entries(secrets))('%s, in every form and cut in half', (_what, secret) => {
    const search = openSearch([secret])
    for (const { form, text } of [...formsOf(secret), ...formsOf(Buffer.from(secret))]) {
      for (const around of [text, `x${text}y`, `{"msg":"${text}"}`]) {
        expect(search(around).length, `${form}: ${around}`).toBeGreaterThan(0)
      }
      if (secret.length > 32) expect(search(text.slice(0, -4)).length, form).toBeGreaterThan(0)
    }
    const other = openSearch([secret.split('').toReversed().join('')])
    expect(
      other(
        formsOf(secret)
          .map(({ text }) => text)
          .join(' '),
      ),
    ).toEqual([])
  })

  test.each(['hex', 'base64url'])('of a real command, written as %s', { timeout: 240_000 }, async (form) => {
    const secret = 'what an operator typed & nobody may see'
    const careless = { NODE_OPTIONS: `--import ${PLANTED}`, TROUBLE_SECRET: secret, TROUBLE_FORM: form }
    const { output } = await texts.command(['--help'], careless)
    expect(openSearch([secret])(output).map((leak) => leak.secret)).toContain(secret)
  })
})
