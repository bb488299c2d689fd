import type { IncomingMessage } from 'node:http'
import { expect, test } from 'vitest'
import { addressSet, plainAddress } from './address_set.ts'
import { clientAddress, limitedAs } from './client_address.ts'
import { guesses } from './guesses.ts'
import { rateLimit } from './rate_limit.ts'
import { STREAMS_PER_TOKEN, seats } from './seats.ts'
import { turns } from './turns.ts'

function request(peer: string, forwarded?: string): IncomingMessage {
  return {
    socket: { remoteAddress: peer },
    headers: forwarded === undefined ? {} : { 'x-forwarded-for': forwarded },
  } as unknown as IncomingMessage
}

test('X-Forwarded-For is believed from our own proxies only', () => {
  const addressOf = clientAddress(['10.0.0.0/8', '::1'])
  expect(addressOf(request('203.0.113.7', '198.51.100.1'))).toBe('203.0.113.7')
  expect(addressOf(request('10.1.2.3', '198.51.100.1'))).toBe('198.51.100.1')
  expect(addressOf(request('::ffff:10.1.2.3', '1.1.1.1, 198.51.100.1, 10.9.9.9'))).toBe('198.51.100.1')
  expect(addressOf(request('10.1.2.3', 'nonsense, 10.5.5.5'))).toBe('0.0.0.0')
  expect(addressOf(request('10.1.2.3', '10.5.5.5'))).toBe('10.5.5.5')
  expect(addressOf(request('10.1.2.3'))).toBe('10.1.2.3')
  expect(clientAddress([])(request('10.1.2.3', '198.51.100.1'))).toBe('10.1.2.3')
})

test.each([
  ['198.51.100.1:51234', '198.51.100.1'],
  ['[2001:db8::7]:443', '2001:db8::7'],
  ['[2001:db8::7]', '2001:db8::7'],
  ['2001:db8::7', '2001:db8::7'],
  ['::ffff:198.51.100.1', '198.51.100.1'],
  ['[::ffff:198.51.100.1]:80', '198.51.100.1'],
  ['[198.51.100.1:80', '0.0.0.0'],
  ['unknown', '0.0.0.0'],
  ['_hidden', '0.0.0.0'],
  ['198.51.100.1, unknown', '0.0.0.0'],
  ['', '0.0.0.0'],
  [' ', '0.0.0.0'],
  ['198.51.100.1,', '0.0.0.0'],
  ['198.51.100.1, , 10.5.5.5', '0.0.0.0'],
])('a proxy that writes %s speaks for %s', (forwarded, client) => {
  expect(clientAddress(['10.0.0.0/8'])(request('10.1.2.3', forwarded))).toBe(client)
})

test.each([
  ['x-real-ip', '198.51.100.1'],
  ['x-forwarded-proto', 'https'],
  ['forwarded', 'for=198.51.100.1'],
  ['via', '1.1 proxy'],
])('whom a proxy asks for that writes %s alone is nobody, and not the proxy', (name, value) => {
  const addressOf = clientAddress(['10.0.0.0/8'])
  const asked = (peer: string) =>
    ({ ...request(peer), headers: { [name]: value } }) as unknown as IncomingMessage
  expect(addressOf(asked('10.1.2.3'))).toBe('0.0.0.0')
  expect(addressOf(asked('203.0.113.7'))).toBe('203.0.113.7')
})

test('an address set holds addresses and ranges of both families', () => {
  const set = addressSet(['192.0.2.0/24', '2001:db8::/32', '198.51.100.7'])
  expect(['192.0.2.255', '2001:db8:1::1', '198.51.100.7'].map((address) => set.has(address))).toEqual([
    true,
    true,
    true,
  ])
  expect(
    ['192.0.3.1', '2001:db9::1', '198.51.100.8', 'nonsense', ''].map((address) => set.has(address)),
  ).toEqual(new Array(5).fill(false))
  expect(plainAddress('::ffff:192.0.2.1')).toBe('192.0.2.1')
})

test.each(['::/0', '::/64', '::fffe:0:0/95'])('%s is a range of IPv6, and lets no IPv4 in', (range) => {
  const set = addressSet([range, '192.0.2.0/24'])
  expect(
    ['198.51.100.7', '::ffff:198.51.100.7', '192.0.2.7'].map((peer) => set.has(plainAddress(peer))),
  ).toEqual([false, false, true])
  const [first = ''] = range.split('/')
  expect(set.has(first)).toBe(true)
})

test.each(['nonsense', '192.0.2.0/33', '192.0.2.0/x', '2001:db8::/129', ''])('%j is no entry', (entry) => {
  expect(() => addressSet([entry])).toThrow()
})

test('IPv6 is limited by /64, IPv4 by address', () => {
  expect(limitedAs('2001:db8:1:2:3:4:5:6')).toBe('2001:db8:1:2/64')
  expect(limitedAs('2001:db8::6')).toBe('2001:db8:0:0/64')
  expect(limitedAs('::1')).toBe('0:0:0:0/64')
  expect(limitedAs('192.0.2.1')).toBe('192.0.2.1')
})

test('units last a minute, bursts a second, and refusals cost nothing', () => {
  let nowMs = 1_000_000
  const limit = rateLimit(
    { unitsPerMinute: 100, burstPerSecond: 3, streamsPerCaller: 10 },
    { wallMs: () => nowMs },
  )
  expect(limit.spend('a', 50).refusal).toBeNull()
  expect(limit.spend('a', 49).refusal).toBeNull()
  expect(limit.spend('a', 50).refusal).toMatchObject({ code: 'RATE_LIMITED', retry_after: 60 })
  expect(limit.spend('a', 1).headers).toEqual([
    'RateLimit-Policy',
    '"minute";q=100;w=60, "burst";q=3;w=1',
    'RateLimit',
    '"minute";r=0;t=60',
  ])
  expect(limit.spend('a', 1).refusal).toMatchObject({ retry_after: 1 })
  expect(limit.spend('b', 1).refusal).toBeNull()
  nowMs += 59_999
  expect(limit.spend('a', 1).refusal).toMatchObject({ retry_after: 1 })
  nowMs += 1
  expect(limit.spend('a', 100).refusal).toBeNull()
  nowMs -= 10_000
  expect(limit.spend('a', 1).refusal).toBeNull()
})

test('whoever is in the middle of a minute is not forgotten with those whose minute is over', () => {
  let nowMs = 1_000_000
  const limit = rateLimit(
    { unitsPerMinute: 100, burstPerSecond: 50, streamsPerCaller: 10 },
    { wallMs: () => nowMs },
  )
  nowMs += 30_000
  const byKey = (keyId: string) => limit.spendByKey({ keyId, accountId: 'acc_one' }, 100).refusal
  expect(limit.spend('a', 100).refusal).toBeNull()
  for (const keyId of ['k', 'l', 'm', 'n']) expect(byKey(keyId)).toBeNull()
  nowMs += 30_000
  expect(limit.spend('b', 1).refusal).toBeNull()
  expect(limit.spend('a', 1).refusal).toMatchObject({ retry_after: 30 })
  expect(byKey('o')).toMatchObject({ retry_after: 30 })
})

test('all keys of an account together have four times what one has, and a refusal by either is counted for neither', () => {
  let nowMs = 1_000_000
  const limit = rateLimit(
    { unitsPerMinute: 100, burstPerSecond: 50, streamsPerCaller: 10 },
    { wallMs: () => nowMs },
  )
  const by = (keyId: string, units: number, accountId = 'acc_one') =>
    limit.spendByKey({ keyId, accountId }, units)
  expect(by('a', 101).refusal?.message, 'of the key').toMatch(/^too many requests; /)
  for (const key of ['a', 'b', 'c']) expect(by(key, 100).refusal).toBeNull()
  expect(by('d', 90).headers).toEqual([
    'RateLimit-Policy',
    '"minute";q=100;w=60, "burst";q=50;w=1',
    'RateLimit',
    '"minute";r=10;t=60',
  ])
  const refused = by('e', 50)
  expect(refused.refusal).toEqual({
    code: 'RATE_LIMITED',
    message: 'too many requests with the keys of this account; try again in 60 s',
    retry_after: 60,
  })
  expect(refused.headers).toEqual([
    'RateLimit-Policy',
    '"account-minute";q=400;w=60, "account-burst";q=200;w=1',
    'RateLimit',
    '"account-minute";r=10;t=60',
  ])
  expect(by('e', 10).headers.at(-1)).toBe('"minute";r=90;t=60')
  expect(by('e', 1).refusal).toMatchObject({ retry_after: 60 })
  expect(by('f', 100, 'acc_other').refusal).toBeNull()
  // Who is signed in, or asks from an address, is somebody else.
  expect(limit.spend('session:one', 100).refusal).toBeNull()
  expect(limit.spendBySessions('acc_one', 100)).toBeNull()
  nowMs += 60_000
  expect(by('e', 100).refusal).toBeNull()
})

test('all sessions of an account together have four times what one has, whatever its keys do', () => {
  let nowMs = 1_000_000
  const limit = rateLimit(
    { unitsPerMinute: 100, burstPerSecond: 50, streamsPerCaller: 10 },
    { wallMs: () => nowMs },
  )
  for (const units of [100, 250, 40]) expect(limit.spendBySessions('acc_one', units)).toBeNull()
  expect(limit.spendBySessions('acc_one', 11)).toEqual({
    headers: [
      'RateLimit-Policy',
      '"account-minute";q=400;w=60, "account-burst";q=200;w=1',
      'RateLimit',
      '"account-minute";r=10;t=60',
    ],
    refusal: {
      code: 'RATE_LIMITED',
      message: 'too many requests with the sessions of this account; try again in 60 s',
      retry_after: 60,
    },
  })
  expect(limit.spendBySessions('acc_one', 10), 'what was refused took nothing').toBeNull()
  expect(limit.spendBySessions('acc_other', 400)).toBeNull()
  expect(limit.spendByKey({ keyId: 'a', accountId: 'acc_one' }, 100).refusal).toBeNull()
  nowMs += 60_000
  expect(limit.spendBySessions('acc_one', 400)).toBeNull()
})

test('streams are opened by all keys of an account together, whatever else these do, and every seat can be taken in a minute', () => {
  let nowMs = 1_000_000
  const open = (streamsPerCaller: number) =>
    rateLimit({ unitsPerMinute: 5, burstPerSecond: 50, streamsPerCaller }, { wallMs: () => nowMs })
  const opened = (limit: ReturnType<typeof open>) =>
    Array.from({ length: 40 }, () => limit.spendByStreams('one')).filter(({ refusal }) => refusal === null)
      .length
  const limit = open(30)
  expect(opened(limit)).toBe(30)
  expect(opened(open(10)), 'as much as its keys have').toBe(20)
  expect(limit.spendByStreams('one')).toEqual({
    headers: [
      'RateLimit-Policy',
      '"stream-minute";q=30;w=60, "stream-burst";q=200;w=1',
      'RateLimit',
      '"stream-minute";r=0;t=60',
    ],
    refusal: {
      code: 'RATE_LIMITED',
      message: 'too many requests for streams with the keys of this account; try again in 60 s',
      retry_after: 60,
    },
  })
  expect(limit.spendByStreams('other').refusal).toBeNull()
  expect(limit.spendByKey({ keyId: 'a', accountId: 'one' }, 5).refusal).toBeNull()
  nowMs += 60_000
  expect(opened(limit)).toBe(30)
})

test('many keys of an account share a burst', () => {
  const limit = rateLimit(
    { unitsPerMinute: 1_000, burstPerSecond: 2, streamsPerCaller: 10 },
    { wallMs: () => 1_000_000 },
  )
  const spent = Array.from({ length: 100 }, (_, n) =>
    limit.spendByKey({ keyId: `k${n}`, accountId: 'one' }, 1),
  )
  expect(spent.filter(({ refusal }) => refusal === null)).toHaveLength(8)
  expect(spent.at(-1)).toMatchObject({
    refusal: { retry_after: 1 },
    headers: { 3: '"account-burst";r=0;t=1' },
  })
})

test('of one account two acts are done at once, the others in the order in which they came, and not too many wait', async () => {
  const { take } = turns()
  const ends: (() => void)[] = []
  const begun: number[] = []
  const act = (number: number) =>
    take('one', async () => {
      begun.push(number)
      await new Promise<void>((resolve) => ends.push(resolve))
      return number
    })
  const acts = Array.from({ length: 102 }, (_, number) => act(number))
  expect(begun).toEqual([0, 1])
  expect(await act(102)).toBeNull()
  expect(await take('other', async () => 'at once')).toEqual({ value: 'at once' })
  for (let ended = 0; ended < 102; ended += 1) {
    await expect.poll(() => ends.length).toBeGreaterThan(ended)
    expect(begun.length).toBeLessThanOrEqual(ended + 2)
    ends[ended]?.()
  }
  expect(await Promise.all(acts)).toEqual(acts.map((_, value) => ({ value })))
  expect(begun).toEqual(acts.map((_, number) => number))
  const failing = take('one', async () => {
    throw new Error('no')
  })
  await expect(failing).rejects.toThrow('no')
  expect(await Promise.all([1, 2, 3].map((value) => take('one', async () => value)))).toEqual(
    [1, 2, 3].map((value) => ({ value })),
  )
})

test('streams have so many seats in all, of a caller and by a token, and who leaves twice gives back one', () => {
  const { take } = seats({ streamsMax: 3, streamsPerCaller: 2 })
  const [first, second] = [take('a', null), take('a', null)]
  expect([first, second]).not.toContain(null)
  expect(take('a', null), 'of one caller').toBeNull()
  expect(take('b', null)).not.toBeNull()
  expect(take('c', null), 'of all').toBeNull()
  first?.leave()
  first?.leave()
  const third = take('a', null)
  expect([third, take('a', null), take('c', null)]).toEqual([expect.anything(), null, null])
  second?.leave()
  expect([take('a', null), take('c', null)]).toEqual([expect.anything(), null])

  const wide = seats({ streamsMax: 1_000, streamsPerCaller: 1_000 })
  const followed = Array.from({ length: STREAMS_PER_TOKEN }, (_, n) => wide.take(`${n}`, 'order'))
  expect(followed).not.toContain(null)
  expect(wide.take('another', 'order'), 'by one token').toBeNull()
  expect(wide.take('another', 'other order')).not.toBeNull()
  followed[0]?.leave()
  followed[0]?.leave()
  expect([wide.take('x', 'order'), wide.take('y', 'order')]).toEqual([expect.anything(), null])
})

const UNITS = 300

function openGuesses() {
  const time = { nowMs: 1_000_000 }
  const good = new Set<string>()
  const asked: string[] = []
  const { isKnown, look, count } = guesses(
    { unitsPerMinute: UNITS },
    { wallMs: () => time.nowMs },
    clientAddress([]),
  )
  const show = (credential: string, peer = '203.0.113.7') =>
    look(credential, request(peer), async () => {
      asked.push(credential)
      return good.has(credential) ? { credential } : null
    })
  /** How many of so many were looked up. */
  const guess = async (count: number, peer?: string) => {
    const before = asked.length
    await Promise.all(Array.from({ length: count }, (_, index) => show(`wrong-${index}`, peer)))
    return asked.length - before
  }
  const countProof = () => count(request('203.0.113.7'))
  return { time, good, isKnown, show, guess, countProof }
}

test('an address has a guess for each unit, also at once, and they come back within a minute, one by one', async () => {
  const { time, show, guess } = openGuesses()
  expect(await guess(1_000)).toBe(UNITS)
  expect(await show('wrong')).toBe('refused')
  expect(await show('wrong', '203.0.113.8')).toBeNull()
  time.nowMs += 200
  expect(await guess(1_000)).toBe(1)
  time.nowMs += 1_000
  expect(await guess(1_000)).toBe(5)
  time.nowMs += 120_000
  expect(await guess(1_000)).toBe(UNITS)
  time.nowMs -= 3_600_000
  expect(await show('wrong')).toBe('refused')
  time.nowMs += 200
  expect(await show('wrong')).toBeNull()
})

test('a wrong proof of a good credential is a guess like any other', async () => {
  const { guess, countProof } = openGuesses()
  expect(countProof()).toBe(true)
  expect(await guess(1_000)).toBe(UNITS - 1)
  expect(countProof()).toBe(false)
})

test('nobody has guessed while nobody could say what is right', async () => {
  const time = { nowMs: 1_000_000 }
  const { look } = guesses({ unitsPerMinute: UNITS }, { wallMs: () => time.nowMs }, clientAddress([]))
  const peer = request('203.0.113.7')
  for (let index = 0; index < UNITS * 2; index += 1) {
    const asking = look(`key-${index}`, peer, () => Promise.reject(new Error('the database is away')))
    await expect(asking).rejects.toThrow('away')
  }
  expect(await look('key-0', peer, async () => ({ keyId: 'key-0' }))).toEqual({ keyId: 'key-0' })
})

test('IPv6 guesses are those of a /64', async () => {
  const { guess } = openGuesses()
  await guess(1_000, '2001:db8::1')
  expect([await guess(1, '2001:db8::2'), await guess(1, '2001:db8:0:1::1')]).toEqual([0, 1])
})

test('a good credential is no guess, and goes on beside a neighbour who guesses', async () => {
  const { time, good, show, guess } = openGuesses()
  for (let index = 0; index < UNITS * 2; index += 1) {
    good.add(`good-${index}`)
    expect(await show(`good-${index}`)).toEqual({ credential: `good-${index}` })
  }
  expect(await guess(1_000)).toBe(UNITS)
  good.add('late')
  expect(await show('late')).toBe('refused')
  expect(await show('good-0')).toEqual({ credential: 'good-0' })
  time.nowMs += 200
  expect(await show('late')).toEqual({ credential: 'late' })
  expect(await guess(1), 'what was good took nothing').toBe(1)
  expect(await show('late')).toEqual({ credential: 'late' })
})

test('a credential that is not good any more is told so once, and then is a guess', async () => {
  const { good, isKnown, show, guess } = openGuesses()
  good.add('mine')
  expect(isKnown('mine')).toBe(false)
  await show('mine')
  await guess(1_000)
  expect([isKnown('mine'), isKnown('wrong-0')]).toEqual([true, false])
  good.delete('mine')
  expect(await show('mine')).toBeNull()
  expect(isKnown('mine')).toBe(false)
  expect(await show('mine')).toBe('refused')
})
