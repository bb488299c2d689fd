import { describe, expect, test } from 'vitest'
import { soon } from '../../test/harness/eventually.ts'
import type { Clock } from '../clock.ts'
import type { CurrencyCode } from '../domain/catalog/currencies.ts'
import { defaultPriceRules, type PriceRules, priceBook } from './price_book.ts'
import type { PriceObservation, PriceQuote, PriceSource } from './price_source.ts'

/**
 * What: what the book believes, and when it stops believing.
 * How: sources whose words are set by the test, and a clock that stands still until moved.
 */
const UNIT = 10n ** 12n
const rules = { ...defaultPriceRules, readTimeoutMs: 60_000 }

type Word = { usd: bigint; quote?: PriceQuote; ageMs?: number }
type FakeSource = PriceSource & {
  says: Partial<Record<CurrencyCode, Word>>
  /** What the next reads do instead of answering. */
  behaves: (signal: AbortSignal) => Promise<void>
  reads: number
}

const answersAtOnce = () => Promise.resolve()
const fails = () => Promise.reject(new Error('connection refused'))
const neverAnswers = () => new Promise<void>(() => {})

function fakeClock() {
  let nowMs = 1_700_000_000_000
  const sleepers = new Set<() => void>()
  const clock: Clock = {
    nowMs: () => nowMs,
    wallMs: () => nowMs,
    fromWallMs: (wallMs) => wallMs,
    sleep: (_durationMs, signal) =>
      new Promise((resolve) => {
        sleepers.add(resolve)
        signal?.addEventListener('abort', () => resolve())
      }),
    endOfTurn: async () => {},
  }
  return {
    clock,
    pass: (durationMs: number) => {
      nowMs += durationMs
    },
    wakeAll: () => {
      for (const wake of sleepers) wake()
      sleepers.clear()
    },
    sleepers,
  }
}

function scene(sourceCount: number, changes: Partial<PriceRules> = {}) {
  const { clock, ...time } = fakeClock()
  const logged: string[] = []
  /** About BTC and about sources; the other currencies say nothing new. */
  const write = (level: string) => (fields: object, message: string) => {
    const error = 'error' in fields ? `, ${fields.error}` : ''
    if (!('currency' in fields) || fields.currency === 'BTC') logged.push(`${level}: ${message}${error}`)
  }
  const log = { info: write('info'), warn: write('warn') }
  const sources = Array.from({ length: sourceCount }, (_, index): FakeSource => {
    const source: FakeSource = {
      name: `venue ${index}`,
      says: {},
      behaves: answersAtOnce,
      reads: 0,
      read: async (signal) => {
        source.reads += 1
        await source.behaves(signal)
        return Object.entries(source.says).map(
          ([currency, { usd, quote = 'USD', ageMs = 0 }]): PriceObservation => ({
            currency: currency as CurrencyCode,
            price: usd,
            quote,
            atMs: clock.nowMs() - ageMs,
          }),
        )
      },
    }
    return source
  })
  const book = priceBook({ sources, clock, rules: { ...rules, ...changes }, log })
  const allSay = (currency: CurrencyCode, ...usd: readonly number[]) => {
    sources.forEach((source, index) => {
      const price = usd[index % usd.length] ?? 0
      source.says = { ...source.says, [currency]: { usd: BigInt(Math.round(price * 100)) * (UNIT / 100n) } }
    })
  }
  const at = (index: number): FakeSource => {
    const source = sources[index]
    if (source === undefined) throw new Error(`there is no source ${index}`)
    return source
  }
  return { book, sources, at, allSay, logged, clock, ...time }
}

const usd = (dollars: number) => BigInt(Math.round(dollars * 100)) * (UNIT / 100n)

describe('believing', () => {
  test('nothing is believed before the first refresh', () => {
    expect(scene(3).book.usd('BTC')).toBeNull()
  })

  test('the median of a quorum is believed, currency by currency', async () => {
    const { book, allSay, at } = scene(4)
    allSay('BTC', 65000, 65010, 65020, 65030)
    at(0).says = { ...at(0).says, ETH: { usd: usd(3500) } }
    await book.refresh()
    expect(book.usd('BTC')).toBe(usd(65015))
    expect(book.usd('ETH')).toBeNull()
  })

  test('a failing source does not matter while a quorum answers, and does when none is left', async () => {
    const { book, allSay, at, pass } = scene(4)
    allSay('BTC', 65000, 65010, 65020, 65030)
    at(3).behaves = fails
    await book.refresh()
    expect(book.usd('BTC')).toBe(usd(65010))
    at(2).behaves = fails
    pass(rules.ageMsMax + 1)
    await book.refresh()
    expect(book.usd('BTC')).toBeNull()
  })

  test('what a source said before it failed counts until it is too old', async () => {
    const { book, allSay, at, pass } = scene(3)
    allSay('BTC', 65000)
    await book.refresh()
    at(0).behaves = fails
    pass(rules.ageMsMax - 1000)
    await book.refresh()
    expect(book.usd('BTC')).toBe(usd(65000))
    pass(1001)
    await book.refresh()
    expect(book.usd('BTC')).toBeNull()
  })

  test('a source has one vote, whatever it says twice, and none for what cannot be a price', async () => {
    const { book, allSay, at } = scene(3)
    allSay('BTC', 65000)
    at(0).read = async () => [
      { currency: 'BTC', price: usd(65030), quote: 'USD', atMs: 1_700_000_000_000 },
      { currency: 'BTC', price: usd(65030), quote: 'USD', atMs: 1_700_000_000_000 },
      { currency: 'ETH', price: 0n, quote: 'USD', atMs: 1_700_000_000_000 },
      { currency: 'BNB', price: 1n, quote: 'USD', atMs: Number.NaN },
      { currency: 'DOGE' as CurrencyCode, price: 1n, quote: 'USD', atMs: 1_700_000_000_000 },
    ]
    await book.refresh()
    expect(book.usd('BTC')).toBe(usd(65000))
    expect(book.explain('ETH').sources[0]?.verdict).toBe('silent')
    expect(book.explain('BNB').sources[0]?.verdict).toBe('silent')
  })

  test('a source that throws at once or rejects with something odd is only a failing source', async () => {
    const { book, allSay, at, logged } = scene(5)
    allSay('BTC', 65000)
    at(0).read = () => {
      throw new Error('at once')
    }
    at(1).read = () => Promise.reject('odd')
    await book.refresh()
    expect(book.usd('BTC')).toBe(usd(65000))
    expect(logged.toSorted()).toEqual([
      'info: price is believed',
      'warn: price source does not answer, at once',
      'warn: price source does not answer, odd',
    ])
  })
})

describe('age', () => {
  test('a price ends by itself at the moment that its quorum is too old, without any refresh', async () => {
    const { book, allSay, pass } = scene(3)
    allSay('BTC', 65000)
    await book.refresh()
    pass(rules.ageMsMax)
    expect(book.usd('BTC')).toBe(usd(65000))
    expect(book.ageMs('BTC')).toBe(rules.ageMsMax)
    pass(1)
    expect(book.usd('BTC')).toBeNull()
    expect(book.ageMs('BTC')).toBeNull()
  })

  test("the source's own time counts, not only when it was read", async () => {
    const { book, allSay, at, pass } = scene(4)
    allSay('BTC', 65000, 65010, 65020, 65030)
    at(3).says = { BTC: { usd: usd(65030), ageMs: 40_000 } }
    await book.refresh()
    expect(book.usd('BTC')).toBe(usd(65015))
    expect(book.ageMs('BTC'), 'of the oldest word that it rests on').toBe(40_000)
    pass(5_001)
    expect(book.usd('BTC'), 'the old one no longer counts').toBe(usd(65010))
    expect(book.ageMs('BTC')).toBe(5_001)
    expect(book.explain('BTC').sources[3]).toMatchObject({ verdict: 'too_old', ageMs: 45_001 })
  })
})

describe('prices in USDT', () => {
  test('become dollars at the USDT price that a quorum agreed on', async () => {
    const { book, allSay, sources } = scene(6)
    allSay('USDT', 0.98)
    for (const source of sources.slice(3)) source.says = {}
    for (const source of sources) source.says.BTC = { usd: usd(100_000), quote: 'USDT' }
    await book.refresh()
    expect(book.usd('USDT')).toBe(usd(0.98))
    expect(book.usd('BTC')).toBe(usd(98_000))
  })

  test('are worth nothing to us while USDT has no price, and USDT is never worth one by definition', async () => {
    const { book, sources } = scene(4)
    for (const source of sources) {
      source.says = { BTC: { usd: usd(100_000), quote: 'USDT' }, USDT: { usd: UNIT, quote: 'USDT' } }
    }
    await book.refresh()
    expect(book.usd('USDT')).toBeNull()
    expect(book.usd('BTC')).toBeNull()
    expect(book.explain('BTC').sources[0]?.verdict).toBe('quote_unknown')
  })

  test('end when USDT ends', async () => {
    const { book, allSay, at, sources, pass } = scene(6)
    allSay('USDT', 1)
    for (const source of sources.slice(3)) source.says = { BTC: { usd: usd(100_000), quote: 'USDT' } }
    await book.refresh()
    expect(book.usd('BTC')).toBe(usd(100_000))
    for (const index of [0, 1, 2]) at(index).behaves = fails
    pass(40_000)
    await book.refresh()
    expect(book.usd('BTC')).toBe(usd(100_000))
    pass(5_001)
    expect(book.usd('BTC')).toBeNull()
  })
})

describe('a jump', () => {
  test('within the limit is believed at once', async () => {
    const { book, allSay } = scene(3)
    allSay('BTC', 60000)
    await book.refresh()
    allSay('BTC', 66000)
    await book.refresh()
    expect(book.usd('BTC')).toBe(usd(66000))
    expect(book.explain('BTC').jump).toBeNull()
    allSay('BTC', 59400)
    await book.refresh()
    expect(book.usd('BTC'), 'a fall').toBe(usd(59400))
  })

  test('is measured by the price it came from: a little more than the limit is beyond it, up or down', async () => {
    for (const price of [66_010, 53_990]) {
      const { book, allSay } = scene(3)
      allSay('BTC', 60000)
      await book.refresh()
      allSay('BTC', price)
      await book.refresh()
      expect(book.usd('BTC'), String(price)).toBeNull()
    }
  })

  test('that goes on is believed where each refresh is near the one before it', async () => {
    const { book, allSay } = scene(3)
    allSay('BTC', 60000)
    await book.refresh()
    for (const price of [70000, 76500, 83500]) {
      expect(book.usd('BTC')).not.toBe(usd(price))
      allSay('BTC', price)
      await book.refresh()
    }
    expect(book.usd('BTC')).toBe(usd(83500))
  })

  test('beyond it stops quoting until three refreshes in a row agree; then it is the price', async () => {
    const { book, allSay, logged } = scene(3)
    allSay('BTC', 60000)
    await book.refresh()
    allSay('BTC', 40000)
    await book.refresh()
    expect(book.usd('BTC')).toBeNull()
    expect(book.explain('BTC')).toMatchObject({
      because: 'jump',
      lastBelievedUsd: '60000',
      jump: { usd: '40000', agreements: 1 },
    })
    expect(book.why('BTC')).toMatch(
      /^jump from 60000 to 40000, refreshes that agree on it 1: venue 0 40000 USD 0 s old accepted, /,
    )
    allSay('BTC', 39500)
    await book.refresh()
    expect(book.usd('BTC')).toBeNull()
    await book.refresh()
    expect(book.usd('BTC')).toBe(usd(39500))
    expect(logged).toEqual([
      'info: price is believed',
      'warn: price is not believed: no quotes',
      'info: price is believed',
    ])
  })

  test('that goes away again was a fault: quoting goes on at once', async () => {
    const { book, allSay } = scene(3)
    allSay('BTC', 60000)
    await book.refresh()
    allSay('BTC', 6)
    await book.refresh()
    await book.refresh()
    allSay('BTC', 60100)
    await book.refresh()
    expect(book.usd('BTC')).toBe(usd(60100))
    allSay('BTC', 6)
    await book.refresh()
    await book.refresh()
    expect(book.usd('BTC'), 'the count began anew').toBeNull()
  })

  test('to somewhere else each time is never believed', async () => {
    const { book, allSay } = scene(3)
    allSay('BTC', 60000)
    await book.refresh()
    for (const price of [30000, 40000, 30000, 40000, 30000, 40000]) {
      allSay('BTC', price)
      await book.refresh()
      expect(book.usd('BTC')).toBeNull()
    }
  })

  test('is not agreed on by words that were only heard once', async () => {
    const { book, allSay, at } = scene(3)
    allSay('BTC', 60000)
    await book.refresh()
    allSay('BTC', 40000)
    await book.refresh()
    at(0).behaves = fails
    for (let round = 0; round < 5; round += 1) await book.refresh()
    expect(book.usd('BTC')).toBeNull()
    expect(book.explain('BTC').because).toBe('jump')
  })
})

test.each([1, 10, 50])('a fall to nothing is a jump, at %s percent too', async (jumpPercentMax) => {
  const { book, allSay } = scene(4, { jumpPercentMax })
  allSay('BTC', 65000)
  await book.refresh()
  allSay('BTC', 0.01)
  await book.refresh()
  expect(book.usd('BTC')).toBeNull()
})

describe('slow sources', () => {
  test('what the others say counts before the slow one has answered', async () => {
    const { book, allSay, at } = scene(4)
    allSay('BTC', 65000)
    const slow = Promise.withResolvers<void>()
    at(0).behaves = () => slow.promise
    const refreshed = book.refresh()
    await soon(() => expect(book.usd('BTC')).toBe(usd(65000)))
    slow.resolve()
    await refreshed
  })

  test('one that never answers is left out after its time, even if it ignores its signal', async () => {
    const { book, allSay, at, logged } = scene(4, { readTimeoutMs: 20 })
    allSay('BTC', 65000)
    at(0).behaves = neverAnswers
    await book.refresh()
    expect(book.usd('BTC')).toBe(usd(65000))
    expect(book.explain('BTC').sources[0]?.verdict).toBe('silent')
    expect(logged).toContainEqual(expect.stringMatching(/^warn: price source does not answer, .*timeout/))
  })

  test('an answer that comes after its time is not heard', async () => {
    const { book, allSay, at } = scene(4, { readTimeoutMs: 20 })
    allSay('BTC', 65000)
    const late = Promise.withResolvers<void>()
    at(0).behaves = () => late.promise
    await book.refresh()
    late.resolve()
    await late.promise
    await new Promise(setImmediate)
    expect(book.explain('BTC').sources[0]?.verdict).toBe('silent')
  })

  test('refreshes asked for at the same time are one refresh', async () => {
    const { book, at } = scene(3)
    await Promise.all([book.refresh(), book.refresh()])
    expect(at(0).reads).toBe(1)
    await book.refresh()
    expect(at(0).reads).toBe(2)
  })
})

describe('running', () => {
  test('it refreshes at the start and after every pause until it is stopped', async () => {
    const { book, allSay, at, wakeAll, sleepers } = scene(3)
    allSay('BTC', 65000)
    book.start()
    await soon(() => expect(book.usd('BTC')).toBe(usd(65000)))
    expect(at(0).reads).toBe(1)
    wakeAll()
    await soon(() => expect(at(0).reads).toBe(2))
    await soon(() => expect(sleepers.size).toBe(1))
    await book.stop()
    wakeAll()
    expect(at(0).reads).toBe(2)
  })

  test('stopping does not wait for a source that never answers, and tells it', async () => {
    const { book, at, logged } = scene(3)
    let told = false
    at(0).behaves = (signal) => {
      signal.addEventListener('abort', () => {
        told = true
      })
      return neverAnswers()
    }
    book.start()
    await book.stop()
    expect(told).toBe(true)
    expect(logged).toEqual([])
  })
})

test('operators see who said what, what became of it, and one line when that changes', async () => {
  const { book, allSay, at, logged, pass } = scene(5)
  allSay('BTC', 65000, 65010, 65020, 65_000_000, 65040)
  at(4).says = { BTC: { usd: usd(65040), ageMs: 100_000 } }
  at(2).behaves = fails
  await book.refresh()
  await book.refresh()
  expect(book.explain('BTC')).toEqual({
    currency: 'BTC',
    usd: null,
    because: 'no_quorum',
    lastBelievedUsd: null,
    jump: null,
    sources: [
      { source: 'venue 0', verdict: 'accepted', price: '65000', quote: 'USD', ageMs: 0 },
      { source: 'venue 1', verdict: 'accepted', price: '65010', quote: 'USD', ageMs: 0 },
      {
        source: 'venue 2',
        verdict: 'silent',
        price: null,
        quote: null,
        ageMs: null,
      },
      { source: 'venue 3', verdict: 'outlier', price: '65000000', quote: 'USD', ageMs: 0 },
      { source: 'venue 4', verdict: 'too_old', price: '65040', quote: 'USD', ageMs: 100_000 },
    ],
  })
  expect(book.why('BTC')).toBe(
    'no quorum: venue 0 65000 USD 0 s old accepted, venue 1 65010 USD 0 s old accepted, venue 2 silent, ' +
      'venue 3 65000000 USD 0 s old outlier, venue 4 65040 USD 100 s old too old',
  )
  at(2).behaves = answersAtOnce
  pass(1000)
  await book.refresh()
  expect(book.usd('BTC')).toBe(usd(65010))
  expect(logged).toEqual([
    'warn: price source does not answer, connection refused',
    'warn: price is not believed: no quotes',
    'info: price source answers again',
    'info: price is believed',
  ])
})

test('the log tells of those currencies only that it was asked to tell of, and the others have prices all the same', async () => {
  const { sources, clock, allSay } = scene(3)
  const told: unknown[] = []
  const write = (fields: object) => void told.push('currency' in fields ? fields.currency : fields)
  const currencies: readonly CurrencyCode[] = ['BTC', 'ETH', 'USDT']
  const tells = new Set(currencies)
  const book = priceBook({ sources, clock, rules, tells, log: { info: write, warn: write } })
  await book.refresh()
  expect(told.sort()).toEqual(currencies)
  for (const currency of [...currencies, 'EOS'] as const) allSay(currency, 2)
  await book.refresh()
  expect(told.sort()).toEqual(['BTC', 'BTC', 'ETH', 'ETH', 'USDT', 'USDT'])
  expect(book.usd('EOS')).toBe(usd(2))
})

test('rules that cannot be kept are refused when the book is made', () => {
  expect(() => scene(2)).toThrow('as many sources')
  expect(() => scene(5, { quorum: 2 })).toThrow('quorum')
  expect(() => scene(3, { ageMsMax: 5_000 })).toThrow('too old')
  expect(() => scene(3, { jumpPercentMax: 100 })).toThrow('a fall')
  const { sources, clock } = scene(3)
  const twice = [...sources, ...sources]
  const log = { info: () => {}, warn: () => {} }
  expect(() => priceBook({ sources: twice, clock, log })).toThrow('one voice')
})
