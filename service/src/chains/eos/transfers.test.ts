import { serialize } from 'node:v8'
import { Asset, Name, Serializer } from '@wharfkit/antelope'
import { expect, test } from 'vitest'
import type { Transfer } from '../chain.ts'
import { blocksOf } from './blocks.ts'
import { CHAIN_ID, nodeAt, scriptedNode } from './testing/scripted_node.ts'
import { readTransfer } from './transfer_action.ts'
import { movedIn, transfersToOurs } from './transfers.ts'

/**
 * What: money that really reached us is told, whatever is written beside it, and nothing else.
 * How: the bytes of transfers as the field's own library encodes them, in traces as a node writes them.
 */
const hex = (name: string) => Serializer.encode({ object: Name.from(name) }).hexString
const head =
  hex('alice') + hex('mycambist123') + Serializer.encode({ object: Asset.from('1.5000 EOS') }).hexString
const memoBytes = (bytes: Buffer) => {
  const length = bytes.length < 0x80 ? [bytes.length] : [(bytes.length & 0x7f) | 0x80, bytes.length >> 7]
  return Buffer.concat([Buffer.from(length), bytes]).toString('hex')
}
const dataOf = (memo: string) => head + memoBytes(Buffer.from(memo))
const txHash = 'ef'.repeat(32)

const action = (changes: object = {}) => ({
  global_sequence: '361234567890',
  receiver: 'eosio.token',
  account: 'eosio.token',
  action: 'transfer',
  data: dataOf('17'),
  ...changes,
})

async function told(actions: readonly object[], status = 'executed'): Promise<readonly Transfer[]> {
  const node = nodeAt(9, { 9: [{ id: txHash, status, actions }] })
  const block = (await blocksOf(scriptedNode(node), CHAIN_ID).final(9)) ?? expect.fail()
  const ours = new Set(['mycambist123/17', 'mycambist123'])
  return transfersToOurs(block, async (asked) => new Set(asked.filter((text) => ours.has(text))))
}

const toOrder = { id: '361234567890', txHash, to: 'mycambist123/17', asset: 'EOS:EOS', units: 15_000n }

test('a node that does not say what became of a transaction is no proof that nothing came', async () => {
  const node = nodeAt(9, { 9: [{ id: txHash, actions: [action()] }] })
  const block = blocksOf(scriptedNode(node), CHAIN_ID).final(9)
  await expect(block).rejects.toThrow('transaction status')
})

test('what the token contract did is told by its number, and to whom its memo says', async () => {
  expect(await told([action()])).toEqual([toOrder])
  expect(await told([action({ global_sequence: 42 })]), 'smaller numbers are written as numbers').toEqual([
    { ...toOrder, id: '42' },
  ])
})

test.each([
  ['in the block as failed', [action()], 'hard_fail'],
  ['waiting for its time', [action()], 'delayed'],
  ['the notification of the one who is paid', [action({ receiver: 'mycambist123' })], 'executed'],
  ['the notification of the one who pays', [action({ receiver: 'alice' })], 'executed'],
  ['another action', [action({ action: 'issue' })], 'executed'],
  [
    'to somebody else',
    [action({ data: dataOf('17').replace(hex('mycambist123'), hex('mycambist124')) })],
    'executed',
  ],
  ['half a transfer', [action({ data: head })], 'executed'],
  ['a memo that is not all there', [action({ data: dataOf('17').slice(0, -2) })], 'executed'],
])('nothing is told of what is no transfer: %s', async (_, actions, status) => {
  expect(await told(actions, status)).toEqual([])
})

test.each([
  ['no memo', dataOf('')],
  ['words', dataOf('order 17')],
  ['256 bytes of them', dataOf('x'.repeat(256))],
  ['bytes that are no text', head + memoBytes(Buffer.from([0xff, 0xfe, 0x31]))],
  ['the number of nobody', dataOf('18')],
])("money with %s is the account's", async (_, data) => {
  expect(await told([action({ data })])).toEqual([{ ...toOrder, to: 'mycambist123' }])
})

test.each([
  ['nine bytes', [0x82, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x00]],
  ['five bytes, of which 32 bits count', [0x82, 0x80, 0x80, 0x80, 0x10]],
  ['two bytes', [0x82, 0x00]],
])('the contract reads a length of %s, and so it is read here', async (_, length) => {
  const data = head + Buffer.from([...length, ...Buffer.from('17')]).toString('hex')
  expect(await told([action({ data })])).toEqual([toOrder])
  expect(readTransfer(data), 'also where balances are counted').toMatchObject({ units: 15_000n, memo: '17' })
})

test('what follows the memo nobody reads', async () => {
  expect(await told([action({ data: `${dataOf('17')}00ff` })])).toEqual([toOrder])
})

test('a contract of anybody’s may write what it likes, and nothing of that is kept', async () => {
  const long = head + Buffer.from([0x80, 0x80, 0x20]).toString('hex') + '31'.repeat(512 * 1024)
  const other = { receiver: 'spammer', account: 'spammer' }
  const toOthers = long.replace(hex('mycambist123'), hex('mycambist124'))
  const actions = [long, toOthers, `${dataOf('17')}${'00'.repeat(512 * 1024)}`, 'ab'.repeat(20)].map((data) =>
    action({ ...other, data }),
  )
  const unlisted = { ...toOrder, asset: { unlisted: 'EOS@spammer' } }
  expect(await told(actions)).toEqual([{ ...unlisted, to: 'mycambist123' }, unlisted])
  const node = nodeAt(9, { 9: [{ id: txHash, status: 'executed', actions }] })
  const block = await blocksOf(scriptedNode(node), CHAIN_ID).final(9)
  expect(serialize(block).length).toBeLessThan(2_000)
})

test('another token is told as what it says it is', async () => {
  const other = { receiver: 'tethertether', account: 'tethertether' }
  expect(await told([action(other)])).toEqual([{ ...toOrder, asset: { unlisted: 'EOS@tethertether' } }])
  const usdt = dataOf('17').replace('04454f5300000000', '0455534454000000')
  expect(await told([action({ ...other, data: usdt })])).toEqual([
    { ...toOrder, asset: { unlisted: 'USDT@tethertether' } },
  ])
  const finer = dataOf('17').replace('04454f53', '08454f53')
  expect(await told([action({ data: finer })])).toMatchObject([{ asset: { unlisted: 'EOS@eosio.token' } }])
})

test('a block changes what an account holds by what it gets and what it gives', async () => {
  const back = readTransfer(dataOf('17')) ?? expect.fail()
  const away = back.to + back.from + dataOf('').slice(32)
  const calls = [
    action(),
    action({ data: away }),
    action({ data: away }),
    action({ account: 'x', receiver: 'x' }),
  ]
  const node = nodeAt(9, { 9: [{ id: txHash, status: 'executed', actions: calls }] })
  const block = (await blocksOf(scriptedNode(node), CHAIN_ID).final(9)) ?? expect.fail()
  expect(movedIn(block, new Set([hex('mycambist123')]))).toBe(-15_000n)
  expect(movedIn(block, new Set([hex('mycambist123'), hex('alice')]))).toBe(0n)
})
