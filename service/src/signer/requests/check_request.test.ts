import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { Intent } from '../../domain/payouts/intent.ts'
import {
  bitcoinIntent,
  coin,
  customerEvm,
  eosIntent,
  evmIntent,
  sealed,
  solanaIntent,
  stellarIntent,
  tronIntent,
  usdcSolana,
  usdtTron,
  xrpIntent,
} from '../testing/fixtures.ts'
import { checkRequest } from './check_request.ts'

function messageOf(intent: unknown, ...authority: [] | [unknown]) {
  const outcome = checkRequest(intent, authority.length === 0 ? sealed() : authority[0])
  return outcome.ok ? 'accepted' : `${outcome.rejection.code}: ${outcome.rejection.message}`
}

test('a whole request comes through as it is, and as a copy', () => {
  for (const intent of [
    bitcoinIntent(),
    evmIntent(),
    bitcoinIntent({ change: null }),
    xrpIntent(),
    xrpIntent({ payment: null }),
    stellarIntent(),
    stellarIntent({ payment: null }),
    tronIntent(),
    tronIntent({ token: usdtTron }),
    eosIntent(),
    eosIntent({ payment: { to: 'alice', memo: '', units: 1n } }),
    solanaIntent(),
    solanaIntent({ token: usdcSolana }),
  ]) {
    const payeeKey = { purpose: 'deposit', index: 2 } as const
    const authority = sealed({ destinationTag: 'tag', refundAddress: customerEvm, payeeKey })
    const outcome = checkRequest(intent, authority)
    expect(outcome).toStrictEqual({ ok: true, value: { intent, authority } })
    expect(outcome.ok && outcome.value.intent).not.toBe(intent)
  }
})

test('a tag may be as long as the interface takes it, by characters', () => {
  expect(messageOf(evmIntent(), sealed({ destinationTag: '🦊'.repeat(256) }))).toBe('accepted')
  expect(messageOf(evmIntent(), sealed({ destinationTag: '🦊'.repeat(257) }))).toMatch(/destinationTag/)
})

const wrongValues = [
  undefined,
  null,
  '',
  'x',
  -1,
  0.5,
  Number.NaN,
  Number.POSITIVE_INFINITY,
  -1n,
  2n ** 256n,
  true,
  [],
  {},
  [[]],
  new Date(0),
]

/** Every place in a value, as the path to it. */
function pathsIn(value: unknown, path: readonly string[] = []): readonly (readonly string[])[] {
  if (typeof value !== 'object' || value === null) return [path]
  return [path, ...Object.entries(value).flatMap(([key, item]) => pathsIn(item, [...path, key]))]
}

function withValueAt(value: unknown, [key, ...rest]: readonly string[], replacement: unknown): unknown {
  if (key === undefined) return replacement
  const copy = (Array.isArray(value) ? [...value] : { ...(value as object) }) as Record<string, unknown>
  copy[key] = withValueAt(copy[key], rest, replacement)
  return copy
}

test.each([
  ['bitcoin', bitcoinIntent({ inputs: [coin(1, 5n)] }), {}],
  ['evm', evmIntent({ token: customerEvm }), {}],
  ['xrp', xrpIntent(), {}],
  ['stellar', stellarIntent(), { 'payment.memo': ['x'], 'payment.creates': [true] }],
  ['tron', tronIntent({ token: usdtTron }), {}],
  ['solana', solanaIntent({ token: usdcSolana }), {}],
  ['eos', eosIntent(), { account: ['x'], 'payment.to': ['x'], 'payment.memo': ['x', ''] }],
] satisfies [string, Intent, Readonly<Record<string, readonly unknown[]>>][])(
  'a wrong value anywhere in a %s intent is malformed and names the field',
  (_, intent, right) => {
    const nullable = ['change', 'token', 'payment', 'payment.tag', 'payment.memo']
    const isRight = (name: string, value: unknown) =>
      new Map<string, readonly unknown[]>(Object.entries(right)).get(name)?.includes(value)
    for (const path of pathsIn(intent)) {
      for (const wrong of wrongValues) {
        const name = path.join('.')
        if ((wrong === null && nullable.includes(name)) || isRight(name, wrong)) continue
        const message = messageOf(withValueAt(intent, path, wrong))
        expect(message, `${name} = ${String(wrong)}`).toMatch(/^malformed: intent/)
      }
    }
  },
)

test('a wrong value anywhere in an authority is malformed', () => {
  for (const field of Object.keys(sealed())) {
    for (const wrong of [undefined, 1, 1n, [], {}, 'x'.repeat(300)]) {
      expect(messageOf(evmIntent(), { ...sealed(), [field]: wrong })).toMatch(
        /^malformed: (authority|intent.payoutId)/,
      )
    }
  }
  for (const wrong of wrongValues) expect(messageOf(evmIntent(), wrong)).toMatch(/^malformed: authority/)
  const keyed = sealed({ payeeKey: { purpose: 'deposit', index: 2 } })
  for (const path of pathsIn(keyed.payeeKey, ['payeeKey'])) {
    for (const wrong of wrongValues) {
      if (wrong === null && path.length === 1) continue
      expect(messageOf(evmIntent(), withValueAt(keyed, path, wrong))).toMatch(
        /^malformed: authority.payeeKey/,
      )
    }
  }
})

test('a missing field and a field too many are refused', () => {
  for (const intent of [bitcoinIntent(), evmIntent()]) {
    for (const field of Object.keys(intent)) {
      const { [field]: _, ...rest } = intent as unknown as Record<string, unknown>
      expect(messageOf(rest)).toMatch(/^malformed: intent/)
    }
    expect(messageOf({ ...intent, data: '0x' })).toBe('malformed: intent has a field that is not known')
  }
  expect(messageOf(Object.create(evmIntent()))).toMatch(/^malformed: intent/)
})

test('weeks of attempts that a network does not take are signed', () => {
  expect(messageOf(evmIntent({ attempt: 2 ** 15 - 1 }))).toBe(messageOf(evmIntent()))
})

test.each([
  ['a coin spent twice', bitcoinIntent({ inputs: [coin(1, 5n), coin(1, 6n)] })],
  ['no coin', bitcoinIntent({ inputs: [] })],
  [
    '501 coins',
    bitcoinIntent({ inputs: Array.from({ length: 501 }, (_, index) => ({ ...coin(1, 5n), index })) }),
  ],
  ['a hole among the coins', { ...bitcoinIntent(), inputs: new Array(1) }],
  ['zero satoshi', bitcoinIntent({ feeSatoshi: 0n })],
  ['more bitcoin than there are', bitcoinIntent({ feeSatoshi: 2_100_000_000_000_001n })],
  ['a transaction hash in capitals', bitcoinIntent({ inputs: [{ ...coin(1, 5n), txHash: 'A'.repeat(64) }] })],
  ['another family of chain', { ...bitcoinIntent(), chain: 'ETH' }],
  ['a chain that is none', { ...evmIntent(), chain: 'constructor' }],
  ['an address without its checksum', evmIntent({ to: customerEvm.toLowerCase() })],
  ['a wrong checksum', evmIntent({ to: customerEvm.replace('C5', 'c5') })],
  ['a token without its checksum', evmIntent({ token: customerEvm.toLowerCase() })],
  ['gas for less than a transfer', evmIntent({ gasLimit: 20_999n })],
  ['a tip above the whole fee', evmIntent({ maxPriorityFeePerGasWei: 30_000_000_001n })],
  ['attempt 0', evmIntent({ attempt: 0 })],
  ['an attempt that its record cannot number', evmIntent({ attempt: 2 ** 15 })],
  ['a nonce beyond exact numbers', evmIntent({ nonce: 2 ** 53 })],
  ['a line end in the payout id', evmIntent({ payoutId: 'CB1:1\n' })],
])('%s is malformed', (_, intent) => {
  expect(messageOf(intent)).toMatch(/^malformed: intent/)
})

test('minus zero is zero, so that it cannot be another intent with the same bytes', () => {
  const outcome = checkRequest(evmIntent({ nonce: -0 }), sealed())
  expect(outcome).toStrictEqual({ ok: true, value: { intent: evmIntent({ nonce: 0 }), authority: sealed() } })
})

test('nothing at all makes it throw', () => {
  fc.assert(
    fc.property(fc.anything({ withBigInt: true, withNullPrototype: true }), (junk) => {
      expect(messageOf(junk)).toMatch(/^malformed: intent/)
      expect(messageOf(evmIntent(), junk)).toMatch(/^malformed: authority/)
    }),
  )
})
