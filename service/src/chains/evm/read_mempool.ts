import type { AssetId } from '../../domain/catalog/assets.ts'
import { fromChainUnits } from '../../domain/money/amount.ts'
import type { FindOurs, Transfer } from '../chain.ts'
import { checksummed, count, decodeTx, type EvmTx, fields, hash, list } from './decode.ts'
import { type Call, isLimit, isMethodMissing, type JsonRpc, NodeNonsense, NodeRefusal } from './json_rpc.ts'
import { transferCall } from './token_moves.ts'

export type MempoolSource = {
  readonly rpc: JsonRpc
  readonly native: AssetId
  /** Listed assets by their contract in lowercase. */
  readonly listed: ReadonlyMap<string, AssetId>
}

/** So that a node that was left alone for long does not drown one look. */
const LOOK_TXS_MAX = 2_000

/** After so many a filter that was not offered is asked for again: by now another node may stand there. */
const LOOKS_WITHOUT_FILTER = 100

/**
 * Looks at what the node would mine next, and at whatever reached it since the last look. Nodes and providers
 * offer one, the other or both: what is refused is done without, and so for now is a filter or a fetch that is limited. Only a node that
 * does not answer rejects.
 */
export function mempoolReader(
  source: MempoolSource,
): (findOurs: FindOurs, again?: ReadonlySet<string>) => Promise<readonly Transfer[]> {
  /** Of what the node would mine next. What leaves that, and comes again, is told again. */
  let told: ReadonlySet<string> = new Set()
  const newHashes = pendingFilter(source.rpc)
  /**
   * The filter tells each once: what a failed look was told is for the next one, and what the node then did not know, or did not say.
   * No longer, because it may be why.
   */
  let unread: readonly string[] = []
  const promised = (txs: readonly EvmTx[]) => txs.flatMap((tx) => promisedBy(source, tx))

  return async (findOurs, again = new Set()) => {
    const fresh = await newHashes()
    const hashes = [...new Set([...unread, ...fresh, ...again])]
    unread = fresh
    const txs = await pendingBlockTxs(source.rpc)
    const next = promised(txs)
    const nextHashes = new Set(txs.map((tx) => tx.hash))
    const others = hashes.filter((txHash) => !nextHashes.has(txHash)).slice(-LOOK_TXS_MAX)
    const fetched = await fetchPending(source.rpc, others)
    const transfers = [
      ...next.filter(({ id, txHash }) => !told.has(id) || again.has(txHash)),
      ...promised(fetched.txs),
    ]
    const recipients = [...new Set(transfers.map(({ to }) => to))]
    const ours = recipients.length === 0 ? new Set<string>() : await findOurs(recipients)
    unread = [...fresh, ...again].filter((txHash) => fetched.unknown.has(txHash))
    const hits = transfers.filter(({ to }) => ours.has(to))
    const known = new Set([...told, ...hits.map(({ id }) => id)])
    told = new Set(next.map(({ id }) => id).filter((id) => known.has(id)))
    return hits
  }
}

/** What the transaction would pay if it succeeds: its own value, or a listed token's plain `transfer`. */
function promisedBy({ native, listed }: MempoolSource, tx: EvmTx): Transfer[] {
  if (tx.to === null || tx.to === tx.from) return []
  const txHash = tx.hash
  const coins =
    tx.wei === 0n
      ? []
      : [
          {
            id: `${txHash}:call:0`,
            txHash,
            to: checksummed(tx.to),
            asset: native,
            units: fromChainUnits(native, tx.wei).units,
          },
        ]
  const asset = listed.get(tx.to)
  const call = asset === undefined ? null : transferCall(tx.input)
  if (asset === undefined || call === null || call.units === 0n || call.to === tx.from) return coins
  // The listed tokens emit one event in a plain transfer, so the block will name it the same.
  const { units } = fromChainUnits(asset, call.units)
  return [...coins, { id: `${txHash}:log:0`, txHash, to: checksummed(call.to), asset, units }]
}

/** Hashes that reached the node since the last time; the first time there are none. */
function pendingFilter(rpc: JsonRpc): () => Promise<readonly string[]> {
  let filterId: unknown = null
  let restingLooks = 0
  return async () => {
    if (restingLooks > 0) {
      restingLooks -= 1
      return []
    }
    try {
      if (filterId === null) {
        filterId = await rpc.call('eth_newPendingTransactionFilter', [])
        return []
      }
      const changes = list(await rpc.call('eth_getFilterChanges', [filterId]), 'filter changes')
      return changes.map((change) => hash(change, 'filter changes'))
    } catch (error) {
      // Asked again later, the filter tells what has come meanwhile as well.
      if (isLimit(error)) return []
      if (!(error instanceof NodeRefusal || error instanceof NodeNonsense)) throw error
      // Nodes forget filters, and a provider may send us to another node: a new one is made at the next look. So it is where no hashes
      // are told: after a node has started anew, the id may be that of somebody else's filter.
      filterId = null
      if (isMethodMissing(error)) restingLooks = LOOKS_WITHOUT_FILTER
      return []
    }
  }
}

async function pendingBlockTxs(rpc: JsonRpc): Promise<readonly EvmTx[]> {
  const [latest, pending] = await rpc.settle([
    { method: 'eth_blockNumber', params: [] },
    { method: 'eth_getBlockByNumber', params: ['pending', true] },
  ])
  if (!latest?.ok || !pending?.ok || pending.value === null) return []
  const block = fields(pending.value, 'pending block')
  // A node that builds no pending block answers with the latest, whose transactions are not pending any more; one that
  // is not made yet may have no number.
  const isMade =
    block.number !== null &&
    count(block.number, 'pending block.number') <= count(latest.value, 'block number')
  if (isMade) return []
  return list(block.transactions, 'pending block.transactions').map(decodeTx)
}

type Fetched = {
  /** Those that wait. */
  readonly txs: readonly EvmTx[]
  /** Of several nodes behind one address, one may have heard of what another has not. */
  readonly unknown: ReadonlySet<string>
}

async function fetchPending(rpc: JsonRpc, hashes: readonly string[]): Promise<Fetched> {
  const answers = await unlessLimited(
    rpc,
    hashes.map((txHash) => ({ method: 'eth_getTransactionByHash', params: [txHash] })),
  )
  const known = hashes.map((_, at) => {
    const answer = answers[at]
    return answer?.ok && answer.value !== null ? decodeTx(answer.value) : null
  })
  return {
    txs: known.flatMap((tx) => (tx !== null && tx.blockHash === null ? [tx] : [])),
    unknown: new Set(hashes.filter((_, at) => known[at] === null)),
  }
}

/** No answers where that is too much for the node: what waits is a hint, and a block will tell of it. */
async function unlessLimited(
  rpc: JsonRpc,
  calls: readonly Call[],
): Promise<Awaited<ReturnType<JsonRpc['settle']>>> {
  try {
    return await rpc.settle(calls)
  } catch (error) {
    if (isLimit(error)) return []
    throw error
  }
}
