import { openSimulatedNetwork, type SimulatedNetwork, type Stage } from '../simulated/simulated_network.ts'
import { GENESIS_ID } from './blocks.ts'
import type { TronNode } from './command.ts'
import { tronEndpoint } from './endpoint.ts'
import { startEvm } from './evm.ts'
import { tronFaucet } from './faucet.ts'
import { contracts, type Deployed, type DeployedName, FALSE_TRC10, faucetKey, tokens } from './genesis.ts'
import { SOLID_DEPTH, type Tron, tronRules } from './rules.ts'

export type TronInfo = {
  readonly fullNodeUrl: string
  /** The id of its first block, by which a TRON network is known. */
  readonly genesisBlockId: string
  readonly tokens: { readonly USDT: Deployed }
  /** What calls itself USDT and is not, what misbehaves as tokens do, and what pays in ways that are hard to see. */
  readonly contracts: Readonly<Record<DeployedName, Deployed>>
  /** The number of a TRC-10 token that calls itself USDT. */
  readonly falseTrc10: string
  /** Of the account that holds everything at first, TRC-10 too, and owns USDT. */
  readonly faucetKey: string
}

/** A whole TRON of one full node, in this process and one thread beside it. NOTES.md says what it leaves out. */
export async function openTronNetwork(dataDir: string): Promise<SimulatedNetwork<TronInfo>> {
  const evm = await startEvm()
  const nodeOn = (stage: Stage<Tron>): TronNode => ({ ...stage, evm })
  const opening = openSimulatedNetwork<Tron, TronInfo>({
    dataDir,
    rules: tronRules(evm),
    endpoint: (stage) => {
      // The first block has no time, and who writes a transaction wants to count from one.
      if (stage.chain.head.height === 0) stage.chain.mine(1)
      return tronEndpoint(nodeOn(stage))
    },
    faucet: (stage) => tronFaucet(nodeOn(stage)),
    info: (port) => ({
      fullNodeUrl: `http://127.0.0.1:${port}`,
      genesisBlockId: GENESIS_ID,
      tokens,
      contracts,
      falseTrc10: FALSE_TRC10.id,
      faucetKey: faucetKey.toString('hex'),
    }),
  })
  const network = await opening.catch(async (error) => {
    await evm.stop()
    throw error
  })
  return {
    ...network,
    reorg: async (depth) => {
      if (depth > SOLID_DEPTH) throw new Error(`a block is solid when ${SOLID_DEPTH} are built on it`)
      await network.reorg(depth)
    },
    stop: async () => {
      await network.stop()
      await evm.stop()
    },
  }
}
