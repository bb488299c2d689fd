import { describe, expect, test } from 'vitest'
import { countOfSequence, type Intent, nonceOf, validityOf } from './intent.ts'

/** What: what keeps two transactions of ours apart on each family. How: the parts that are asked of, and no others. */
const intents: Readonly<Record<Intent['family'], Intent>> = {
  bitcoin: part({ family: 'bitcoin' }),
  evm: part({ family: 'evm', nonce: 7 }),
  xrp: part({ family: 'xrp', sequence: 9 }),
  stellar: part({ family: 'stellar', sequence: (5n << 32n) + 11n }),
  tron: part({ family: 'tron', reference: { id: 'a', timeMs: 1_000 }, expirationMs: 61_000 }),
  eos: part({ family: 'eos', reference: { id: 'b', timeMs: 2_000 }, expirationMs: 62_000 }),
  solana: part({ family: 'solana', reference: { slot: 3, blockhash: 'c', height: 2 }, lastHeight: 152 }),
}

function part(fields: { readonly family: Intent['family'] } & Readonly<Record<string, unknown>>): Intent {
  return fields as unknown as Intent
}

function ofEach<Value>(ask: (intent: Intent) => Value): Record<string, Value> {
  return Object.fromEntries(Object.entries(intents).map(([family, intent]) => [family, ask(intent)]))
}

test('only accounts with a sequence make a transaction wait for the one before', () => {
  expect(ofEach(nonceOf)).toEqual({
    bitcoin: null,
    evm: 7,
    xrp: 9,
    stellar: 11,
    tron: null,
    eos: null,
    solana: null,
  })
})

test('time alone keeps attempts of TRON and EOS apart', () => {
  expect(ofEach(validityOf)).toEqual({
    bitcoin: null,
    evm: null,
    xrp: null,
    stellar: null,
    tron: { fromMs: 1_000, untilMs: 61_000 },
    eos: { fromMs: 2_000, untilMs: 62_000 },
    solana: null,
  })
})

describe('a sequence of Stellar', () => {
  test.each([
    [0n, 0],
    [1n, 1],
    [(1n << 32n) - 1n, 4_294_967_295],
    [1n << 32n, 0],
    [(123_456n << 32n) + 42n, 42],
  ])('%s is number %s of its account', (sequence, count) => expect(countOfSequence(sequence)).toBe(count))
})
