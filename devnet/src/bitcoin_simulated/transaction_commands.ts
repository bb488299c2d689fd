import { CutLine } from '../simulated/server.ts'
import { btc, satsOf } from './amounts.ts'
import { type Answer, blockTransactions, confirmations, transactionJson } from './answers.ts'
import { blockOf } from './chain_commands.ts'
import { inputOf } from './fund.ts'
import type { Entry } from './mempool.ts'
import { type BitcoinNode, type Command, hashIn, listIn, type Params, textIn } from './node.ts'
import { codes, NodeError } from './node_error.ts'
import { INCREMENTAL_SATS, MIN_RELAY_SATS } from './policy.ts'
import type { BitcoinBlock, Spent } from './rules.ts'
import { isUnspendable, scriptOfAddress } from './scripts.ts'
import {
  type BitcoinTx,
  type Decoded,
  decodedOf,
  decodeTransaction,
  encodeTransaction,
  type Output,
} from './transaction.ts'

/** What a node does with transactions, without a wallet. */
export const transactionCommands: Readonly<Record<string, Command>> = {
  getrawtransaction: getRawTransaction,
  sendrawtransaction: sendRawTransaction,
  testmempoolaccept: (node, params) =>
    listIn(params, 0, 'rawtxs').map((hex) => testAccept(node, String(hex))),
  decoderawtransaction: (_node, params) =>
    transactionJson(decode(textIn(params, 0, 'hexstring'), 'TX decode failed')),
  createrawtransaction: (_node, params) => {
    const inputs = listIn(params, 0, 'inputs').map((given) => {
      const { txid, vout, sequence } = given as { txid: string; vout: number; sequence?: number }
      hashIn([txid], 0, 'txid')
      return { ...inputOf({ txid, vout }), ...(sequence !== undefined && { sequence }) }
    })
    const lockTime = Number(params[2] ?? 0)
    return encodeTransaction({ version: 2, lockTime, inputs, outputs: outputsIn(params) })
  },
  getrawmempool: (node, params) => {
    const all = [...node.pool.entries.values()]
    if (params[0] !== true) return all.map(({ tx }) => tx.id)
    return Object.fromEntries(all.map((entry) => [entry.tx.id, entryJson(node, entry)]))
  },
  getmempoolentry: (node, params) => {
    const entry = node.pool.entries.get(hashIn(params, 0, 'txid'))
    if (entry === undefined) throw new NodeError(codes.notFound, 'Transaction not in mempool')
    return entryJson(node, entry)
  },
  getmempoolinfo: (node) => {
    const all = [...node.pool.entries.values()]
    const bytes = vsizeOf(all)
    return {
      loaded: true,
      size: all.length,
      bytes,
      usage: bytes * 5,
      total_fee: btc(feesOf(all)),
      maxmempool: 50_000_000,
      mempoolminfee: btc(MIN_RELAY_SATS),
      minrelaytxfee: btc(MIN_RELAY_SATS),
      incrementalrelayfee: btc(INCREMENTAL_SATS),
      unbroadcastcount: 0,
      fullrbf: true,
    }
  },
  prioritisetransaction: (node, params) => {
    const txid = hashIn(params, 0, 'txid')
    const { priorities } = node.pool
    priorities.set(txid, (priorities.get(txid) ?? 0n) + BigInt(Number(params[2] ?? 0)))
    return true
  },
}

export function decode(hex: string, otherwise: string): Decoded {
  try {
    return decodeTransaction(hex)
  } catch {
    throw new NodeError(codes.malformed, otherwise)
  }
}

const UNDECODABLE = 'TX decode failed. Make sure the tx has at least one input.'
/** `-maxfeerate`: satoshi for 1000 vbytes. */
const MAX_FEE_RATE_SATS = 10_000_000n

function sendRawTransaction(node: BitcoinNode, params: Params): string {
  const hex = textIn(params, 0, 'hexstring').toLowerCase()
  const decoded = decode(hex, UNDECODABLE)
  const trouble = node.troubles.takeSubmit()
  if (trouble === 'lose request') throw new CutLine()
  if (typeof trouble === 'object') throw failure(trouble.failWith)
  const tx: BitcoinTx = { id: decoded.txid, hex, timeMs: Date.now() }
  submit(node, tx, params, trouble !== 'drop')
  if (trouble === 'lose reply') throw new CutLine()
  return tx.id
}

/** A reason with bitcoind's code for it, or the code itself. */
function failure(failWith: string): NodeError {
  if (/^-\d+$/.test(failWith)) {
    const isWarmup = Number(failWith) === codes.warmup
    return new NodeError(Number(failWith), isWarmup ? 'Loading block index…' : 'Internal error')
  }
  const isMissing = failWith.startsWith('bad-txns-inputs-missingorspent')
  return new NodeError(isMissing ? codes.transaction : codes.rejected, failWith)
}

export function submit(
  { pool, chain }: BitcoinNode,
  tx: BitcoinTx,
  params: Params = [],
  isKept = true,
): void {
  const decoded = decodedOf(tx)
  const burnt = decoded.outputs.some(({ sats, script }) => sats > 0n && isUnspendable(script))
  if (burnt && satsOf(params[2] ?? 0) === 0n)
    throw new NodeError(
      codes.transaction,
      'Unspendable output exceeds maximum configured by user (maxburnamount)',
    )
  const { state } = chain.view()
  if (decoded.outputs.some((_, vout) => state.get(`coin:${tx.id}:${vout}`) !== undefined))
    throw new NodeError(codes.alreadyMined, 'Transaction outputs already in utxo set')
  if (pool.entries.has(tx.id)) return
  const { spent } = pool.check(tx)
  const highest = satsOf(params[1] ?? '0.10') ?? MAX_FEE_RATE_SATS
  if (highest > 0n && spent.feeSats > (highest * BigInt(decoded.vsize)) / 1000n)
    throw new NodeError(
      codes.transaction,
      'Fee exceeds maximum configured by user (e.g. -maxtxfee, maxfeerate)',
    )
  if (isKept) pool.add(tx)
}

function testAccept({ pool }: BitcoinNode, hex: string): Answer {
  const decoded = decode(hex, `TX decode failed: ${hex} Make sure the tx has at least one input.`)
  const { txid, wtxid, vsize } = decoded
  try {
    const { spent } = pool.check({ id: txid, hex, timeMs: 0 })
    return { txid, wtxid, allowed: true, vsize, fees: { base: btc(spent.feeSats) } }
  } catch (error) {
    if (!(error instanceof NodeError)) throw error
    const isMissing = error.message === 'bad-txns-inputs-missingorspent'
    const reason = isMissing ? 'missing-inputs' : error.message.replace(/, .*$/s, '')
    return { txid, wtxid, allowed: false, 'reject-reason': reason }
  }
}

type Found = {
  readonly decoded: Decoded
  readonly hex: string
  readonly spent?: Spent
  readonly block?: BitcoinBlock
}

/** Where a transaction is: waiting, mined, or last in a block that lost, which the index remembers. */
export function find(node: BitcoinNode, txid: string): Found | undefined {
  const waiting = node.pool.entries.get(txid)
  if (waiting !== undefined) return { decoded: waiting.decoded, hex: waiting.tx.hex, spent: waiting.spent }
  const mined = node.told().find(txid)
  if (mined !== undefined)
    return { decoded: decodedOf(mined.tx), hex: mined.tx.hex, spent: mined.result, block: mined.block }
  const lost = node.chain.lost.find(txid)
  return lost && inBlock(lost, txid)
}

function inBlock(block: BitcoinBlock, txid: string): Found | undefined {
  const at = blockTransactions(block).findIndex((tx) => tx.txid === txid)
  if (at === 0) return { decoded: decodedOf(block.seal.coinbase), hex: block.seal.coinbase.hex, block }
  const item = block.included[at - 1]
  return item && { decoded: decodedOf(item.tx), hex: item.tx.hex, spent: item.result, block }
}

/** A coinbase stands in no queue and is not looked for: its block has to be named, or be near. */
function findCoinbase(node: BitcoinNode, txid: string): Found | undefined {
  const view = node.told()
  for (let height = view.head.height; height > 0; height--) {
    const block = view.block(height)
    if (block?.seal.coinbase.id === txid) return inBlock(block, txid)
  }
  return undefined
}

function getRawTransaction(node: BitcoinNode, params: Params): unknown {
  const txid = hashIn(params, 0, 'parameter 1')
  const verbosity = Number(params[1] ?? 0)
  const named = typeof params[2] === 'string' ? blockOf(node, hashIn(params, 2, 'parameter 3')) : undefined
  const found = named ? inBlock(named, txid) : (find(node, txid) ?? findCoinbase(node, txid))
  if (found === undefined) {
    const where = named
      ? 'No such transaction found in the provided block'
      : 'No such mempool or blockchain transaction'
    throw new NodeError(codes.notFound, `${where}. Use gettransaction for wallet transactions.`)
  }
  if (verbosity === 0) return found.hex
  const { block, spent } = found
  const depth = block && confirmations(node.told(), block)
  // Of a transaction that waits, and of one in a block that lost, a node does not say what it spent.
  const isTold = verbosity > 1 && depth !== undefined && depth > 0
  const time = block?.seal.times.at(-1)
  return {
    ...(named && { in_active_chain: (depth ?? 0) > 0 }),
    ...transactionJson(found.decoded, isTold ? spent : undefined),
    hex: found.hex,
    ...(block && { blockhash: block.seal.hash, confirmations: Math.max(0, depth ?? 0) }),
    ...(depth !== undefined && depth > 0 && { time, blocktime: time }),
  }
}

/** `[{address: amount}, {data: hex}]`, or all of it in one object. */
function outputsIn(params: Params): Output[] {
  const given = params[1]
  const pairs = (Array.isArray(given) ? given : [given]).flatMap((item) => Object.entries(item ?? {}))
  const seen = new Set<string>()
  return pairs.map(([name, value]) => {
    if (name === 'data') {
      const data = Buffer.from(String(value), 'hex')
      const push = data.length < 0x4c ? [data.length] : [0x4c, data.length]
      return { sats: 0n, script: Buffer.from([0x6a, ...push, ...data]) }
    }
    const script = scriptOfAddress(name)
    if (script === undefined) throw new NodeError(codes.notFound, `Invalid Bitcoin address: ${name}`)
    if (seen.has(name)) throw new NodeError(codes.parameter, `Invalid parameter, duplicated address: ${name}`)
    seen.add(name)
    const sats = satsOf(value)
    if (sats === undefined) throw new NodeError(codes.type, 'Invalid amount')
    return { sats, script }
  })
}

function entryJson(node: BitcoinNode, { tx, decoded, spent }: Entry): Answer {
  const { pool } = node
  const ancestors = pool.ancestors(tx.id)
  const descendants = pool.descendants(tx.id)
  const self = { tx, decoded, spent }
  return {
    vsize: decoded.vsize,
    weight: decoded.weight,
    time: Math.floor(tx.timeMs / 1000),
    height: node.chain.head.height,
    descendantcount: descendants.length + 1,
    descendantsize: vsizeOf([self, ...descendants]),
    ancestorcount: ancestors.length + 1,
    ancestorsize: vsizeOf([self, ...ancestors]),
    wtxid: decoded.wtxid,
    fees: {
      base: btc(spent.feeSats),
      modified: btc(spent.feeSats + (pool.priorities.get(tx.id) ?? 0n)),
      ancestor: btc(feesOf([self, ...ancestors])),
      descendant: btc(feesOf([self, ...descendants])),
    },
    depends: [...new Set(decoded.inputs.map(({ txid }) => txid))].filter((txid) => pool.entries.has(txid)),
    spentby: decoded.outputs.flatMap((_, vout) => pool.spenderOf(tx.id, vout) ?? []),
    'bip125-replaceable': true,
    unbroadcast: false,
  }
}

function vsizeOf(entries: readonly Entry[]): number {
  return entries.reduce((sum, { decoded }) => sum + decoded.vsize, 0)
}

function feesOf(entries: readonly Entry[]): bigint {
  return entries.reduce((sum, { spent }) => sum + spent.feeSats, 0n)
}
