import type { BitcoinNetwork } from '../../domain/catalog/networks.ts'
import type { FindOurs, Waiting } from '../chain.ts'
import { textIn, textsIn } from './replies.ts'
import { NoAnswer, type Rpc, type RpcCall } from './rpc.ts'
import { transfersToOurs } from './transfers.ts'
import { parseTx, type WireTx } from './wire.ts'

/**
 * A full mempool is caught up with over several looks, so that no look takes long. That comes to an end: what was told once is not read
 * again, and between two looks far fewer come.
 */
const TXS_A_LOOK = 5_000
const TXS_A_REQUEST = 100
const GONE = -5

/** Tells each waiting transaction once, and again what is to be told again. Remembers hashes of what waits now and nothing else. */
export function watchMempool(rpc: Rpc, network: BitcoinNetwork) {
  const told = new Set<string>()

  return async (findOurs: FindOurs, again: ReadonlySet<string> = new Set()): Promise<Waiting> => {
    const waiting = textsIn(await rpc.call('getrawmempool'), 'getrawmempool')
    const waitingNow = new Set(waiting)
    for (const txid of told) if (!waitingNow.has(txid) || again.has(txid)) told.delete(txid)

    const untold = waiting.filter((txid) => !told.has(txid))
    const fresh = untold.slice(0, TXS_A_LOOK)
    const txs: WireTx[] = []
    for (let start = 0; start < fresh.length; start += TXS_A_REQUEST) {
      txs.push(...(await readWaiting(rpc, fresh.slice(start, start + TXS_A_REQUEST))))
    }
    const transfers = await transfersToOurs(network, txs, findOurs)
    for (const { txid } of txs) told.add(txid)
    return Object.assign(transfers, { isPart: untold.length > fresh.length })
  }
}

/** Those of the transactions that are still there. */
async function readWaiting(rpc: Rpc, txids: readonly string[]): Promise<readonly WireTx[]> {
  const replies = await rpc.batch(txids.map((txid): RpcCall => ['getrawtransaction', txid]))
  return replies.flatMap((reply) => {
    if (!reply.ok && reply.rejection.code === GONE) return []
    if (!reply.ok) throw reply.rejection
    try {
      return [parseTx(Buffer.from(textIn(reply.value, 'getrawtransaction'), 'hex'))]
    } catch (error) {
      throw new NoAnswer('getrawtransaction', error instanceof Error ? error.message : 'no transaction')
    }
  })
}
