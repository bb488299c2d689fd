import { amountOf } from '../../domain/money/amount.ts'
import type { Outcome } from '../../domain/outcome.ts'
import type { TxStatus } from '../chain.ts'
import { integerIn, objectIn, satoshiIn, textIn } from './replies.ts'
import { NoAnswer, type Rpc, type RpcRefusal } from './rpc.ts'
import { BITCOIN } from './settings.ts'

/** Said only when both the mempool and a complete index were searched (rpc/rawtransaction.cpp). */
const ABSENT = /^No such mempool or blockchain transaction\./
const ATTEMPTS_MAX = 5

/**
 * Where a transaction is now. A block that arrives during the search could hide it between mempool and index, so
 * an answer counts only when the best block was the same before and after. A node that has just started still reads in the
 * mempool that it had (`loaded`, which stays true once it is): what it does not know until then may wait all the same.
 */
export async function lookup(rpc: Rpc, txHash: string): Promise<TxStatus> {
  for (let attempt = 1; attempt <= ATTEMPTS_MAX; attempt += 1) {
    const [before, pool, found, after] = await rpc.batch([
      ['getbestblockhash'],
      ['getmempoolinfo'],
      ['getrawtransaction', txHash, 2],
      ['getbestblockhash'],
    ])
    if (found === undefined || !before?.ok || !after?.ok) throw new NoAnswer('getbestblockhash', 'no hash')
    if (before.value !== after.value) continue
    const status = await readStatus(rpc, found)
    if (status === 'moving') continue
    if (status.where === 'absent') requireLoaded(pool)
    return status
  }
  throw new NoAnswer('getrawtransaction', `the best block changed ${ATTEMPTS_MAX} times`)
}

function requireLoaded(pool: Outcome<unknown, RpcRefusal> | undefined): void {
  if (pool === undefined) throw new NoAnswer('getmempoolinfo', 'no reply')
  if (!pool.ok) throw pool.rejection
  if (objectIn(pool.value, 'getmempoolinfo').loaded === false)
    throw new NoAnswer('getrawtransaction', 'the mempool is still being loaded')
}

async function readStatus(rpc: Rpc, found: Outcome<unknown, RpcRefusal>): Promise<TxStatus | 'moving'> {
  const known = readKnown(found)
  // What the index remembers of blocks that lost in a reorg, and is not in the mempool, is nowhere.
  if (known === null || known.where === 'lost') return { where: 'absent' }
  if (known.where === 'mempool') return { where: 'mempool' }
  const { tx } = known

  const hash = textIn(tx.blockhash, 'blockhash')
  const header = objectIn(await rpc.call('getblockheader', hash), 'getblockheader')
  if (integerIn(header.confirmations, 'getblockheader confirmations') < 1) return 'moving'
  return {
    where: 'block',
    block: { height: integerIn(header.height, 'getblockheader height'), hash },
    succeeded: true,
    cost: amountOf(BITCOIN, feeOf(tx)),
  }
}

/** Inputs less outputs, which the node works out; a coinbase pays none. */
function feeOf(tx: Record<string, unknown>): bigint {
  const [input] = Array.isArray(tx.vin) ? tx.vin : []
  if (objectIn(input, 'vin').coinbase !== undefined) return 0n
  return satoshiIn(tx.fee, 'getrawtransaction fee')
}

/** `mempool`; `block`: of the best chain; `lost`: only in a block that lost, as the index remembers. */
export type Known = {
  readonly where: 'mempool' | 'block' | 'lost'
  /** As getrawtransaction tells it, with `hex` and `vin`. */
  readonly tx: Record<string, unknown>
}

/** A transaction that the node has in its mempool, or in any block that it ever saw; null: in neither, it says. */
export async function findKnown(rpc: Rpc, txHash: string): Promise<Known | null> {
  const [found] = await rpc.batch([['getrawtransaction', txHash, 1]])
  if (found === undefined) throw new NoAnswer('getrawtransaction', 'no reply')
  return readKnown(found)
}

/** Of an answer to `getrawtransaction`. Throws its refusal, where that does not say that nobody has it. */
export function readKnown(found: Outcome<unknown, RpcRefusal>): Known | null {
  if (!found.ok) {
    if (ABSENT.test(found.rejection.reason)) return null
    throw found.rejection
  }
  const tx = objectIn(found.value, 'getrawtransaction')
  if (tx.blockhash === undefined) return { where: 'mempool', tx }
  const isInBest = integerIn(tx.confirmations ?? 0, 'confirmations') > 0
  return { where: isInBest ? 'block' : 'lost', tx }
}
