import type { BitcoinNetwork } from '../../domain/catalog/networks.ts'
import type { FindOurs, Transfer } from '../chain.ts'
import { addressOfScript } from './addresses.ts'
import { BITCOIN } from './settings.ts'
import type { WireTx } from './wire.ts'

/**
 * The outputs of these transactions that pay us. What a miner pays itself is left out: it cannot be spent for 100
 * blocks and vanishes for good with its block, so no order may rest on it. Outputs of nothing are left out too.
 */
export async function transfersToOurs(
  network: BitcoinNetwork,
  txs: readonly WireTx[],
  findOurs: FindOurs,
): Promise<readonly Transfer[]> {
  const transfers: Transfer[] = []
  for (const { txid, isCoinbase, outputs } of txs) {
    if (isCoinbase) continue
    for (const [index, { satoshi, script }] of outputs.entries()) {
      const to = satoshi > 0n ? addressOfScript(network, script) : null
      if (to !== null)
        transfers.push({ id: `${txid}:${index}`, txHash: txid, to, asset: BITCOIN, units: satoshi })
    }
  }
  if (transfers.length === 0) return []
  const ours = await findOurs([...new Set(transfers.map(({ to }) => to))])
  return transfers.filter(({ to }) => ours.has(to))
}
