import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { SimulatedBitcoin } from '../bitcoin_simulated/open_simulated_bitcoin.ts'
import { type BitcoinNetwork, openBitcoinNetwork } from './bitcoin_network.ts'
import { findBitcoind } from './find_bitcoind.ts'
import { startBitcoind } from './start_bitcoind.ts'

/** `why` there is no bitcoind behind it. */
export type BitcoinInfo =
  | { readonly rpcUrl: string; readonly backing: 'bitcoind'; readonly binary: string }
  | { readonly rpcUrl: string; readonly backing: 'simulated'; readonly why: string }

export type ChosenBitcoin =
  | { readonly network: BitcoinNetwork; readonly info: BitcoinInfo & { readonly backing: 'bitcoind' } }
  | { readonly network: SimulatedBitcoin; readonly info: BitcoinInfo & { readonly backing: 'simulated' } }

/**
 * A bitcoind when there is one, a simulated node otherwise. A folder goes on with what it began with: another chain
 * would take back all that was paid on the first.
 */
export async function chooseBitcoin(
  dataDir: string,
  { wanted, log }: { readonly wanted?: 'simulated'; readonly log: (line: string) => void },
): Promise<ChosenBitcoin | { readonly missing: string }> {
  const [real, simulated] = [bitcoindFolder(dataDir), join(dataDir, 'bitcoin-simulated')]
  if (wanted === 'simulated') return simulate(simulated, 'it was asked for')
  if (existsSync(simulated) && !existsSync(real)) return simulate(simulated, 'it began as a simulation')
  const found = await findBitcoind(log)
  if (found.ok) {
    const node = await startBitcoind({ dataDir: real, command: found.command })
    try {
      const network = await openBitcoinNetwork(node)
      const binary = found.command.at(-1) ?? ''
      return { network, info: { rpcUrl: network.rpcUrl, backing: 'bitcoind', binary } }
    } catch (error) {
      await node.stop()
      throw error
    }
  }
  if (existsSync(real)) return { missing: `${found.why}; its chain is a bitcoind's` }
  return simulate(simulated, found.why)
}

export function bitcoindFolder(dataDir: string): string {
  return join(dataDir, 'bitcoin')
}

async function simulate(folder: string, why: string): Promise<ChosenBitcoin> {
  // Not needed, and so not loaded, where there is a bitcoind.
  const { openSimulatedBitcoin } = await import('../bitcoin_simulated/open_simulated_bitcoin.ts')
  const network = await openSimulatedBitcoin(folder)
  return { network, info: { rpcUrl: network.rpcUrl, backing: 'simulated', why } }
}
