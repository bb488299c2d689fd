import { describe, expect, test } from 'vitest'
import type { AssetId } from '../../domain/catalog/assets.ts'
import { AnswerTooMuch, NodeSilence } from './json_rpc.ts'
import { readBlock } from './read_block.ts'
import { refusal, type Script, scriptedNode } from './testing/scripted_node.ts'
import { blockTracer } from './traces.ts'
import { STEPPING_VALUE_TRACER, VALUE_TRACER } from './value_tracer.ts'

const quantity = (wei: bigint) => `0x${wei.toString(16)}`
const hash = (digit: string) => `0x${digit.repeat(64)}`
const ours = '0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed'
const [from, to] = [`0x${'1'.repeat(40)}`, ours.toLowerCase()]
const tx = { hash: hash('a'), from, to, value: '0x5', input: '0x', blockHash: hash('b') }
const block = {
  number: '0x7',
  hash: hash('b'),
  parentHash: hash('c'),
  timestamp: '0x64',
  baseFeePerGas: '0x1',
  transactions: [tx],
}
const receipt = {
  transactionHash: hash('a'),
  blockHash: hash('b'),
  blockNumber: '0x7',
  status: '0x1',
  gasUsed: '0x5208',
  effectiveGasPrice: '0x1',
  logs: [],
}
const trace = { txHash: hash('a'), result: { type: 'CALL', from, to, value: '0x5', input: '0x' } }

/** What our address, and nobody else, holds at this block; at its parent there was nothing. */
const holding =
  (wei: string) =>
  (address: unknown, at: unknown): string =>
    String(address).toLowerCase() === to && (at as { blockHash: string }).blockHash === hash('b')
      ? wei
      : '0x0'

const honest: Script = {
  eth_getBlockByNumber: () => block,
  eth_getBlockReceipts: () => [receipt],
  debug_traceBlockByHash: () => [trace],
  eth_getBalance: holding('0x5'),
}
/** A transaction in which code ran, so that the block is traced. */
const busy: Script = { ...honest, eth_getBlockReceipts: () => [{ ...receipt, gasUsed: '0x5209' }] }

function read(script: Script, listed: ReadonlyMap<string, AssetId> = new Map()) {
  const rpc = scriptedNode(script)
  const reader = {
    rpc,
    trace: blockTracer(rpc, 'auto', 1_000),
    native: 'ETH:ETH',
    listed,
  } as const
  const block = readBlock(reader, 7, async (asked) => new Set(asked))
  return { block, asked: rpc.asked }
}

const whole = {
  height: 7,
  hash: hash('b'),
  parentHash: hash('c'),
  timeMs: 100_000,
  transfers: [{ id: `${hash('a')}:call:0`, txHash: hash('a'), to: ours, asset: 'ETH:ETH', units: 5n }],
}

describe('a block', () => {
  test('is read with its traces when code ran in it, and without when none did', async () => {
    const [plain, traced] = [read(honest), read(busy)]
    expect(await plain.block).toEqual(whole)
    expect(plain.asked).not.toContain('debug_traceBlockByHash')
    expect(await traced.block).toEqual(whole)
    expect(traced.asked).toContain('debug_traceBlockByHash')
  })

  test('that is not there is null', async () => {
    expect(await read({ ...honest, eth_getBlockByNumber: () => null }).block).toBeNull()
  })
})

describe('what a block gives by itself', () => {
  const validator = `0x${'9'.repeat(40)}`
  const withdrawal = (index: string, address: string, amount: string) => ({
    index,
    validatorIndex: '0x1',
    address,
    amount,
  })
  const reward = { txHash: hash('b'), to: ours, asset: 'ETH:ETH', isOfBlock: true }

  test('is told as rewards: its tips without the base fee, and each withdrawal, which is in gwei', async () => {
    const rich = {
      ...block,
      miner: to,
      withdrawals: [withdrawal('0x2', to, '0x3'), withdrawal('0x3', validator, '0x4')],
    }
    const tipped = { ...receipt, effectiveGasPrice: '0x3' }
    const script = {
      ...honest,
      eth_getBlockByNumber: () => rich,
      eth_getBlockReceipts: () => [tipped],
      eth_getBalance: holding(quantity(5n + 42_000n + 3_000_000_000n)),
    }
    const rpc = scriptedNode(script)
    const reader = {
      rpc,
      trace: blockTracer(rpc, 'auto', 1_000),
      native: 'ETH:ETH',
      listed: new Map(),
    } as const
    const told = await readBlock(reader, 7, async () => new Set([ours]))
    expect(told?.transfers).toEqual([
      ...whole.transfers,
      { ...reward, id: `${hash('b')}:tips`, units: 42_000n },
      { ...reward, id: 'withdrawal:2', units: 3_000_000_000n },
    ])
  })

  test('is told of a block without transactions, which has no tips', async () => {
    const empty = { ...block, miner: to, transactions: [], withdrawals: [withdrawal('0x2', to, '0x3')] }
    const told = await read({
      eth_getBlockByNumber: () => empty,
      eth_getBalance: holding(quantity(3_000_000_000n)),
    }).block
    expect(told?.transfers).toEqual([{ ...reward, id: 'withdrawal:2', units: 3_000_000_000n }])
  })

  test.each([
    {
      what: 'an amount that is a number',
      change: { withdrawals: [{ ...withdrawal('0x2', to, ''), amount: 3 }] },
    },
    { what: 'a withdrawal by nobody', change: { withdrawals: [withdrawal('0x2', '0x', '0x3')] } },
    { what: 'a recipient of tips that is no address', change: { miner: '0x' } },
  ])('is not believed with $what', async ({ change }) => {
    const script = { ...honest, eth_getBlockByNumber: () => ({ ...block, ...change }) }
    await expect(read(script).block).rejects.toThrow(/the node's/)
  })
})

const receipts = (change: object): Script => ({
  ...honest,
  eth_getBlockReceipts: () => [{ ...receipt, ...change }],
})
const traces = (change: object): Script => ({
  ...busy,
  debug_traceBlockByHash: () => [{ ...trace, ...change }],
})
const nonsense: readonly { what: string; script: Script }[] = [
  {
    what: 'another block than asked for',
    script: { ...honest, eth_getBlockByNumber: () => ({ ...block, number: '0x8' }) },
  },
  {
    what: 'a number that is a number',
    script: { ...honest, eth_getBlockByNumber: () => ({ ...block, number: 7 }) },
  },
  {
    what: 'a value that is empty',
    script: { ...honest, eth_getBlockByNumber: () => ({ ...block, transactions: [{ ...tx, value: '0x' }] }) },
  },
  {
    what: 'no transactions',
    script: { ...honest, eth_getBlockByNumber: () => ({ ...block, transactions: undefined }) },
  },
  {
    what: 'transactions by hash only',
    script: { ...honest, eth_getBlockByNumber: () => ({ ...block, transactions: [hash('a')] }) },
  },
  { what: 'a word instead of a block', script: { ...honest, eth_getBlockByNumber: () => 'block' } },
  { what: 'no receipts, because the block is gone', script: { ...honest, eth_getBlockReceipts: () => null } },
  { what: 'too few receipts', script: { ...honest, eth_getBlockReceipts: () => [] } },
  { what: 'receipts of another block', script: receipts({ blockHash: hash('d') }) },
  { what: 'receipts of another transaction', script: receipts({ transactionHash: hash('d') }) },
  { what: 'a status nobody knows', script: receipts({ status: '0x2' }) },
  { what: 'no status', script: receipts({ status: null }) },
  { what: 'no logs', script: receipts({ logs: null }) },
  { what: 'too few traces', script: { ...busy, debug_traceBlockByHash: () => [] } },
  { what: 'traces of another transaction', script: traces({ txHash: hash('d') }) },
  { what: 'a trace that failed', script: traces({ result: undefined, error: 'execution timeout' }) },
  {
    what: 'a trace that contradicts the receipt',
    script: traces({ result: { ...trace.result, error: 'out of gas' } }),
  },
  { what: 'a trace of another value', script: traces({ result: { ...trace.result, value: '0x500' } }) },
  { what: 'a trace without a type', script: traces({ result: { ...trace.result, type: 1 } }) },
]
test.each(nonsense)('a node that tells of $what is not believed', async ({ script }) => {
  await expect(read(script).block).rejects.toThrow(/\w+/)
})

test('a node without the state of the block says that an archive node is needed, and is asked again later', async () => {
  const pruned = () => refusal(-32000, 'historical state 0xabc is not available')
  const first = read({ ...busy, debug_traceBlockByHash: pruned })
  await expect(first.block).rejects.toThrow(/archive node/)
  expect(first.asked.at(-1)).toBe('debug_traceBlockByHash')
})

describe('a transfer of a listed token that no balance confirms', () => {
  const token = `0x${'7'.repeat(40)}`
  const listed = new Map([[token, 'USDT:ERC20' as const]])
  const word = (text: string) => `0x${text.padStart(64, '0')}`
  const transfer = {
    address: token,
    topics: [
      '0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef',
      word(from.slice(2)),
      word(to.slice(2)),
    ],
    data: word('5'),
  }
  const short: Script = { ...receipts({ logs: [transfer] }), eth_call: () => word('0') }

  test.each(['0', '64'])('is told as not listed: 0x%s before and after are none of it', async (held) => {
    const told = await read({ ...short, eth_call: () => word(held) }, listed).block
    expect(told?.transfers.map(({ id, asset }) => [id, typeof asset])).toEqual([
      [`${hash('a')}:call:0`, 'string'],
      [`${hash('a')}:log:0`, 'object'],
    ])
  })

  test.each([
    { what: 'another block stands there', later: { ...block, hash: hash('d') } },
    { what: 'no block is there', later: null },
  ])('is no verdict when by then $what: a node may answer from the new branch', async ({ later }) => {
    let asked = 0
    const eth_getBlockByNumber = () => {
      asked += 1
      return asked === 1 ? block : later
    }
    await expect(read({ ...short, eth_getBlockByNumber }, listed).block).rejects.toThrow(/read it again/)
  })
})

/** A call tree in which our address got 5, and a SELFDESTRUCT is told to bring it as much once more, and so on. */
describe('coin that a node tells of and no balance bears out', () => {
  const [payer, other] = [`0x${'3'.repeat(40)}`, `0x${'4'.repeat(40)}`]
  const root = { type: 'CALL', from, to: payer, value: '0x5', input: '0x' }
  const pays = { type: 'CALL', from: payer, to, value: '0x5' }
  const leaves = { ...pays, type: 'SELFDESTRUCT' }
  const called: Script = {
    ...busy,
    eth_getBlockByNumber: () => ({ ...block, transactions: [{ ...tx, to: payer }] }),
  }
  const read = (calls: readonly object[], held: string, change: Script = {}) => {
    const rpc = scriptedNode({
      ...called,
      debug_traceBlockByHash: () => [{ ...trace, result: { ...root, calls } }],
      eth_getBalance: holding(held),
      ...change,
    })
    const trace_ = blockTracer(rpc, 'debug', 1_000)
    const reader = { rpc, trace: trace_, native: 'ETH:ETH', listed: new Map() } as const
    return readBlock(reader, 7, async () => new Set([ours]))
  }
  const told = async (calls: readonly object[], held: string) =>
    (await read(calls, held))?.transfers.map(({ id, units }) => [id.slice(hash('a').length + 1), units])

  test('is left out where a SELFDESTRUCT repeats a payment, and told where it moved as much once more', async () => {
    expect(await told([pays, leaves], '0x5')).toEqual([['call:0.0', 5n]])
    expect(await told([pays, leaves], '0xa')).toEqual([
      ['call:0.0', 5n],
      ['call:0.1', 5n],
    ])
    expect(await told([pays, { ...pays, value: '0x0', calls: [leaves, leaves] }, leaves], '0x5')).toEqual([
      ['call:0.0', 5n],
    ])
  })

  test('is left out only as far as it did not come', async () => {
    const small = { ...pays, value: '0x3' }
    const twice = [pays, small, leaves, { ...leaves, value: '0x3' }]
    expect((await told(twice, '0xb'))?.reduce((sum, [, units]) => sum + BigInt(units ?? 0), 0n)).toBe(11n)
    expect(await told(twice, '0x8')).toEqual([
      ['call:0.0', 5n],
      ['call:0.1', 3n],
    ])
  })

  test.each([
    { what: 'a call', calls: [pays, pays], held: '0x5', amount: '5 wei less' },
    { what: 'a SELFDESTRUCT that repeats nothing', calls: [leaves], held: '0x0', amount: '5 wei less' },
    { what: 'more than all repetitions', calls: [pays, leaves], held: '0x4', amount: '1 wei less' },
    { what: 'too little', calls: [pays], held: '0x6', amount: '1 wei more' },
  ])('is no reason to read the block when it is $what', async ({ calls, held, amount }) => {
    await expect(read(calls, held)).rejects.toThrow(
      new RegExp(`block 7: by its balances ${amount} came to ${ours}.*update it, or use another`),
    )
  })

  test('is no verdict when by then another block stands there', async () => {
    let asked = 0
    const eth_getBlockByNumber = () => {
      asked += 1
      const whole = { ...block, transactions: [{ ...tx, to: payer }] }
      return asked === 1 ? whole : { ...whole, hash: hash('d') }
    }
    await expect(read([pays, leaves], '0x5', { eth_getBlockByNumber })).rejects.toThrow(/read it again/)
  })

  test('does not stop the chain where the address paid for gas itself, which may be more than is told', async () => {
    const sends = { ...tx, from: to, to: other, value: '0x1' }
    const spent = { ...receipt, transactionHash: hash('e') }
    const calls = [pays, leaves]
    const script: Script = {
      eth_getBlockByNumber: () => ({
        ...block,
        transactions: [
          { ...tx, to: payer },
          { ...sends, hash: hash('e') },
        ],
      }),
      eth_getBlockReceipts: () => [{ ...receipt, gasUsed: '0x5209' }, spent],
      debug_traceBlockByHash: () => [
        { ...trace, result: { ...root, calls } },
        { txHash: hash('e'), result: { type: 'CALL', from: to, to: other, value: '0x1' } },
      ],
    }
    const before = 1_000_000n
    const balances = (after: bigint): Script => ({
      eth_getBalance: (_address, at) =>
        quantity((at as { blockHash: string }).blockHash === hash('b') ? after : before),
    })
    const units = async (after: bigint) =>
      (await read(calls, '0x0', { ...script, ...balances(after) }))?.transfers.map((one) => one.units)
    expect(await units(before + 5n - 1n - 21_000n), 'just what is told').toEqual([5n])
    expect(await units(before + 10n - 1n - 21_000n), 'both came').toEqual([5n, 5n])
    expect(await units(before + 5n - 1n - 21_000n - 7n), 'more was paid for gas').toEqual([5n])
    expect(await units(before + 5n - 1n - 20_000n), 'less was paid for gas').toEqual([5n, 5n])
  })
})

describe('a block that somebody has made too much to be told of in full', () => {
  const seen = (_tx: unknown, _block: unknown, options: unknown) => {
    const [[probed, { code, balance }] = ['', { code: '', balance: '' }]] = Object.entries(
      (options as { stateOverrides: Record<string, { code: string; balance: string }> }).stateOverrides,
    )
    const heir = `0x${code.slice(4, 44)}`
    const root = { type: 'CALL', from: `0x${'0'.repeat(40)}`, to: probed, value: '0x0', calls: [] }
    // What a new account costs may be more than any call of a probe has.
    const isNew = !(heir in (options as { stateOverrides: object }).stateOverrides)
    if (isNew) return { ...root, error: 'out of gas' }
    return { ...root, calls: [{ type: 'SELFDESTRUCT', from: probed, to: heir, value: balance }] }
  }
  /** As the tracers of revm-inspectors tell it to whoever looks at calls alone. */
  const unseen = (tx: unknown) => ({ type: 'CALL', ...(tx as object), value: '0x0', calls: [] })
  const values = (full: () => unknown, debug_traceCall: Script[string] = seen): Script => ({
    ...busy,
    debug_traceBlockByHash: (_hash, options) =>
      (options as { tracer: string }).tracer === 'callTracer' ? full() : [trace],
    debug_traceCall,
  })
  const tooLong = () => {
    throw new AnswerTooMuch('debug_traceBlockByHash', 'the answer is longer than 5 bytes')
  }
  test.each([
    { what: 'too long', full: tooLong },
    { what: 'refused for its time', full: () => refusal(-32000, 'execution timeout') },
    { what: 'refused for its length', full: () => refusal(-32008, 'Response is too big') },
    {
      what: 'larger than a provider tells',
      full: () => refusal(-32000, 'Response size is larger than 150MB limit'),
    },
    { what: 'more than one answers', full: () => refusal(-32000, 'Exceeded max response size') },
    {
      what: 'more than a tracer records',
      full: () => refusal(-32000, 'trace recorded byte limit exceeded'),
    },
    { what: 'given up by the tracer', full: () => [{ txHash: hash('a'), error: 'execution timeout' }] },
  ])('is told of by the value that moved, when the answer is $what', async ({ full }) => {
    expect(await read(values(full)).block).toEqual(whole)
  })

  test.each([
    { what: 'a limit on questions', full: () => refusal(-32005, 'limit exceeded: too many requests') },
    { what: 'a limit that names a time', full: () => refusal(429, 'rate limit: request timed out') },
    { what: 'any other refusal', full: () => refusal(-32000, 'internal error') },
    { what: 'a tracer that failed', full: () => [{ txHash: hash('a'), error: 'out of memory' }] },
    {
      what: 'a status',
      full: () => {
        throw new NodeSilence('debug_traceBlockByHash', 'HTTP 503 upstream timed out', 503)
      },
    },
  ])('is not what $what says: the block is read again later, in full', async ({ full }) => {
    const { block, asked } = read(values(full))
    await expect(block).rejects.toThrow(/\w+/)
    expect(asked.filter((method) => method.startsWith('debug_'))).toEqual(['debug_traceBlockByHash'])
  })

  test('is not read when the node has no more to say, and the first reason is given', async () => {
    const never = { ...values(tooLong), debug_traceBlockByHash: () => refusal(-32000, 'execution timeout') }
    await expect(read(never).block).rejects.toThrow(/execution timeout/)
  })

  test('is not read by a tracer that does not see what is left by a SELFDESTRUCT', async () => {
    const tried: string[] = []
    const blind = read(
      values(tooLong, (tx, _block, options) => {
        tried.push((options as { tracer: string }).tracer)
        return unseen(tx)
      }),
    )
    await expect(blind.block).rejects.toThrow(/longer than 5 bytes; .*do not tell what SELFDESTRUCT moves/)
    expect(blind.asked.filter((method) => method === 'debug_traceBlockByHash')).toHaveLength(1)
    expect(tried).toEqual([VALUE_TRACER, STEPPING_VALUE_TRACER])
  })

  test('is read by the one that sees it, which is tried out each time: another node may stand there by now', async () => {
    const used: string[] = []
    const rpc = scriptedNode({
      ...busy,
      debug_traceBlockByHash: (_hash, options) => {
        used.push((options as { tracer: string }).tracer)
        return used.at(-1) === 'callTracer' ? tooLong() : [trace]
      },
      debug_traceCall: (tx, at, options) =>
        (options as { tracer: string }).tracer === VALUE_TRACER ? unseen(tx) : seen(tx, at, options),
    })
    const reader = {
      rpc,
      trace: blockTracer(rpc, 'debug', 1_000),
      native: 'ETH:ETH',
      listed: new Map(),
    } as const
    for (const _ of [1, 2]) expect(await readBlock(reader, 7, async () => new Set([ours]))).toEqual(whole)
    expect(used).toEqual(['callTracer', STEPPING_VALUE_TRACER, 'callTracer', STEPPING_VALUE_TRACER])
    expect(rpc.asked.filter((method) => method === 'debug_traceCall')).toHaveLength(4)
  })
})

describe('trace_block', () => {
  const flat = {
    type: 'call',
    action: { callType: 'call', from, to, value: '0x5', input: '0x' },
    blockHash: hash('b'),
    transactionHash: hash('a'),
    traceAddress: [],
    result: {},
  }
  const { debug_traceBlockByHash: _, ...withoutDebug } = busy

  test('is used by a node that has it, and gives the same', async () => {
    const inner = { ...flat, action: { ...flat.action, from: to, to: from, value: '0x2' }, traceAddress: [0] }
    const reward = { type: 'reward', action: {}, blockHash: hash('b'), traceAddress: [] }
    const script = { ...busy, trace_block: () => [flat, inner, reward], eth_getBalance: holding('0x3') }
    const { block, asked } = read(script)
    expect((await block)?.transfers.map(({ id }) => id)).toEqual([
      `${hash('a')}:call:0`,
      `${hash('a')}:call:0.0`,
    ])
    expect(asked).not.toContain('debug_traceBlockByHash')
  })

  test.each([
    { what: 'another block, mined since', traces: [{ ...flat, blockHash: hash('d') }] },
    { what: 'nothing', traces: [] },
    { what: 'an inner call without its caller', traces: [{ ...flat, traceAddress: [0] }] },
    { what: 'an unknown type', traces: [{ ...flat, type: 'gift' }] },
  ])('that tells of $what is not believed', async ({ traces }) => {
    await expect(read({ ...busy, trace_block: () => traces }).block).rejects.toThrow(/\w+/)
  })

  test('and neither of them: the block is not read', async () => {
    await expect(read(withoutDebug).block).rejects.toThrow(/Method not found/)
  })

  test.each([
    { what: 'that one', has: 'trace_block' },
    { what: 'the other one', has: 'debug_traceBlockByHash' },
  ])(
    'is done without once a node stands there that has it no more, where $what was used',
    async ({ has }) => {
      const traces: Script = { trace_block: () => [flat], debug_traceBlockByHash: () => [trace] }
      let offered = has
      const only =
        (method: string) =>
        (...params: readonly unknown[]) =>
          method === offered ? traces[method]?.(...params) : refusal(-32601, 'Method not found')
      const rpc = scriptedNode({
        ...busy,
        trace_block: only('trace_block'),
        debug_traceBlockByHash: only('debug_traceBlockByHash'),
      })
      const reader = {
        rpc,
        trace: blockTracer(rpc, 'auto', 1_000),
        native: 'ETH:ETH',
        listed: new Map(),
      } as const
      const readAgain = () => readBlock(reader, 7, async (asked) => new Set(asked))
      expect(await readAgain()).toEqual(whole)
      for (offered of Object.keys(traces)) expect(await readAgain(), offered).toEqual(whole)
    },
  )
})
