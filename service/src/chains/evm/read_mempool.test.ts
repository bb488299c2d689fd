import { encodeFunctionData, erc20Abi } from 'viem'
import { expect, test } from 'vitest'
import { NodeSilence } from './json_rpc.ts'
import { mempoolReader } from './read_mempool.ts'
import { refusal, type Script, scriptedNode } from './testing/scripted_node.ts'

const hash = (digit: string) => `0x${digit.repeat(64)}`
const ours = '0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed'
const usdt = `0x${'9'.repeat(40)}`
const tx = (digit: string, change: object = {}) => ({
  hash: hash(digit),
  from: `0x${'1'.repeat(40)}`,
  to: ours.toLowerCase(),
  value: '0x5',
  input: '0x',
  blockHash: null,
  ...change,
})
const read = (script: Script) =>
  mempoolReader({ rpc: scriptedNode(script), native: 'ETH:ETH', listed: new Map([[usdt, 'USDT:ERC20']]) })
const all = async (asked: readonly string[]) => new Set(asked)
const pending = (txs: readonly unknown[], number: string | null = '0x8'): Script => ({
  eth_blockNumber: () => '0x7',
  eth_getBlockByNumber: () => ({ number, transactions: txs }),
})

test('what the pending block has is told once, and later what is new', async () => {
  const txs = [tx('a')]
  const look = read(pending(txs))
  expect(await look(all)).toEqual([
    { id: `${hash('a')}:call:0`, txHash: hash('a'), to: ours, asset: 'ETH:ETH', units: 5n },
  ])
  expect(await look(all)).toEqual([])
  txs.push(tx('b'))
  expect(await look(all)).toMatchObject([{ txHash: hash('b') }])
})

test('what has left, and comes again, is told again', async () => {
  const changes: string[] = []
  const txs = [tx('a')]
  const look = read({
    ...pending(txs),
    eth_newPendingTransactionFilter: () => '0xf',
    eth_getFilterChanges: () => changes.splice(0),
    eth_getTransactionByHash: () => tx('b'),
  })
  expect(await look(all)).toHaveLength(1)
  const left = txs.splice(0)
  expect(await look(all)).toEqual([])
  txs.push(...left)
  expect(await look(all)).toMatchObject([{ txHash: hash('a') }])
  for (const time of ['first', 'second']) {
    changes.push(hash('b'))
    expect(await look(all), time).toMatchObject([{ txHash: hash('b') }])
  }
  expect(await look(all)).toEqual([])
})

test('an address that becomes ours later is still told', async () => {
  const look = read(pending([tx('a')]))
  expect(await look(async () => new Set())).toEqual([])
  expect(await look(all)).toHaveLength(1)
})

test("a listed token's transfer is told in ledger units, another call or contract is not", async () => {
  const input = encodeFunctionData({ abi: erc20Abi, functionName: 'transfer', args: [ours, 7n] })
  const call = { to: usdt, value: '0x0', input }
  const txs = [
    tx('a', call),
    tx('b', { ...call, to: `0x${'8'.repeat(40)}` }),
    tx('c', { ...call, input: '0x' }),
  ]
  expect(await read(pending(txs))(all)).toEqual([
    { id: `${hash('a')}:log:0`, txHash: hash('a'), to: ours, asset: 'USDT:ERC20', units: 7n * 10n ** 12n },
  ])
})

/** Such a call costs its sender next to nothing, and its units are more than any table of ours takes. */
test("a listed token's transfer of more than there is of it is not told", async () => {
  const asking = (units: bigint) => {
    const input = encodeFunctionData({ abi: erc20Abi, functionName: 'transfer', args: [ours, units] })
    return { to: usdt, value: '0x0', input }
  }
  const txs = [tx('a', asking(2n ** 256n - 1n)), tx('b', asking(2n ** 128n + 1n)), tx('c', asking(7n))]
  expect(await read(pending(txs))(all)).toMatchObject([{ txHash: hash('c') }])
})

test('what reached the node since the last look is told, unless it was mined meanwhile', async () => {
  const changes: string[] = []
  const look = read({
    eth_newPendingTransactionFilter: () => '0xf',
    eth_getFilterChanges: () => changes.splice(0),
    eth_getTransactionByHash: (txHash) =>
      txHash === hash('c')
        ? null
        : tx('ab'[txHash === hash('a') ? 0 : 1] ?? '', txHash === hash('a') ? {} : { blockHash: hash('d') }),
  })
  expect(await look(all)).toEqual([])
  changes.push(hash('a'), hash('b'), hash('c'))
  expect(await look(all)).toMatchObject([{ txHash: hash('a') }])
})

test('a look that fails loses nothing that the node has told it, and will not tell again', async () => {
  const changes: string[] = []
  let silences = 1
  const look = read({
    eth_newPendingTransactionFilter: () => '0xf',
    eth_getFilterChanges: () => changes.splice(0),
    eth_getTransactionByHash: (txHash) => {
      if (silences-- > 0) throw new NodeSilence('test', 'no answer within 10000 ms')
      return tx(String(txHash).slice(-1))
    },
  })
  expect(await look(all)).toEqual([])
  changes.push(hash('a'))
  await expect(look(all)).rejects.toThrow('no answer')
  changes.push(hash('b'))
  expect(await look(all)).toMatchObject([{ txHash: hash('a') }, { txHash: hash('b') }])
  changes.push(hash('c'))
  await expect(look(() => Promise.reject(new Error('no database')))).rejects.toThrow('no database')
  expect(await look(all)).toMatchObject([{ txHash: hash('c') }])
  expect(await look(all)).toEqual([])
})

test('what a node tells of and then tells wrongly holds up no more than two looks', async () => {
  const changes: string[] = []
  const look = read({
    eth_newPendingTransactionFilter: () => '0xf',
    eth_getFilterChanges: () => changes.splice(0),
    eth_getTransactionByHash: () => tx('a', { value: null }),
  })
  expect(await look(all)).toEqual([])
  changes.push(hash('a'))
  for (let failed = 0; failed < 2; failed += 1) await expect(look(all)).rejects.toThrow('transaction.value')
  expect(await look(all)).toEqual([])
})

test('a pending block may have no number yet', async () => {
  expect(await read(pending([tx('a')], null))(all)).toMatchObject([{ txHash: hash('a') }])
})

test('a node that answers with its latest block for the pending one is not believed', async () => {
  expect(await read(pending([tx('a')], '0x7'))(all)).toEqual([])
})

test('a forgotten filter is made anew; a node that offers neither way is done without', async () => {
  let filters = 0
  const look = read({
    eth_newPendingTransactionFilter: () => `0x${++filters}`,
    eth_getFilterChanges: (id) => (id === '0x1' ? refusal(-32000, 'filter not found') : []),
  })
  for (let looks = 0; looks < 4; looks += 1) expect(await look(all)).toEqual([])
  expect(filters).toBe(2)
  expect(await read({})(all)).toEqual([])
})

test('a filter that was not offered is asked for again later, and not at every look', async () => {
  let filters = 0
  const look = read({
    eth_newPendingTransactionFilter: () =>
      ++filters === 1 ? refusal(-32601, 'Method not found') : `0x${filters}`,
    eth_getFilterChanges: () => [hash('a')],
    eth_getTransactionByHash: () => tx('a'),
  })
  for (let looks = 0; looks < 100; looks += 1) expect(await look(all)).toEqual([])
  expect(filters).toBe(1)
  const told = [await look(all), await look(all), await look(all)]
  expect(filters).toBe(2)
  expect(told.flat()).toMatchObject([{ txHash: hash('a') }])
})

test('what is to be told again is told again, from the pending block and by its hash', async () => {
  const look = read({
    ...pending([tx('a')]),
    eth_getTransactionByHash: (txHash) => tx(String(txHash).slice(-1)),
  })
  expect(await look(all)).toMatchObject([{ txHash: hash('a') }])
  expect(await look(all, new Set([hash('a'), hash('b')]))).toMatchObject([
    { txHash: hash('a') },
    { txHash: hash('b') },
  ])
  expect(await look(all)).toEqual([])
})

test('what is to be told again, and a node does not know at that look, is asked for once more', async () => {
  const known = new Set<unknown>()
  const look = read({
    ...pending([]),
    eth_getTransactionByHash: (txHash) => (known.has(txHash) ? tx(String(txHash).slice(-1)) : null),
  })
  expect(await look(all, new Set([hash('a')]))).toEqual([])
  known.add(hash('a'))
  expect(await look(all)).toMatchObject([{ txHash: hash('a') }])
  expect(await look(all)).toEqual([])
})

test('what the node tells of and does not know is asked for once more, and no more', async () => {
  const changes: string[] = []
  const asked: unknown[] = []
  const known = new Set<unknown>()
  const look = read({
    eth_newPendingTransactionFilter: () => '0xf',
    eth_getFilterChanges: () => changes.splice(0),
    eth_getTransactionByHash: (txHash) => {
      asked.push(txHash)
      return known.has(txHash) ? tx(String(txHash).slice(-1)) : null
    },
  })
  expect(await look(all)).toEqual([])
  changes.push(hash('a'), hash('b'))
  expect(await look(all)).toEqual([])
  known.add(hash('a'))
  expect(await look(all)).toMatchObject([{ txHash: hash('a') }])
  expect(await look(all)).toEqual([])
  expect(asked).toEqual([hash('a'), hash('b'), hash('a'), hash('b')])
})

const tooMany = {
  'as a status': () => {
    throw new NodeSilence('test', 'HTTP 429 slow down', 429)
  },
  'as a refusal': () => refusal(-32005, 'limit exceeded'),
}
test.each(Object.entries(tooMany))(
  'a limit on the filter costs no look and keeps the filter: %s',
  async (_, limited) => {
    let filters = 0
    let isLimited = true
    const look = read({
      eth_newPendingTransactionFilter: () => `0x${++filters}`,
      eth_getFilterChanges: () => (isLimited ? limited() : [hash('a')]),
      eth_getTransactionByHash: () => tx('a'),
    })
    for (let looks = 0; looks < 3; looks += 1) expect(await look(all)).toEqual([])
    isLimited = false
    expect(await look(all)).toMatchObject([{ txHash: hash('a') }])
    expect(filters).toBe(1)
  },
)

test.each(Object.entries(tooMany))(
  'a limit on how much is fetched costs no look, and what was not is fetched at the next: %s',
  async (_, limited) => {
    let isLimited = true
    const changes: string[] = []
    const node = scriptedNode({
      eth_newPendingTransactionFilter: () => '0xf',
      eth_getFilterChanges: () => changes.splice(0),
      eth_getTransactionByHash: () => tx('a'),
    })
    const settle: typeof node.settle = async (calls) =>
      isLimited && calls[0]?.method === 'eth_getTransactionByHash' ? limited() : node.settle(calls)
    const look = mempoolReader({ rpc: { ...node, settle }, native: 'ETH:ETH', listed: new Map() })
    expect(await look(all)).toEqual([])
    changes.push(hash('a'))
    expect(await look(all)).toEqual([])
    isLimited = false
    expect(await look(all)).toMatchObject([{ txHash: hash('a') }])
  },
)

test('a node that limits whatever it is asked rejects', async () => {
  const limited = tooMany['as a status']
  const look = read({ eth_newPendingTransactionFilter: limited, eth_blockNumber: limited })
  await expect(look(all)).rejects.toThrow('HTTP 429')
})

test('a node that does not answer, for any other reason, rejects', async () => {
  const look = read({
    eth_newPendingTransactionFilter: () => '0xf',
    eth_getFilterChanges: () => {
      throw new NodeSilence('test', 'HTTP 503', 503)
    },
  })
  expect(await look(all)).toEqual([])
  await expect(look(all)).rejects.toThrow('HTTP 503')
})

test("an id that has become somebody else's filter is given up for a new one", async () => {
  let filters = 0
  const look = read({
    eth_newPendingTransactionFilter: () => `0x${++filters}`,
    eth_getFilterChanges: (id) => (id === '0x1' ? [{ address: usdt, data: '0x', topics: [] }] : [hash('a')]),
    eth_getTransactionByHash: () => tx('a'),
  })
  for (let looks = 0; looks < 3; looks += 1) expect(await look(all)).toEqual([])
  expect(await look(all)).toMatchObject([{ txHash: hash('a') }])
  expect(filters).toBe(2)
})
