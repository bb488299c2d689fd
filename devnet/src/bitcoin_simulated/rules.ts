import { sha256x2 } from '@scure/btc-signer/utils.js'
import type { Block, OpenBlock, Rules } from '../simulated/chain.ts'
import type { Draft, State } from '../simulated/state.ts'
import { shortly } from './amounts.ts'
import { addOutputs, COINBASE_MATURITY, type Coin, coinKey } from './coins.ts'
import {
  type BitcoinTx,
  type Decoded,
  decodedOf,
  decodeTransaction,
  displayHash,
  encodeTransaction,
  NULL_TXID,
  toHex,
} from './transaction.ts'
import { scriptProblem } from './verify_scripts.ts'

/** What a transaction spent, which is gone from the coins, in the order of its inputs. */
export type Spent = { readonly feeSats: bigint; readonly coins: readonly Coin[] }
export type Seal = {
  readonly hash: string
  /** 80 bytes. */
  readonly header: string
  /** The block's first transaction. */
  readonly coinbase: BitcoinTx
  /** Of the last eleven blocks, in seconds. */
  readonly times: readonly number[]
}
export type Bitcoin = { entry: Coin; tx: BitcoinTx; result: Spent; seal: Seal }
export type BitcoinBlock = Block<Bitcoin>

/** Whom the next block pays; null: nobody can ever spend it. */
export type Miner = { payee: Uint8Array | null }

/** https://github.com/bitcoin/bitcoin/blob/master/src/kernel/chainparams.cpp, regtest */
export const BITS = '207fffff'
export const TARGET = `7fffff${'0'.repeat(58)}`
const HALVING = 150
const BLOCK_VERSION = 0x2000_0000

export function bitcoinRules(miner: Miner): Rules<Bitcoin> {
  return {
    firstHeight: 0,
    blockStepMs: 0,
    afterReorg: 'transactions wait again',
    // The first block's output is spendable by nobody: it is no coin.
    genesis: () => {},
    run: (tx, state, { height }) => {
      const spent = spentBy(decodedOf(tx), state)
      // What it spends may be further behind in the queue; what can never get in is withdrawn (mempool.ts).
      if (spent === undefined) return 'waits'
      if (inputsProblem(decodedOf(tx), spent, height) !== undefined) return 'waits'
      if (scriptsProblem(tx, spent) !== undefined) return 'void'
      spend(state, decodedOf(tx), height)
      return { included: spent }
    },
    seal: (block, state, parent) =>
      parent === undefined ? genesis : seal(block, state, parent, miner.payee),
  }
}

/** undefined when a coin is missing. */
export function spentBy(tx: Decoded, state: Pick<State<Coin>, 'get'>): Spent | undefined {
  const coins = tx.inputs.map(({ txid, vout }) => state.get(coinKey(txid, vout)))
  const isWhole = (list: readonly (Coin | undefined)[]): list is readonly Coin[] => !list.includes(undefined)
  if (!isWhole(coins)) return undefined
  const sum = (items: readonly { readonly sats: bigint }[]) => items.reduce((all, { sats }) => all + sats, 0n)
  return { coins, feeSats: sum(coins) - sum(tx.outputs) }
}

/** What consensus says of the coins, for a block of that height. */
export function inputsProblem(tx: Decoded, { coins, feeSats }: Spent, height: number): string | undefined {
  for (const coin of coins) {
    const depth = height - coin.height
    if (coin.isCoinbase && depth < COINBASE_MATURITY)
      return `bad-txns-premature-spend-of-coinbase, tried to spend coinbase at depth ${depth}`
  }
  if (feeSats < 0n) {
    const out = tx.outputs.reduce((sum, { sats }) => sum + sats, 0n)
    return `bad-txns-in-belowout, value in (${shortly(out + feeSats)}) < value out (${shortly(out)})`
  }
  return undefined
}

const verified = new WeakSet<BitcoinTx>()

/** The coins of an outpoint are always the same, so what was verified once is. */
export function scriptsProblem(tx: BitcoinTx, spent: Spent): string | undefined {
  if (verified.has(tx)) return undefined
  const problem = scriptProblem(tx.hex, decodedOf(tx), spent.coins)
  if (problem === undefined) verified.add(tx)
  return problem
}

export function spend(state: Draft<Coin>, tx: Decoded, height: number): void {
  for (const { txid, vout } of tx.inputs) state.delete(coinKey(txid, vout))
  addOutputs(state, tx, height, false)
}

function seal(
  block: OpenBlock<Bitcoin>,
  state: Draft<Coin>,
  parent: BitcoinBlock,
  payee: Uint8Array | null,
): Seal {
  const txs = block.included.map(({ tx }) => decodedOf(tx))
  const fees = block.included.reduce((sum, { result }) => sum + result.feeSats, 0n)
  const subsidy = 5_000_000_000n >> BigInt(Math.floor(block.height / HALVING))
  const hex = coinbase(
    block,
    payee,
    subsidy + fees,
    merkleRoot([NULL_TXID, ...txs.map(({ wtxid }) => wtxid)]),
  )
  const first = decodeTransaction(hex)
  addOutputs(state, first, block.height, true)
  const time = Math.max(Math.floor(block.timeMs / 1000), medianTime(parent.seal.times) + 1)
  const root = merkleRoot([first.txid, ...txs.map(({ txid }) => txid)])
  const { header, hash } = prove(block.parentHash, root, time)
  const coinbaseTx = { id: first.txid, hex, timeMs: time * 1000 }
  return { hash, header, coinbase: coinbaseTx, times: [...parent.seal.times, time].slice(-11) }
}

export function medianTime(times: readonly number[]): number {
  return times.toSorted((left, right) => left - right)[Math.floor(times.length / 2)] ?? 0
}

/** https://github.com/bitcoin/bips/blob/master/bip-0141.mediawiki#commitment-structure, and BIP-34's height. */
function coinbase(
  { height, salt }: OpenBlock<Bitcoin>,
  payee: Uint8Array | null,
  sats: bigint,
  witnessRoot: string,
): string {
  const reserved = new Uint8Array(32)
  const committed = sha256x2(Buffer.concat([Buffer.from(witnessRoot, 'hex').reverse(), reserved]))
  return encodeTransaction({
    version: 2,
    lockTime: 0,
    inputs: [
      {
        txid: NULL_TXID,
        vout: 0xffff_ffff,
        scriptSig: Buffer.concat([heightPush(height), Buffer.from([8]), Buffer.from(salt, 'hex')]),
        sequence: 0xffff_ffff,
        witness: [reserved],
      },
    ],
    outputs: [
      { sats, script: payee ?? Buffer.from(`6a08${salt}`, 'hex') },
      { sats: 0n, script: Buffer.concat([Buffer.from('6a24aa21a9ed', 'hex'), committed]) },
    ],
  })
}

function heightPush(height: number): Buffer {
  if (height <= 16) return Buffer.from([0x50 + height])
  const bytes: number[] = []
  for (let left = height; left > 0; left = Math.floor(left / 256)) bytes.push(left % 256)
  // The highest bit is the sign.
  if ((bytes.at(-1) ?? 0) >= 0x80) bytes.push(0)
  return Buffer.from([bytes.length, ...bytes])
}

export function merkleRoot(hashes: readonly string[]): string {
  let level: Uint8Array[] = hashes.map((hash) => Buffer.from(hash, 'hex').reverse())
  while (level.length > 1) {
    const next: Uint8Array[] = []
    for (let at = 0; at < level.length; at += 2) {
      const left = level[at] ?? Buffer.alloc(0)
      next.push(sha256x2(Buffer.concat([left, level[at + 1] ?? left])))
    }
    level = next
  }
  return displayHash(level[0] ?? Buffer.alloc(32))
}

/** Regtest's target: every second hash is good enough. */
function prove(parentHash: string, root: string, time: number): { header: string; hash: string } {
  for (let nonce = 0; ; nonce++) {
    const header = headerBytes(BLOCK_VERSION, parentHash, root, time, nonce)
    const hash = displayHash(sha256x2(header))
    if (hash <= TARGET) return { header: toHex(header), hash }
  }
}

function headerBytes(version: number, parent: string, root: string, time: number, nonce: number): Buffer {
  const numbers = Buffer.alloc(16)
  numbers.writeUInt32LE(version, 0)
  numbers.writeUInt32LE(time, 4)
  numbers.writeUInt32LE(Number.parseInt(BITS, 16), 8)
  numbers.writeUInt32LE(nonce, 12)
  const reversed = (hash: string) => Buffer.from(hash, 'hex').reverse()
  return Buffer.concat([numbers.subarray(0, 4), reversed(parent), reversed(root), numbers.subarray(4)])
}

/** The one that every regtest has. */
const genesis: Seal = (() => {
  const time = 1_296_688_602
  const hex = [
    `01000000010${'0'.repeat(63)}ffffffff4d04ffff001d0104455468652054696d65732030332f4a616e2f32303039204368616e63656c`,
    '6c6f72206f6e206272696e6b206f66207365636f6e64206261696c6f757420666f722062616e6b73ffffffff0100f2052a0100000043',
    '4104678afdb0fe5548271967f1a67130b7105cd6a828e03909a67962e0ea1f61deb649f6bc3f4cef38c4f35504e51ec112de5c384df7',
    'ba0b8d578a4c702b6bf11d5fac00000000',
  ].join('')
  const { txid } = decodeTransaction(hex)
  const header = headerBytes(1, '0'.repeat(64), txid, time, 2)
  const hash = displayHash(sha256x2(header))
  return {
    hash,
    header: toHex(header),
    coinbase: { id: txid, hex, timeMs: time * 1000 },
    times: [time],
  }
})()
