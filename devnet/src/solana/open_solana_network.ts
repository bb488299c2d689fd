import { openSimulatedNetwork, type SimulatedNetwork, type Stage } from '../simulated/simulated_network.ts'
import type { SolanaNode } from './command.ts'
import { solanaEndpoint } from './endpoint.ts'
import { solanaFaucet } from './faucet.ts'
import { faucetKey, GENESIS_HASH, type MintName, mints, prepareGenesis } from './genesis.ts'
import { FINAL_DEPTH, type Solana, solanaRules } from './rules.ts'
import { startVm } from './vm.ts'

export type SolanaInfo = {
  readonly rpcUrl: string
  /** By which a Solana network is known. */
  readonly genesisHash: string
  /** The mint of each token. `Lookalike` and `Token2022` call themselves USDC wherever names are told, and are not. */
  readonly mints: Readonly<Record<MintName, { readonly address: string; readonly program: string }>>
  /** Blocks on top of one that is final. */
  readonly finalDepth: number
  /** The private key of the account that holds everything at first, in hex. */
  readonly faucetKey: string
}

/** A Solana of one node whose transactions run on Surfpool's virtual machine. NOTES.md says what it leaves out. */
export async function openSolanaNetwork(
  dataDir: string,
  signal?: AbortSignal,
): Promise<SimulatedNetwork<SolanaInfo>> {
  const genesis = await prepareGenesis()
  const vm = await startVm({ signal })
  const nodeOn = (stage: Stage<Solana>): SolanaNode => ({ ...stage, vm, genesisHash: GENESIS_HASH })
  const opening = openSimulatedNetwork<Solana, SolanaInfo>({
    dataDir,
    rules: solanaRules(vm, genesis),
    endpoint: (stage) => {
      // So that there is something final from the beginning.
      const { chain } = stage
      if (chain.head.height < FINAL_DEPTH) chain.mine(FINAL_DEPTH - chain.head.height)
      return solanaEndpoint(nodeOn(stage))
    },
    faucet: (stage) => solanaFaucet(nodeOn(stage)),
    info: (port) => ({
      rpcUrl: `http://127.0.0.1:${port}`,
      genesisHash: GENESIS_HASH,
      mints,
      finalDepth: FINAL_DEPTH,
      faucetKey: faucetKey.toString('hex'),
    }),
  })
  const network = await opening.catch(async (error) => {
    await vm.stop()
    throw error
  })
  return {
    ...network,
    mine: (blocks) => network.mine(blocks + FINAL_DEPTH),
    reorg: async (depth) => {
      if (depth > FINAL_DEPTH) throw new Error(`a block is final when ${FINAL_DEPTH} is built on it`)
      await network.reorg(depth)
    },
    stop: async () => {
      await network.stop()
      await vm.stop()
    },
  }
}
