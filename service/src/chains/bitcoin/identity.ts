import type { BitcoinNetwork } from '../../domain/catalog/networks.ts'
import { integerIn, objectIn, textIn } from './replies.ts'
import type { Rpc } from './rpc.ts'
import { networkFacts } from './settings.ts'

/** The first Bitcoin Core that tells the fee of a mined transaction. */
const NODE_VERSION_MIN = 250_000

/**
 * Rejects unless the node follows the configured chain and can answer everything we ask. The genesis block alone
 * would not do: chains that split off Bitcoin share it, but none of them has segwit.
 */
export async function checkIdentity(rpc: Rpc, network: BitcoinNetwork): Promise<void> {
  const expected = networkFacts[network]
  const replies = await rpc.batch([
    ['getblockhash', 0],
    ['getblockchaininfo'],
    ['getdeploymentinfo'],
    ['getindexinfo'],
    ['getnetworkinfo'],
  ])
  const [genesis, chainInfo, deploymentInfo, indexInfo, networkInfo] = replies.map((reply) => {
    if (!reply.ok) throw reply.rejection
    return reply.value
  })
  const { chain: chainName, blocks } = objectIn(chainInfo, 'getblockchaininfo')
  const chain = textIn(chainName, 'chain')
  if (genesis !== expected.genesis || chain !== expected.chain) {
    throw new Error(
      `the bitcoin node runs the chain "${chain}" (genesis ${genesis}), configured is ${network}`,
    )
  }
  const deployments = objectIn(objectIn(deploymentInfo, 'getdeploymentinfo').deployments, 'deployments')
  if (objectIn(deployments.segwit ?? {}, 'segwit').active !== true) {
    throw new Error('the bitcoin node does not follow Bitcoin: segwit is not active on its chain')
  }
  requireIndex(indexInfo, blocks)
  const { version: versionNumber, localrelay } = objectIn(networkInfo, 'getnetworkinfo')
  const version = integerIn(versionNumber, 'version')
  if (version < NODE_VERSION_MIN) {
    throw new Error(`the bitcoin node is version ${version}; ${NODE_VERSION_MIN} (25.0) or newer is needed`)
  }
  if (localrelay === false) {
    throw new Error(
      'the bitcoin node hears of no transactions before they are mined, and so of no deposits and no fees: ' +
        'restart it without -blocksonly',
    )
  }
}

/** As long as it lacks blocks it says of what was mined in them neither that it was nor that it was not. */
function requireIndex(indexInfo: unknown, blocks: unknown): void {
  const { txindex } = objectIn(indexInfo, 'getindexinfo')
  if (txindex === undefined) {
    throw new Error(
      'the bitcoin node has no transaction index, without which it cannot tell whether a payout was mined: ' +
        'restart it with -txindex=1 (and without -prune)',
    )
  }
  const { synced, best_block_height: indexed } = objectIn(txindex, 'txindex')
  if (synced !== true) {
    throw new Error(
      `the bitcoin node still builds its transaction index (block ${indexed} of ${blocks}), without which it cannot ` +
        'tell whether a payout was mined: wait until it is done',
    )
  }
}
