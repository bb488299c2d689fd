import { expect, test } from 'vitest'
import { readMoves } from './moves.ts'
import { NoAnswer } from './rpc.ts'

const hash = 'cd'.repeat(32)
const [payer, payee, contract] = ['11', '22', '33'].map((byte) => `41${byte.repeat(20)}`) as [
  string,
  string,
  string,
]
const word = (address: string) => address.slice(2).padStart(64, '0')
const units = (n: number) => n.toString(16).padStart(64, '0')
const TOPIC = 'ddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef'

function tx(type: string, value: object, contractRet = 'SUCCESS') {
  const parameter = { value: { owner_address: payer, ...value } }
  return { txID: hash, ret: [{ contractRet }], raw_data: { contract: [{ type, parameter }] } }
}
const coin = tx('TransferContract', { to_address: payee, amount: 5 })
const call = tx('TriggerSmartContract', { contract_address: contract })
const info = (more: object = {}) => ({ id: hash, fee: 345_000, ...more })
const log = (more: object = {}) => ({
  address: contract.slice(2),
  topics: [TOPIC, word(payer), word(payee)],
  data: units(7),
  ...more,
})
const inside = (note: string, more: object = {}) => ({
  caller_address: contract,
  transferTo_address: payee,
  callValueInfo: [{ callValue: 9 }],
  note: Buffer.from(note).toString('hex'),
  ...more,
})
const read = (transaction: object, result: object = info()) =>
  readMoves([transaction], [result]).moves.map((move) => ({ ...move, units: move.units() }))
const token = { id: `${hash}:log:0`, txHash: hash, from: payer, to: payee, token: contract, units: 7n }

test('TRX, a token, an internal payment and a TRC-10 token are moves', () => {
  expect(read(coin)).toEqual([
    { id: `${hash}:trx`, txHash: hash, from: payer, to: payee, token: null, units: 5n },
  ])
  expect(read(call, info({ receipt: { result: 'SUCCESS' }, log: [log()] }))).toEqual([token])
  const inner = { internal_transactions: [inside('call')] }
  expect(read(call, info(inner))).toMatchObject([{ from: contract, to: payee, units: 9n }])
  const asset = { to_address: payee, asset_name: Buffer.from('1000001').toString('hex'), amount: 3 }
  expect(read(tx('TransferAssetContract', asset))).toMatchObject([{ token: 'TRC10.1000001', units: 3n }])
})

test.each([
  ['TRX that its block says has failed', { ...coin, ret: [{ contractRet: 'REVERT' }] }, info()],
  ['a call whose receipt says otherwise', call, info({ receipt: { result: 'OUT_OF_ENERGY' }, log: [log()] })],
  ['a call whose result is FAILED', call, info({ result: 'FAILED', log: [log()] })],
  ['a transaction without a result', { ...coin, ret: undefined }, info()],
  ["an NFT's Transfer", call, info({ log: [log({ topics: [TOPIC, word(payer), word(payee), units(1)] })] })],
  ['another event', call, info({ log: [log({ topics: ['00'.repeat(32), word(payer), word(payee)] })] })],
  ['a transfer of nothing', call, info({ log: [log({ data: units(0) })] })],
  ['a transfer to oneself', call, info({ log: [log({ topics: [TOPIC, word(payee), word(payee)] })] })],
  ['an amount that is none', call, info({ log: [log({ data: '07' })] })],
  [
    'an internal payment that was undone',
    call,
    info({ internal_transactions: [inside('call', { rejected: true })] }),
  ],
  [
    'a TRC-10 token inside a call',
    call,
    info({
      internal_transactions: [inside('call', { callValueInfo: [{}, { callValue: 9, tokenId: '1' }] })],
    }),
  ],
  ['the making of an account', tx('AccountCreateContract', { account_address: payee }), info()],
])('%s moves nothing, and costs its sender', (_, transaction, result) => {
  expect(read(transaction, result)).toEqual([])
  expect(readMoves([transaction], [result]).costs).toEqual([{ owner: payer, sun: 345_000n }])
})

/** As java-tron writes them, Program.java: the payee is whom the stake is for, the value how much is staked. */
const stakeNotes = [
  ...['freezeFor', 'unfreezeFor', 'freezeBalanceV2For', 'unfreezeBalanceV2For'].map(
    (note) => `${note}Energy`,
  ),
  ...['delegateResourceOf', 'unDelegateResourceOf'].flatMap((note) => [`${note}Energy`, `${note}Bandwidth`]),
  'cancelAllUnfreezeV2',
  'withdrawExpireUnfreeze',
  'withdrawReward',
  'voteWitness',
]

test.each([...stakeNotes, 'ofALaterVersion', ''])(
  'what a contract does with stake gives nobody TRX: %s',
  (note) => {
    expect(read(call, info({ internal_transactions: [inside(note)] }))).toEqual([])
  },
)

test('an internal transaction without a note or with no payee gives nobody TRX', () => {
  const vote = inside('voteWitness', { transferTo_address: undefined, callValueInfo: [{}] })
  const silent = inside('call', { note: undefined })
  expect(read(call, info({ internal_transactions: [vote, silent] }))).toEqual([])
})

test('a contract that destroys itself pays what it leaves once, with what was still on its way out of stake', () => {
  const left = inside('suicide', { callValueInfo: [{ callValue: 9 }, { callValue: 4, tokenId: '1000001' }] })
  const unfrozen = inside('withdrawExpireUnfreezeWhileSuiciding', { callValueInfo: [{ callValue: 5 }] })
  expect(read(call, info({ internal_transactions: [unfrozen, left] }))).toMatchObject([
    { from: contract, to: payee, units: 9n },
  ])
  expect(read(call, info({ internal_transactions: [inside('create')] }))).toMatchObject([{ units: 9n }])
})

test('a shielded transaction has no sender, and is costs of nobody', () => {
  const shielded = tx('ShieldedTransferContract', { owner_address: undefined, to_amount: 5 })
  const { moves, costs } = readMoves([shielded, coin], [info(), info()])
  expect(moves).toMatchObject([{ id: `${hash}:trx` }])
  expect(costs).toEqual([
    { owner: null, sun: 345_000n },
    { owner: payer, sun: 345_000n },
  ])
})

test('results of other transactions, or not of all, are no answer', () => {
  expect(() => read(coin, info({ id: 'ab'.repeat(32) }))).toThrow(NoAnswer)
  expect(() => readMoves([coin], [])).toThrow(NoAnswer)
})

test('a stranger may move more than a JSON number can say, as long as nobody asks how much', () => {
  const { moves } = readMoves([tx('TransferContract', { to_address: payee, amount: 2 ** 60 })], [info()])
  expect(moves).toHaveLength(1)
  expect(() => moves[0]?.units()).toThrow(NoAnswer)
})
