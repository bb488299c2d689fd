import type { SimulatedChain } from '../simulated/chain.ts'
import { feeRate, shortly } from './amounts.ts'
import { type Coin, coinKey } from './coins.ts'
import { codes, NodeError } from './node_error.ts'
import {
  formProblem,
  INCREMENTAL_SATS,
  isFinal,
  isPastItsLocks,
  MIN_RELAY_SATS,
  type NextBlock,
  standardProblem,
} from './policy.ts'
import { type Bitcoin, inputsProblem, medianTime, type Spent, scriptsProblem, spentBy } from './rules.ts'
import { type BitcoinTx, type Decoded, decodedOf, toHex } from './transaction.ts'

export type Entry = {
  readonly tx: BitcoinTx
  readonly decoded: Decoded
  readonly spent: Spent
}

/** What waits, and whether something may join it: validation.cpp `MemPoolAccept`, with every transaction replaceable. */
export type Mempool = {
  readonly entries: ReadonlyMap<string, Entry>
  /** Spendable by the next transaction, of a block or of one that waits. */
  coin(txid: string, vout: number): Coin | undefined
  spenderOf(txid: string, vout: number): string | undefined
  /** Without itself. */
  ancestors(id: string): Entry[]
  descendants(id: string): Entry[]
  /** Throws what bitcoind answers; answers what it replaces. */
  check(tx: BitcoinTx): { readonly spent: Spent; readonly replaced: readonly Entry[] }
  add(tx: BitcoinTx): void
  /** Takes out what can no longer be mined, or not yet, or was mined by somebody else's choice and is not relayed. */
  prune(): void
  /** Satoshi that a transaction counts for more or less when blocks are filled. */
  readonly priorities: Map<string, bigint>
}

type Index = {
  readonly entries: Map<string, Entry>
  readonly spenders: Map<string, string>
}

const RELATIVES_MAX = 25
const REPLACED_MAX = 100

export function openMempool(chain: SimulatedChain<Bitcoin>): Mempool {
  let index: Index | undefined
  const now = () => {
    index ??= buildIndex(chain)
    return index
  }
  chain.onBlock(() => {
    index = undefined
  })
  const pool: Mempool = {
    priorities: new Map(),
    get entries() {
      return now().entries
    },
    coin: (txid, vout) => coinIn(chain, now(), txid, vout),
    spenderOf: (txid, vout) => now().spenders.get(coinKey(txid, vout)),
    ancestors: (id) => walk(now(), id, ({ decoded }) => decoded.inputs.map(({ txid }) => txid)),
    descendants: (id) => walk(now(), id, (entry) => childrenOf(now(), entry)),
    check: (tx) => check(pool, chain, tx),
    add: (tx) => {
      const { spent, replaced } = check(pool, chain, tx)
      for (const { decoded } of replaced) chain.withdraw(decoded.txid)
      if (replaced.length > 0) index = undefined
      const { entries, spenders } = now()
      chain.submit(tx)
      enter({ entries, spenders }, { tx, decoded: decodedOf(tx), spent })
    },
    prune: () => {
      index = undefined
      const { entries } = now()
      for (const { id } of chain.waiting) {
        const entry = entries.get(id)
        const isShort = pool.ancestors(id).length < RELATIVES_MAX
        if (isShort && entry !== undefined && stillBelongs(chain, entry)) continue
        for (const { tx } of entry === undefined ? [] : pool.descendants(id)) chain.withdraw(tx.id)
        chain.withdraw(id)
      }
      index = undefined
    },
  }
  return pool
}

/** Whoever waits, in an order in which parents come first; who is not in it can never be mined. */
function buildIndex(chain: SimulatedChain<Bitcoin>): Index {
  const index: Index = { entries: new Map(), spenders: new Map() }
  const height = chain.head.height + 1
  let left = chain.waiting
  for (let before = -1; before !== index.entries.size; ) {
    before = index.entries.size
    left = left.filter((tx) => {
      const decoded = decodedOf(tx)
      const get = (key: string) => coinByKey(chain, index, key)
      const spent = spentBy(decoded, { get })
      const isTaken = decoded.inputs.some(({ txid, vout }) => index.spenders.has(coinKey(txid, vout)))
      if (spent === undefined || isTaken || inputsProblem(decoded, spent, height) !== undefined) return true
      enter(index, { tx, decoded, spent })
      return false
    })
  }
  return index
}

function enter({ entries, spenders }: Index, entry: Entry): void {
  entries.set(entry.tx.id, entry)
  for (const { txid, vout } of entry.decoded.inputs) spenders.set(coinKey(txid, vout), entry.tx.id)
}

function coinByKey(
  chain: SimulatedChain<Bitcoin>,
  index: Pick<Mempool, 'entries'>,
  key: string,
): Coin | undefined {
  const [, txid = '', vout] = key.split(':')
  return coinIn(chain, index, txid, Number(vout))
}

function coinIn(
  chain: SimulatedChain<Bitcoin>,
  { entries }: Pick<Mempool, 'entries'>,
  txid: string,
  vout: number,
): Coin | undefined {
  const output = entries.get(txid)?.decoded.outputs[vout]
  if (output === undefined) return chain.view().state.get(coinKey(txid, vout))
  const height = chain.head.height + 1
  return { sats: output.sats, script: toHex(output.script), height, isCoinbase: false }
}

function childrenOf({ spenders }: Index, { decoded }: Entry): string[] {
  return decoded.outputs.flatMap((_, vout) => spenders.get(coinKey(decoded.txid, vout)) ?? [])
}

function walk({ entries }: Index, id: string, next: (entry: Entry) => readonly string[]): Entry[] {
  const found = new Map<string, Entry>()
  const start = entries.get(id)
  const queue = start === undefined ? [] : [...next(start)]
  for (let at = queue.pop(); at !== undefined; at = queue.pop()) {
    const entry = entries.get(at)
    if (entry === undefined || found.has(at)) continue
    found.set(at, entry)
    queue.push(...next(entry))
  }
  return [...found.values()]
}

function rejected(reason: string): NodeError {
  return new NodeError(codes.rejected, reason)
}

function throwAny(reason: string | undefined): void {
  if (reason !== undefined) throw rejected(reason)
}

/** What the chain takes back may be too early for the blocks below: `removeForReorg` in txmempool.cpp. */
function stillBelongs(chain: SimulatedChain<Bitcoin>, { decoded, spent }: Entry): boolean {
  const heights = spent.coins.map(({ height }) => height)
  const next = nextBlock(chain)
  const isDue = isFinal(decoded, next) && isPastItsLocks(decoded, heights, next)
  return isDue && standardProblem(decoded) === undefined
}

function nextBlock({ head }: SimulatedChain<Bitcoin>): NextBlock {
  return { height: head.height + 1, medianTime: medianTime(head.seal.times) }
}

function check(pool: Mempool, chain: SimulatedChain<Bitcoin>, tx: BitcoinTx) {
  const decoded = decodedOf(tx)
  throwAny(formProblem(decoded) ?? standardProblem(decoded))
  const next = nextBlock(chain)
  if (!isFinal(decoded, next)) throw rejected('non-final')
  if (pool.entries.has(tx.id)) throw rejected('txn-already-in-mempool')
  const spent = spentBy(decoded, { get: (key) => coinByKey(chain, pool, key) })
  if (spent === undefined) throw new NodeError(codes.transaction, 'bad-txns-inputs-missingorspent')
  const heights = spent.coins.map(({ height }) => height)
  if (!isPastItsLocks(decoded, heights, next)) throw rejected('non-BIP68-final')
  throwAny(inputsProblem(decoded, spent, next.height))
  const needed = priceOf(MIN_RELAY_SATS, decoded.vsize)
  if (spent.feeSats < needed) throw rejected(`min relay fee not met, ${spent.feeSats} < ${needed}`)
  const conflicts = conflictsOf(pool, decoded)
  checkFamily(pool, decoded, conflicts)
  const replaced = conflicts.length === 0 ? [] : checkReplacement(pool, decoded, spent, conflicts)
  const problem = scriptsProblem(tx, spent)
  if (problem !== undefined) throw rejected(`mempool-script-verify-flag-failed (${problem}`)
  return { spent, replaced }
}

function priceOf(satsPerKvB: bigint, vsize: number): bigint {
  return (satsPerKvB * BigInt(vsize) + 999n) / 1000n
}

function conflictsOf(pool: Mempool, { inputs }: Decoded): Entry[] {
  const ids = new Set(inputs.map(({ txid, vout }) => pool.spenderOf(txid, vout)))
  return [...ids].flatMap((id) => (id === undefined ? [] : (pool.entries.get(id) ?? [])))
}

/** How many unconfirmed transactions may hang together: `CalculateMemPoolAncestors` in txmempool.cpp. */
function checkFamily(pool: Mempool, { inputs, wtxid, txid }: Decoded, conflicts: readonly Entry[]): void {
  const parents = inputs.flatMap((input) => pool.entries.get(input.txid) ?? [])
  const ancestors = new Set([...parents, ...parents.flatMap(({ tx }) => pool.ancestors(tx.id))])
  const own = conflicts.find((conflict) => ancestors.has(conflict))
  if (own !== undefined)
    throw rejected(`bad-txns-spends-conflicting-tx, ${wtxid} spends conflicting transaction ${own.tx.id}`)
  const tooLong = 'too-long-mempool-chain, '
  if (ancestors.size + 1 > RELATIVES_MAX)
    throw rejected(`${tooLong}too many unconfirmed ancestors [limit: ${RELATIVES_MAX}]`)
  for (const { tx } of ancestors) {
    const family = pool
      .descendants(tx.id)
      .filter((entry) => !conflicts.includes(entry) && entry.tx.id !== txid)
    if (family.length + 2 > RELATIVES_MAX)
      throw rejected(`${tooLong}too many descendants for tx ${tx.id} [limit: ${RELATIVES_MAX}]`)
  }
}

/** https://github.com/bitcoin/bitcoin/blob/master/doc/policy/mempool-replacements.md; without rule 1: all may be replaced. */
function checkReplacement(
  pool: Mempool,
  { vsize, wtxid, inputs }: Decoded,
  { feeSats }: Spent,
  conflicts: readonly Entry[],
): Entry[] {
  const refuse = (why: string) => rejected(`insufficient fee, rejecting replacement ${wtxid}${why}`)
  for (const { spent, decoded } of conflicts) {
    if (feeSats * BigInt(decoded.vsize) <= spent.feeSats * BigInt(vsize))
      throw refuse(
        `; new feerate ${feeRate(feeSats, vsize)} <= old feerate ${feeRate(spent.feeSats, decoded.vsize)}`,
      )
  }
  const replaced = [...new Set([...conflicts, ...conflicts.flatMap(({ tx }) => pool.descendants(tx.id))])]
  if (replaced.length > REPLACED_MAX) {
    const why = `too many potential replacements (${replaced.length} > ${REPLACED_MAX})`
    throw rejected(`too many potential replacements, rejecting replacement ${wtxid}; ${why}`)
  }
  const known = new Set(conflicts.flatMap(({ decoded }) => decoded.inputs.map(({ txid }) => txid)))
  const fresh = inputs.findIndex(({ txid }) => pool.entries.has(txid) && !known.has(txid))
  if (fresh !== -1)
    throw rejected(`replacement-adds-unconfirmed, replacement ${wtxid} adds unconfirmed input, idx ${fresh}`)
  const before = replaced.reduce((sum, { spent }) => sum + spent.feeSats, 0n)
  if (feeSats < before)
    throw refuse(`, less fees than conflicting txs; ${shortly(feeSats)} < ${shortly(before)}`)
  const extra = priceOf(INCREMENTAL_SATS, vsize)
  if (feeSats - before < extra)
    throw refuse(`, not enough additional fees to relay; ${shortly(feeSats - before)} < ${shortly(extra)}`)
  return replaced
}
