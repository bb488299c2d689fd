import { expect, test } from 'vitest'
import { TOKEN_PROGRAM } from './address.ts'
import { NoAnswer } from './rpc.ts'
import { readTransaction } from './transactions.ts'

const [payer, holding, other, closed] = ['payer', 'holding', 'other', 'closed']
const token = (accountIndex: number, amount: string) => ({
  ...{ accountIndex, mint: 'mint', owner: 'owner', programId: TOKEN_PROGRAM, uiTokenAmount: { amount } },
})
const balance = (at: number, units: bigint) => ({
  ...{ at, mint: 'mint', owner: 'owner', program: TOKEN_PROGRAM, units },
})

/** As a node tells it with `transactionDetails: 'accounts'`. */
const told = (meta: object) => ({
  transaction: {
    accountKeys: [payer, holding, other, closed].map((pubkey) => ({ pubkey })),
    signatures: ['signature'],
  },
  meta: {
    err: null,
    preBalances: [10_000, 7, 7, 2_039_280],
    postBalances: [2_044_280, 7, 7, 0],
    preTokenBalances: [token(1, '5'), token(2, '9'), token(3, '0')],
    postTokenBalances: [token(2, '9'), token(1, '8')],
    ...meta,
  },
})

test('only what a transaction changed is kept, with what was before and what is after', () => {
  expect(readTransaction(told({}))).toEqual({
    txHash: 'signature',
    succeeded: true,
    coins: [
      { at: 0, address: payer, before: 10_000, after: 2_044_280 },
      { at: 3, address: closed, before: 2_039_280, after: 0 },
    ],
    tokens: [
      { at: 1, address: holding, before: balance(1, 5n), after: balance(1, 8n) },
      { at: 3, address: closed, before: balance(3, 0n), after: null },
    ],
  })
})

test('an account of a token that was not there before has held nothing', () => {
  const { tokens } = readTransaction(told({ preTokenBalances: [token(2, '9')] }))
  expect(tokens).toEqual([{ at: 1, address: holding, before: null, after: balance(1, 8n) }])
})

test.each([
  ['mint', { mint: 'another' }],
  ['owner', { owner: 'another' }],
  ['program', { programId: 'another' }],
])('as much of a token under another %s is a change', (_, changes) => {
  const { tokens } = readTransaction(
    told({ preTokenBalances: [token(2, '9')], postTokenBalances: [{ ...token(2, '9'), ...changes }] }),
  )
  expect(tokens).toMatchObject([{ at: 2, before: balance(2, 9n), after: { units: 9n } }])
})

test('what a transaction that failed has cost its payer is kept, for the balance is that', () => {
  const failed = readTransaction(
    told({ err: { InstructionError: [0, 'Custom'] }, preTokenBalances: [], postTokenBalances: [] }),
  )
  expect(failed.succeeded).toBe(false)
  expect(failed.coins).toHaveLength(2)
})

test.each(['owner', 'mint', 'programId', 'uiTokenAmount'])(
  'a balance of a token without %s is no answer',
  (missing) => {
    const half = { ...token(1, '8'), [missing]: undefined }
    expect(() => readTransaction(told({ postTokenBalances: [half] }))).toThrow(NoAnswer)
  },
)
