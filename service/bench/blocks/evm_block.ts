import type { Chance } from '../../test/harness/chance.ts'
import { ownProgram, paidIn } from './own_addresses.ts'

/** How many transactions a block has, and of a hundred so many that swap. */
export type EvmShape = { readonly txs: number; readonly swaps: number }

/** The answers of a node about one block, as JSON text. */
export type EvmBlock = {
  readonly hash: string
  readonly height: number
  /** With whole transactions, and the header alone. */
  readonly block: string
  readonly header: string
  readonly receipts: string
  readonly parityTraces: string
  readonly callTraces: string
  /** Units that somebody of ours got in this block, by contract (`null`: coin) and lowercase address. */
  readonly gained: ReadonlyMap<string, bigint>
  readonly logs: number
  readonly frames: number
}

/** keccak256("Transfer(address,address,uint256)") */
const TRANSFER = '0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef'

type Log = { readonly address: string; readonly topics: readonly string[]; readonly data: string }
type Frame = {
  readonly from: string
  readonly to: string
  readonly value: bigint
  readonly callType: 'call' | 'delegatecall' | 'staticcall'
  readonly input: string
  readonly output: string
  readonly calls: readonly Frame[]
}
type Tx = {
  readonly hash: string
  readonly gasUsed: bigint
  readonly logs: readonly Log[]
  readonly root: Frame
}

const word = (hex: string) => `0x${hex.replace(/^0x/, '').padStart(64, '0')}`
const quantity = (value: bigint | number) => `0x${value.toString(16)}`

/** Pools and tokens are met again and again, people mostly once. */
function cast(chance: Chance) {
  const many = (count: number) => Array.from({ length: count }, () => chance.hex(20))
  return { tokens: many(60), pools: many(120), routers: many(8) }
}

export function makeEvmBlock(
  chance: Chance,
  shape: EvmShape,
  place: {
    readonly chain: string
    readonly parentHash: string
    readonly height: number
    readonly tokens: readonly string[]
  },
): EvmBlock {
  const players = cast(chance)
  const gained = new Map<string, bigint>()
  const ours = paidIn(place.height).map((index, ordinal): Tx => {
    const to = `0x${ownProgram(place.chain, index).toString('hex')}`
    const token = place.tokens[ordinal]
    if (token === undefined) {
      const tx = plain(chance, to)
      gained.set(`null ${to}`, tx.root.value)
      return tx
    }
    gained.set(`${token} ${to}`, 1_000_000n)
    return tokenTransfer(chance, token, to, 1_000_000n)
  })
  const others = Array.from({ length: shape.txs - ours.length }, () => someTx(chance, shape, players))
  const txs = [...others, ...ours]
  const hash = chance.hex(32)
  return { ...answers(chance, { ...place, hash }, txs), hash, height: place.height, gained }
}

function someTx(chance: Chance, { swaps }: EvmShape, players: ReturnType<typeof cast>): Tx {
  const dice = chance.below(100)
  if (dice < swaps) return swap(chance, players)
  const rest = (dice - swaps) / (100 - swaps)
  if (rest < 0.4) return plain(chance, chance.hex(20))
  if (rest < 0.85) {
    return tokenTransfer(
      chance,
      chance.pick(players.tokens),
      chance.hex(20),
      BigInt(chance.between(1, 2 ** 31)),
    )
  }
  return otherCall(chance, players)
}

function plain(chance: Chance, to: string): Tx {
  const root = frame(chance, chance.hex(20), to, BigInt(chance.between(1, 2 ** 31)) * 10n ** 9n, 0)
  return { hash: chance.hex(32), gasUsed: 21_000n, logs: [], root }
}

function tokenTransfer(chance: Chance, token: string, to: string, units: bigint): Tx {
  const from = chance.hex(20)
  // Half of all tokens stand behind a proxy.
  const inner = chance.below(2) === 0 ? [frame(chance, token, chance.hex(20), 0n, 68, 'delegatecall')] : []
  const root = { ...frame(chance, from, token, 0n, 68), calls: inner }
  return { hash: chance.hex(32), gasUsed: 52_000n, logs: [moved(token, from, to, units)], root }
}

function swap(chance: Chance, { tokens, pools, routers }: ReturnType<typeof cast>): Tx {
  const from = chance.hex(20)
  const router = chance.pick(routers)
  const hops = chance.between(1, 3)
  const logs: Log[] = []
  const calls: Frame[] = []
  for (let hop = 0; hop < hops; hop += 1) {
    const [token, pool] = [chance.pick(tokens), chance.pick(pools)]
    const units = BigInt(chance.between(1, 2 ** 31))
    logs.push(moved(token, hop === 0 ? from : chance.pick(pools), pool, units))
    logs.push(moved(chance.pick(tokens), pool, hop === hops - 1 ? from : chance.pick(pools), units))
    logs.push({ address: pool, topics: [chance.hex(32), word(router), word(from)], data: chance.hex(160) })
    logs.push({ address: pool, topics: [chance.hex(32)], data: chance.hex(64) })
    const reads = Array.from({ length: 3 }, () => frame(chance, pool, token, 0n, 36, 'staticcall'))
    const moves = [frame(chance, pool, token, 0n, 68), frame(chance, router, pool, 0n, 164)]
    calls.push({ ...frame(chance, router, pool, 0n, 196), calls: [...reads, ...moves] })
  }
  const value = chance.below(3) === 0 ? 10n ** 17n : 0n
  if (value > 0n) calls.push(frame(chance, router, chance.pick(pools), value, 4))
  const root = { ...frame(chance, from, router, value, chance.between(260, 1_200)), calls }
  return { hash: chance.hex(32), gasUsed: 180_000n, logs, root }
}

function otherCall(chance: Chance, { routers }: ReturnType<typeof cast>): Tx {
  const from = chance.hex(20)
  const to = chance.pick(routers)
  const calls = Array.from({ length: 4 }, () => frame(chance, to, chance.hex(20), 0n, 100))
  const log = () => ({ address: to, topics: [chance.hex(32), word(from)], data: chance.hex(96) })
  const root = { ...frame(chance, from, to, 0n, 400), calls }
  return { hash: chance.hex(32), gasUsed: 120_000n, logs: [log(), log()], root }
}

function moved(token: string, from: string, to: string, units: bigint): Log {
  return { address: token, topics: [TRANSFER, word(from), word(to)], data: word(units.toString(16)) }
}

function frame(
  chance: Chance,
  from: string,
  to: string,
  value: bigint,
  inputBytes: number,
  callType: Frame['callType'] = 'call',
): Frame {
  const output = inputBytes === 0 ? '0x' : chance.hex(32)
  return { from, to, value, callType, input: chance.hex(inputBytes), output, calls: [] }
}

type Place = { readonly hash: string; readonly parentHash: string; readonly height: number }

function answers(chance: Chance, place: Place, txs: readonly Tx[]) {
  const header = headerOf(chance, place)
  const at = { blockHash: place.hash, blockNumber: quantity(place.height) }
  let logIndex = 0
  const receipts = txs.map((tx, index) => ({
    ...at,
    transactionHash: tx.hash,
    transactionIndex: quantity(index),
    from: tx.root.from,
    to: tx.root.to,
    contractAddress: null,
    cumulativeGasUsed: quantity(index * 100_000),
    gasUsed: quantity(tx.gasUsed),
    effectiveGasPrice: quantity(3_000_000_000),
    // Drawn for all of them, so that the blocks stay what they were.
    logsBloom: bloomOf(tx, chance.hex(256)),
    type: '0x2',
    status: '0x1',
    logs: tx.logs.map((log) => ({
      ...log,
      ...at,
      blockTimestamp: quantity(1_800_000_000),
      transactionHash: tx.hash,
      transactionIndex: quantity(index),
      logIndex: quantity(logIndex++),
      removed: false,
    })),
  }))
  const parity = txs.flatMap((tx, index) => parityFrames(tx, index, tx.root, [], place))
  return {
    header: JSON.stringify({ ...header, transactions: txs.map(({ hash }) => hash) }),
    block: JSON.stringify({ ...header, transactions: txs.map((tx, index) => fullTx(chance, tx, index, at)) }),
    receipts: JSON.stringify(receipts),
    parityTraces: JSON.stringify(parity),
    callTraces: JSON.stringify(txs.map((tx) => ({ txHash: tx.hash, result: callFrame(tx.root) }))),
    logs: logIndex,
    frames: parity.length,
  }
}

/** Of nothing that was logged it has no bit; beyond that nobody looks at it. */
function bloomOf({ logs }: Tx, any: string): string {
  return logs.length === 0 ? `0x${'0'.repeat(512)}` : any
}

function headerOf(chance: Chance, { hash, parentHash, height }: Place) {
  return {
    hash,
    parentHash,
    number: quantity(height),
    timestamp: quantity(1_800_000_000 + height),
    baseFeePerGas: quantity(2_000_000_000),
    gasLimit: quantity(45_000_000),
    gasUsed: quantity(30_000_000),
    miner: chance.hex(20),
    logsBloom: chance.hex(256),
    stateRoot: chance.hex(32),
    transactionsRoot: chance.hex(32),
    receiptsRoot: chance.hex(32),
    extraData: chance.hex(20),
    size: quantity(150_000),
  }
}

function fullTx(chance: Chance, { hash, root }: Tx, index: number, at: object) {
  return {
    ...at,
    hash,
    transactionIndex: quantity(index),
    type: '0x2',
    chainId: '0x1',
    nonce: quantity(chance.below(100_000)),
    from: root.from,
    to: root.to,
    value: quantity(root.value),
    input: root.input,
    gas: quantity(300_000),
    gasPrice: quantity(3_000_000_000),
    maxFeePerGas: quantity(5_000_000_000),
    maxPriorityFeePerGas: quantity(1_000_000_000),
    accessList: [],
    v: '0x0',
    r: chance.hex(32),
    s: chance.hex(32),
    yParity: '0x0',
  }
}

function parityFrames(tx: Tx, index: number, one: Frame, path: readonly number[], place: Place): object[] {
  const { from, to, value, callType, input, output, calls } = one
  return [
    {
      action: { from, to, callType, gas: '0x4c4b40', input, value: quantity(value) },
      blockHash: place.hash,
      blockNumber: place.height,
      result: { gasUsed: '0x5208', output },
      subtraces: calls.length,
      traceAddress: path,
      transactionHash: tx.hash,
      transactionPosition: index,
      type: 'call',
    },
    ...calls.flatMap((call, ordinal) => parityFrames(tx, index, call, [...path, ordinal], place)),
  ]
}

function callFrame({ from, to, value, callType, input, output, calls }: Frame): object {
  return {
    from,
    gas: '0x4c4b40',
    gasUsed: '0x5208',
    to,
    input,
    output,
    ...(calls.length > 0 && { calls: calls.map(callFrame) }),
    ...(callType !== 'staticcall' && { value: quantity(value) }),
    type: callType.toUpperCase(),
  }
}
