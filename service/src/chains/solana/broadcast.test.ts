import { expect, test } from 'vitest'
import type { TxStatus } from '../chain.ts'
import { broadcast } from './broadcast.ts'
import { NoAnswer, NodeRefusal } from './rpc.ts'
import { scriptedNode } from './testing/scripted_node.ts'

const tx = { txHash: 'a'.repeat(88), bytes: '01ab' }
const absent: TxStatus = { where: 'absent' }
const waiting: TxStatus = { where: 'mempool' }
const refusal = (code: number) => () => {
  throw new NodeRefusal('sendTransaction', code, 'no')
}
const silent = () => {
  throw new NoAnswer('it', 'cut')
}

test.each<[string, string, () => unknown, TxStatus]>([
  ['accepted', 'it is taken', () => tx.txHash, absent],
  ['unknown', 'the answer is of another transaction', () => 'b'.repeat(88), absent],
  ['unknown', 'the answer says nothing', () => null, absent],
  ['refused', 'it was tried in vain', refusal(-32_002), absent],
  ['accepted', 'it was processed already', refusal(-32_002), waiting],
  ['refused', 'its signature is wrong', refusal(-32_003), absent],
  ['refused', 'its bytes are none', refusal(-32_602), absent],
  ['unknown', 'the node is behind', refusal(-32_005), absent],
  ['unknown', 'the node is broken', refusal(-32_603), absent],
  ['unknown', 'the node is busy', refusal(-32_016), absent],
  ['unknown', 'there is no answer', silent, absent],
])('%s: %s', async (wanted, _, answer, status) => {
  const node = scriptedNode({ sendTransaction: answer })
  expect(await broadcast(node, async () => status, tx)).toBe(wanted)
})

test('unknown: nobody can say where it is', async () => {
  expect(await broadcast(scriptedNode({ sendTransaction: refusal(-32_002) }), silent, tx)).toBe('unknown')
})

test('the bytes go as they are, and are tried before they are passed on', async () => {
  const asked: unknown[] = []
  const sendTransaction = (...params: readonly unknown[]) => {
    asked.push(...params)
    return tx.txHash
  }
  await broadcast(scriptedNode({ sendTransaction }), async () => absent, tx)
  expect(asked).toEqual(['Aas=', { encoding: 'base64', preflightCommitment: 'confirmed' }])
})
