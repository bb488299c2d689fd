import { openSimulatedNetwork, type SimulatedNetwork, type Stage } from '../simulated/simulated_network.ts'
import type { Eos } from './blocks.ts'
import type { EosNode } from './command.ts'
import { TOKEN_CONTRACT } from './contracts.ts'
import { sha256 } from './decode_transaction.ts'
import { eosEndpoint } from './endpoint.ts'
import { type EosFaucet, eosFaucet } from './faucet.ts'
import { CHAIN_ID, eosRules, FAUCET, GENESIS_PRIVATE_KEY, REVERSIBLE_BLOCKS, testContracts } from './rules.ts'

export type EosInfo = {
  readonly rpcUrl: string
  readonly chainId: string
  readonly tokenContract: 'eosio.token'
  /** So many blocks can still be undone. */
  readonly reversibleBlocks: number
  /** Holds everything at first. Its key is everybody's, and also that of the contracts. */
  readonly faucet: { readonly account: string; readonly privateKey: string }
  readonly contracts: typeof testContracts
}

export type EosNetwork = SimulatedNetwork<EosInfo> & Pick<EosFaucet, 'createAccount'>

/** A whole EOS of one node, in this process. NOTES.md says what it leaves out. */
export async function openEosNetwork(dataDir: string): Promise<EosNetwork> {
  const nodeOn = (stage: Stage<Eos>): EosNode => ({
    ...stage,
    chainId: () => (stage.troubles.now.isStranger ? sha256(CHAIN_ID) : CHAIN_ID),
  })
  let faucet: EosFaucet | undefined
  const network = await openSimulatedNetwork<Eos, EosInfo>({
    dataDir,
    rules: eosRules,
    endpoint: (stage) => eosEndpoint(nodeOn(stage)),
    faucet: ({ chain }) => {
      faucet = eosFaucet(chain)
      return faucet
    },
    info: (port) => ({
      rpcUrl: `http://127.0.0.1:${port}`,
      chainId: CHAIN_ID,
      tokenContract: TOKEN_CONTRACT,
      reversibleBlocks: REVERSIBLE_BLOCKS,
      faucet: { account: FAUCET, privateKey: GENESIS_PRIVATE_KEY },
      contracts: testContracts,
    }),
  })
  return {
    ...network,
    createAccount: (name, publicKey) => {
      if (faucet === undefined) throw new Error('an open network has a faucet')
      return faucet.createAccount(name, publicKey)
    },
    reorg: async (depth) => {
      if (depth > REVERSIBLE_BLOCKS)
        throw new Error(`a block is irreversible when ${REVERSIBLE_BLOCKS} are built on it`)
      await network.reorg(depth)
    },
  }
}
