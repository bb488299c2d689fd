import { expect, test } from 'vitest'
import type { TxStatus } from '../chain.ts'
import { broadcast } from './broadcast.ts'
import { NoAnswer } from './rpc.ts'
import { scriptedNode } from './testing/scripted_node.ts'

const tx = { txHash: 'ab'.repeat(32), bytes: '0a00' }
const absent: TxStatus = { where: 'absent' }
const waiting: TxStatus = { where: 'mempool' }
const silent = () => {
  throw new NoAnswer('it', 'cut')
}
const code = (word: string) => ({ code: word, txid: tx.txHash, message: '00' })

test.each<[string, string, unknown, TxStatus]>([
  ['accepted', 'it is taken', { result: true, txid: tx.txHash }, absent],
  ['accepted', 'it is there already', code('DUP_TRANSACTION_ERROR'), waiting],
  ['unknown', 'it was there, and is nowhere', code('DUP_TRANSACTION_ERROR'), absent],
  ['refused', 'its time is over', code('TRANSACTION_EXPIRATION_ERROR'), absent],
  ['accepted', 'its time is over, and it is in a block', code('TRANSACTION_EXPIRATION_ERROR'), waiting],
  ['refused', 'its block is gone', code('TAPOS_ERROR'), absent],
  ['refused', 'there is not enough', code('CONTRACT_VALIDATE_ERROR'), absent],
  ['accepted', 'there is no longer enough, because it was paid', code('CONTRACT_VALIDATE_ERROR'), waiting],
  ['refused', 'there is no bandwidth', code('BANDWITH_ERROR'), absent],
  ['refused', 'its signature is wrong', code('SIGERROR'), absent],
  ['unknown', 'the node is busy', code('SERVER_BUSY'), absent],
  ['unknown', 'the node is alone', code('NO_CONNECTION'), absent],
  ['unknown', 'the node is nearly alone', code('NOT_ENOUGH_EFFECTIVE_CONNECTION'), absent],
  ['unknown', 'nothing becomes solid', code('BLOCK_UNSOLIDIFIED'), absent],
  ['unknown', 'it is not taken, and nothing is wrong with it', { result: false, ...code('SUCCESS') }, absent],
  ['unknown', 'it is taken, and the node does not say what', { result: true }, absent],
  ['unknown', 'the answer is of another transaction', { result: true, txid: 'cd'.repeat(32) }, absent],
  ['unknown', 'the answer says nothing', {}, absent],
  ['unknown', 'the answer is a block', { blockID: 'ab' }, absent],
])('%s: %s', async (wanted, _, answer, status) => {
  const node = scriptedNode({ 'wallet/broadcasthex': () => answer })
  expect(await broadcast(node, async () => status, tx)).toBe(wanted)
})

test('unknown: there is no answer, or nobody can say where it is', async () => {
  expect(await broadcast(scriptedNode({ 'wallet/broadcasthex': silent }), async () => absent, tx)).toBe(
    'unknown',
  )
  const node = scriptedNode({ 'wallet/broadcasthex': () => code('TAPOS_ERROR') })
  expect(await broadcast(node, silent, tx)).toBe('unknown')
})
