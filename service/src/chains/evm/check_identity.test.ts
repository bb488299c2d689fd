import { expect, test } from 'vitest'
import { identityCheck } from './check_identity.ts'
import { refusal, type Script, scriptedNode } from './testing/scripted_node.ts'
import { blockTracer } from './traces.ts'

const hash = (digit: string) => `0x${digit.repeat(64)}`
const able: Script = {
  eth_chainId: () => '0x1',
  eth_getBlockByNumber: () => ({
    number: '0x7',
    hash: hash('b'),
    parentHash: hash('c'),
    timestamp: '0x64',
    transactions: [],
  }),
  eth_getBlockReceipts: () => [],
  debug_traceBlockByHash: () => [],
}
function checkOf(script: Script) {
  const rpc = scriptedNode(script)
  const trace = blockTracer(rpc, 'auto', 1_000)
  return identityCheck({ rpc, trace, name: 'Ethereum', evmChainId: 1, listed: new Map() })
}

const check = (script: Script) => checkOf(script)()

test('a node that can do everything passes', async () => {
  await expect(check(able)).resolves.toBeUndefined()
  const { debug_traceBlockByHash: _, ...other } = able
  await expect(check({ ...other, trace_block: () => [] })).resolves.toBeUndefined()
})

test('a node of another chain is refused', async () => {
  await expect(check({ ...able, eth_chainId: () => '0x38' })).rejects.toThrow(/chain 56, configured is 1/)
})

test('a node that cannot trace, or has no receipts by block, is refused with what it lacks', async () => {
  const { debug_traceBlockByHash: _, ...traceless } = able
  await expect(check(traceless)).rejects.toThrow(/internal transfers.*debug_traceBlockByHash.*trace_block/)
  const { eth_getBlockReceipts: __, ...receiptless } = able
  await expect(check(receiptless)).rejects.toThrow(/eth_getBlockReceipts/)
})

test('a node that fails at tracing just now is not said to lack it', async () => {
  const failing = { ...able, debug_traceBlockByHash: () => refusal(-32000, 'execution timeout') }
  await expect(check(failing)).rejects.toThrow(/execution timeout/)
})

test('a node that was seen to trace is asked whose it is and nothing more, until anything fails', async () => {
  const node = { chainId: '0x1', isBusy: true, traces: 0 }
  const checkAgain = checkOf({
    ...able,
    eth_chainId: () => node.chainId,
    debug_traceBlockByHash: () => {
      if (node.isBusy) return refusal(-32000, 'execution timeout')
      node.traces += 1
      return []
    },
  })
  await expect(checkAgain()).rejects.toThrow(/execution timeout/)
  node.isBusy = false
  for (const _ of [1, 2, 3]) await checkAgain()
  expect(node.traces).toBe(1)
  node.chainId = '0x38'
  await expect(checkAgain()).rejects.toThrow(/chain 56/)
  node.chainId = '0x1'
  for (const _ of [1, 2, 3]) await checkAgain()
  expect(node.traces).toBe(2)
})
