import { assert } from '../../domain/assert.ts'
import type { AssetId } from '../../domain/catalog/assets.ts'
import { NodeBusy } from '../chain.ts'
import { listIn, objectIn, satoshiIn } from './replies.ts'
import { NoAnswer, type Rpc, RpcRefusal } from './rpc.ts'
import { BITCOIN } from './settings.ts'

/** A block reward paid to us is never a transfer (transfers.ts), so it is not held either. */
function addCoin(sum: bigint, item: unknown): bigint {
  const coin = objectIn(item, 'scantxoutset unspent')
  return coin.coinbase === true ? sum : sum + satoshiIn(coin.amount, 'scantxoutset amount')
}

/**
 * What the mined coins of these addresses add up to, read from the node's set of all coins: no wallet and no list
 * of ours is believed. Takes a minute or two on mainnet; the node does one at a time, so we queue. Another process may
 * be asking as well: NodeBusy.
 */
export function watchBalance(rpc: Rpc) {
  let last: Promise<unknown> = Promise.resolve()

  return (asset: AssetId, addresses: readonly string[]): Promise<bigint> => {
    assert(asset === BITCOIN, `the bitcoin chain holds ${asset}`)
    const scan = last.then(async () => {
      if (addresses.length === 0) return 0n
      const descriptors = addresses.map((address) => `addr(${address})`)
      const result = objectIn(await startScan(rpc, descriptors), 'scantxoutset')
      if (result.success !== true) throw new NoAnswer('scantxoutset', 'the scan was aborted')
      return listIn(result.unspents, 'scantxoutset unspents').reduce(addCoin, 0n)
    })
    last = scan.catch(() => undefined) // its own caller hears of it; the next one starts afresh
    return scan
  }
}

async function startScan(rpc: Rpc, descriptors: readonly string[]): Promise<unknown> {
  try {
    return await rpc.call('scantxoutset', 'start', descriptors)
  } catch (error) {
    // Its code, -8, is that of any parameter that is wrong.
    if (error instanceof RpcRefusal && /scan already in progress/i.test(error.reason))
      throw new NodeBusy(error.message)
    throw error
  }
}
