import { expect, test } from 'vitest'
import { holdingOf, TOKEN_PROGRAM } from './address.ts'
import { readTransaction } from './transactions.ts'
import { transfersToOurs } from './transfers.ts'

const us = '7UkEVmiaC9pPb5DtFrP4pW2ykVAHpmGLUALV9WVRwAo2'
const them = 'H8sMJSCQxfKiFTCfDR3DUMLPwcRbM61LGFJ8N4dK3WjS'
const mint = 'EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v'
const listed = { native: 'SOL:SOL', tokens: new Map([[mint, 'USDC:SOL' as const]]) } as const
const ours = async (asked: readonly string[]) => new Set(asked.filter((each) => each === us))
const holding = await holdingOf(us, mint)

/** As a node tells it with `transactionDetails: 'accounts'`. */
function told(meta: object, keys: readonly string[] = [them, us, holding]) {
  const none = keys.map(() => 0)
  return {
    transaction: { accountKeys: keys.map((pubkey) => ({ pubkey })), signatures: ['signature'] },
    meta: {
      ...{ err: null, preBalances: none, postBalances: none, preTokenBalances: [], postTokenBalances: [] },
      ...meta,
    },
  }
}

const held = (amount: string, changes: object = {}) => ({
  ...{ accountIndex: 2, mint, owner: us, programId: TOKEN_PROGRAM, uiTokenAmount: { amount } },
  ...changes,
})

const find = (...transactions: readonly object[]) =>
  transfersToOurs(
    { hash: 'block', transactions: transactions.map(readTransaction), rewards: [] },
    listed,
    ours,
  )

test('what an address holds more of than before is told, under an id of its place in the transaction', async () => {
  const coin = told({ preBalances: [9e9, 1e9, 0], postBalances: [7e9, 3e9, 0] })
  const token = told({ preTokenBalances: [held('5000000')], postTokenBalances: [held('7500000')] })
  const named = { txHash: 'signature', to: us }
  expect(await find(coin, token)).toEqual([
    { ...named, id: 'signature:sol:1', asset: 'SOL:SOL', units: 2_000_000_000n },
    { ...named, id: 'signature:token:2', asset: 'USDC:SOL', units: 25n * 10n ** 17n },
  ])
})

test('nothing comes of a transaction that failed, whatever a node says that it left behind', async () => {
  const err = { InstructionError: [0, { Custom: 1 }] }
  const more = { postBalances: [0, 1e9, 0], postTokenBalances: [held('7500000')] }
  expect(await find(told({ ...more, err }))).toEqual([])
  expect(await find(told(more))).toHaveLength(2)
  expect(() => readTransaction(told({ ...more, err: undefined }))).toThrow('what became of')
})

test('less than before, or as much, is nothing; numbers of others may be beyond what is exact', async () => {
  const rich = 400_000_000_000_000_000
  expect(await find(told({ preBalances: [rich, 5, 0], postBalances: [rich, 5, 0] }))).toEqual([])
  expect(await find(told({ preBalances: [0, 5, 0], postBalances: [rich, 4, 0] }))).toEqual([])
})

test('what an account held that was not ours before is not taken off', async () => {
  const before = held('7500000', { owner: them })
  const given = told({ preTokenBalances: [before], postTokenBalances: [held('7500000')] }, [them, us, them])
  expect(await find(given)).toMatchObject([{ asset: { unlisted: `${mint} in ${them}` }, units: 7_500_000n }])
})

test.each([
  ['another mint', { mint: them }],
  ['another program', { programId: 'TokenzQdBNbLqP5VEhdkAS6EPFLC1PHnBqCXEpPxuEb' }],
])('a token of %s is not listed', async (_, changes) => {
  const [found] = await find(told({ postTokenBalances: [held('1', changes)] }))
  expect(found?.asset).toEqual({ unlisted: { mint, ...changes }.mint })
})

test('a block whose transactions do not say what they left behind is no answer', () => {
  expect(() => readTransaction(told({ postBalances: [1] }))).toThrow('one for each account')
  expect(() => readTransaction({ ...told({}), meta: null })).toThrow('should be an object')
})
