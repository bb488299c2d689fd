import { expect, test } from 'vitest'
import type { TxStatus } from '../chain.ts'
import { broadcast } from './broadcast.ts'
import { NoAnswer, NodeRefusal } from './rpc.ts'
import { scriptedNode } from './testing/scripted_node.ts'

const tx = { txHash: 'cd'.repeat(32), bytes: `00${'00'}0003${'ab12cd'}` }
const absent: TxStatus = { where: 'absent' }
const inBlock: TxStatus = { where: 'mempool' }

async function sent(answer: () => unknown, found: () => TxStatus = () => absent) {
  return broadcast(scriptedNode({ 'chain/send_transaction2': answer }), async () => found(), tx)
}

const refusal = (code: number, name: string) => () => {
  throw new NodeRefusal('send_transaction2', 500, { code, name, reason: 'said so' })
}

test('what the node took is accepted, and an answer about another transaction is none', async () => {
  expect(await sent(() => ({ transaction_id: tx.txHash, processed: {} }))).toBe('accepted')
  expect(await sent(() => ({ transaction_id: 'ab'.repeat(32) }))).toBe('unknown')
  expect(await sent(() => ({}))).toBe('unknown')
})

test.each([
  ['tx_duplicate', 3_040_008, 'accepted'],
  ['expired_tx_exception', 3_040_005, 'refused'],
  ['tx_cpu_usage_exceeded', 3_080_004, 'refused'],
  ['unsatisfied_authorization', 3_090_003, 'refused'],
  ['deadline_exception', 3_080_006, 'unknown'],
  ['exception', 0, 'unknown'],
] as const)('%s: %s says that it is %s', async (name, code, expected) => {
  expect(await sent(refusal(code, name))).toBe(expected)
})

test('what is refused although it is in a block is accepted, and unknown when that cannot be told', async () => {
  expect(await sent(refusal(3_040_005, 'expired_tx_exception'), () => inBlock)).toBe('accepted')
  const silent = () => {
    throw new NoAnswer('lookup', 'it is gone')
  }
  expect(await sent(refusal(3_040_005, 'expired_tx_exception'), silent)).toBe('unknown')
})

test('no answer is no refusal', async () => {
  const cut = () => {
    throw new NoAnswer('send_transaction2', 'the line was cut')
  }
  expect(await sent(cut)).toBe('unknown')
})
