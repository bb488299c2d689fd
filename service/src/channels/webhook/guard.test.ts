import { spawn } from 'node:child_process'
import { createServer, type Server } from 'node:net'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { WebhookCall } from '../channel.ts'
import { dnsResolver, findAddresses, type ResolveHost } from './find_addresses.ts'
import { startDnsServer } from './testing/dns_server.ts'
import { hostileAnswers, hostileUrls } from './testing/url_corpus.ts'
import { webhookChannel } from './webhook_channel.ts'

/**
 * What: no URL, no name and no proxy leads a webhook to an address that is not public.
 * How: a canary listens on both loopback addresses, and nothing may ever connect to it. Names are answered by a list in
 * memory and by a real DNS server whose answers change from question to question.
 */
const canaries: Server[] = []
let visits = 0
let port = 0

beforeAll(async () => {
  port = await listen('127.0.0.1', 0)
  await listen('::1', port)
})

afterAll(() => {
  for (const canary of canaries) canary.close()
})

function listen(host: string, wanted: number): Promise<number> {
  const canary = createServer((socket) => {
    visits += 1
    socket.on('error', () => {})
    socket.destroy()
  })
  canaries.push(canary)
  return new Promise((resolve, reject) => {
    canary.once('error', reject)
    canary.listen(wanted, host, () => resolve((canary.address() as { port: number }).port))
  })
}

const call = (url: string): WebhookCall => ({
  url,
  id: 'evt_CB0000000000000000_1',
  body: '{}',
  secrets: [`whsec_${Buffer.alloc(24, 7).toString('base64')}`],
  atWallMs: 1_700_000_000_000,
})

const hasty = { connectMs: 300, allMs: 1_000 }
/** Longer than any machine takes for what does come. */
const patient = { connectMs: 60_000, allMs: 60_000 }
/** In global unicast, and given to nobody: what is sent there goes nowhere. */
const NOWHERE = '3fff:1000::1'

/** Without a network the connection fails at once, with one it gets no answer; it never reaches the canary. */
async function visitsOf(
  urls: readonly string[],
  resolve: ResolveHost,
  loopbackAllowed: boolean,
  limits = hasty,
) {
  const channel = webhookChannel({ loopbackAllowed, limits, resolve })
  const before = visits
  const answers = []
  for (const url of urls) answers.push((await channel.deliver(call(url))).kind)
  await channel.close()
  await new Promise((resolve) => {
    setImmediate(resolve)
  })
  return { answers, visits: visits - before }
}

/** The name of every host is one that leads to the canary: whatever gets past the rule for URLs would reach it. */
const toCanary: ResolveHost = async () => ['127.0.0.1', '::1']

test('the canary can be reached: plain http to this machine, in the sandbox', async () => {
  const urls = [`http://127.0.0.1:${port}/`, `http://localhost:${port}/`, `http://[::1]:${port}/`]
  expect(await visitsOf(urls, toCanary, true, patient)).toEqual({
    answers: ['failed', 'failed', 'failed'],
    visits: expect.toSatisfy((count: number) => count >= 3),
  })
})

test('no URL of the corpus reaches the canary', async () => {
  const urls = hostileUrls(port)
  expect(new Set(urls).size).toBeGreaterThanOrEqual(150)
  const { answers, visits } = await visitsOf(urls, toCanary, false)
  expect(urls.filter((_, index) => answers[index] !== 'forbidden')).toEqual([])
  expect(visits).toBe(0)
})

test('in the sandbox only plain http to this machine does', async () => {
  const urls = hostileUrls(port).filter(
    (url) => !/^http:\/\/(127\.0\.0\.1|localhost|\[::1\]):\d+\/$/i.test(url),
  )
  const { answers, visits } = await visitsOf(urls, toCanary, true)
  expect(urls.filter((_, index) => answers[index] !== 'forbidden')).toEqual([])
  expect(visits).toBe(0)
})

test('a name with any address that is not public is refused as a whole', async () => {
  for (const addresses of hostileAnswers) {
    const { answers, visits } = await visitsOf(
      [`https://hooks.example:${port}/`],
      async () => addresses,
      true,
    )
    expect({ addresses, answers, visits }).toEqual({ addresses, answers: ['forbidden'], visits: 0 })
  }
})

test('of a name with very many addresses few are tried, and one that is not public still refuses all', async () => {
  const many = Array.from({ length: 4_000 }, (_, index) => `93.184.${index >> 8}.${index & 255}`)
  const found = async (addresses: readonly string[]) =>
    findAddresses(new URL('https://hooks.example/'), async () => addresses)
  expect(await found(many)).toEqual({ kind: 'addresses', addresses: many.slice(0, 8) })
  expect(await found([...many, '127.0.0.1'])).toMatchObject({ kind: 'forbidden' })
})

test('what a DNS64 resolver makes of an IPv4 answer refuses nothing, and is not connected to', async () => {
  const found = async (...addresses: string[]) =>
    findAddresses(new URL('https://hooks.example/'), async () => addresses)
  const ipv4 = '93.184.216.34'
  expect(await found(ipv4, '64:ff9b::5db8:d822')).toEqual({ kind: 'addresses', addresses: [ipv4] })
  for (const others of [
    ['64:ff9b::a00:1'],
    ['64:ff9b::5db8:d822', '64:ff9b::a00:1'],
    ['64:ff9b:1::5db8:d822'],
  ]) {
    expect(await found(ipv4, ...others)).toMatchObject({ kind: 'forbidden' })
  }
  expect(await found('10.0.0.1', '64:ff9b::a00:1')).toMatchObject({ kind: 'forbidden' })
  expect(await found('64:ff9b::5db8:d822')).toMatchObject({ kind: 'forbidden' })
  // As a resolver writes them.
  const pairs = { '1.1.0.1': '64:ff9b::101:1', '1.0.0.1': '64:ff9b::100:1', '93.184.0.0': '64:ff9b::5db8:0' }
  const dns = await startDnsServer(() => Object.entries(pairs).flat())
  try {
    const answer = await findAddresses(new URL('https://hooks.example/'), dnsResolver([dns.address]))
    expect(answer).toEqual({ kind: 'addresses', addresses: Object.keys(pairs) })
  } finally {
    await dns.stop()
  }
})

test('a name without addresses, and one that nobody answers for, is a failure and no visit', async () => {
  const urls = [`https://hooks.example:${port}/`]
  expect(await visitsOf(urls, async () => [], false)).toEqual({ answers: ['failed'], visits: 0 })
  const refused: ResolveHost = () => Promise.reject(new Error('SERVFAIL'))
  expect(await visitsOf(urls, refused, false)).toEqual({ answers: ['failed'], visits: 0 })
  const silent: ResolveHost = () => new Promise(() => {})
  expect(await visitsOf(urls, silent, false)).toEqual({ answers: ['failed'], visits: 0 })
})

test('a name that leads elsewhere at every question never reaches the canary', async () => {
  let questions = 0
  const turns = [[NOWHERE], ['127.0.0.1'], [NOWHERE, '::1'], ['::1', '127.0.0.1'], [NOWHERE]]
  const dns = await startDnsServer((_name, family) => {
    // Both families are asked at once: a turn is two questions.
    const turn = Math.floor(questions / 2)
    questions += 1
    return (turns[turn % turns.length] ?? []).filter((address) => address.includes(':') === (family === 6))
  })
  try {
    const urls = Array.from({ length: 20 }, (_, index) => `https://rebind${index}.example:${port}/`)
    const { answers, visits } = await visitsOf(urls, dnsResolver([dns.address]), false, {
      ...hasty,
      // What DNS says is always waited for.
      allMs: patient.allMs,
    })
    expect(visits).toBe(0)
    expect(questions).toBe(40)
    expect(answers.filter((kind) => kind === 'forbidden')).toHaveLength(12)
    expect(answers.filter((kind) => kind === 'answered')).toEqual([])
  } finally {
    await dns.stop()
  }
})

test('the DNS server of these tests is heard: it is asked for both families', async () => {
  const dns = await startDnsServer((name) => (name === 'two.example' ? ['93.184.216.34', NOWHERE] : []))
  try {
    const resolve = dnsResolver([dns.address])
    expect(await resolve('two.example')).toEqual(['93.184.216.34', NOWHERE])
    expect(await resolve('none.example')).toEqual([])
  } finally {
    await dns.stop()
  }
})

/** A process of its own, because Node reads these variables when it starts. */
test('proxy variables are ignored', async () => {
  const proxy = `http://127.0.0.1:${port}`
  const receiver = createServer((socket) => {
    socket.on('error', () => {})
    socket.once('data', () => socket.end('HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n'))
  })
  const receives = await new Promise<number>((resolve) => {
    receiver.listen(0, '127.0.0.1', () => resolve((receiver.address() as { port: number }).port))
  })
  const before = visits
  const program = `
    const { webhookChannel } = await import(${JSON.stringify(new URL('./webhook_channel.ts', import.meta.url).href)})
    const channel = webhookChannel({ loopbackAllowed: true, limits: ${JSON.stringify(patient)} })
    const call = ${JSON.stringify(call(`http://127.0.0.1:${receives}/`))}
    console.log(JSON.stringify(await channel.deliver(call)))`
  const variables = ['http_proxy', 'https_proxy', 'all_proxy'].flatMap((name) => [name, name.toUpperCase()])
  const child = spawn(process.execPath, ['--input-type=module', '-e', program], {
    env: {
      ...process.env,
      NODE_USE_ENV_PROXY: '1',
      ...Object.fromEntries(variables.map((name) => [name, proxy])),
      no_proxy: '',
      NO_PROXY: '',
    },
  })
  let printed = ''
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (printed += chunk))
  await new Promise((resolve) => {
    child.once('close', resolve)
  })
  receiver.close()
  expect(printed).toContain('{"kind":"answered","status":204,"head":""}')
  expect(visits - before).toBe(0)
})
