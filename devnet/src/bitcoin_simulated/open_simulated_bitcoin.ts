import { randomBytes } from 'node:crypto'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type BitcoinNetwork, driveBitcoin, prepareCoins } from '../bitcoin/bitcoin_network.ts'
import { connectRpc, type Rpc, RpcError } from '../json_rpc.ts'
import { openSimulatedNetwork, type SimulatedNetwork, type Stage } from '../simulated/simulated_network.ts'
import { bitcoinEndpoint, call } from './endpoint.ts'
import { openMempool } from './mempool.ts'
import type { BitcoinNode } from './node.ts'
import { NodeError } from './node_error.ts'
import { type Bitcoin, bitcoinRules, type Miner } from './rules.ts'
import { openWallet } from './wallet.ts'

export type SimulatedBitcoin = BitcoinNetwork & Pick<SimulatedNetwork<object>, 'trouble'>

/**
 * A regtest of one node in this process, which the devnet drives with the same calls as a bitcoind. NOTES.md says what
 * it leaves out.
 */
export async function openSimulatedBitcoin(dataDir: string): Promise<SimulatedBitcoin> {
  const miner: Miner = { payee: null }
  let node: BitcoinNode | undefined
  const nodeOn = (stage: Stage<Bitcoin>) => {
    const wallet = node?.wallet ?? openWallet(join(dataDir, 'wallet.jsonl'))
    node ??= { ...stage, miner, wallet, pool: openMempool(stage.chain) }
    return node
  }
  // Past the line, so that its troubles trouble neither the faucet nor the miner.
  const inside: Rpc = async (method, params = []) => {
    if (node === undefined) throw new Error('the node is open')
    return answerOf(node, method, params)
  }
  const lines = { rpc: inside, wallet: inside }
  const faucet = driveBitcoin(lines)
  const network = await openSimulatedNetwork({
    dataDir,
    rules: bitcoinRules(miner),
    endpoint: (stage) => bitcoinEndpoint(nodeOn(stage), credentialsIn(dataDir)),
    faucet: () => faucet,
    info: (port) => ({ rpcUrl: `http://${credentialsIn(dataDir)}@127.0.0.1:${port}` }),
  })
  const stop = () => network.stop().then(() => node?.wallet.close())
  try {
    await prepareCoins(lines)
  } catch (error) {
    await stop()
    throw error
  }
  const { rpcUrl } = network.info
  const { mine, reorg } = faucet
  return { ...network, mine, reorg, rpcUrl, rpc: connectRpc(rpcUrl), stop }
}

/** What the same answer is after a way over the wire. */
function answerOf<T>(node: BitcoinNode, method: string, params: readonly unknown[]): T {
  try {
    return JSON.parse(JSON.stringify(call(node, method, params) ?? null)) as T
  } catch (error) {
    throw error instanceof NodeError ? new RpcError(method, error.code, error.message) : error
  }
}

/** The same at every start, so that a URL that was noted down stays valid. */
function credentialsIn(dataDir: string): string {
  const path = join(dataDir, 'credentials')
  if (!existsSync(path)) writeFileSync(path, `cambist:${randomBytes(24).toString('hex')}`, { mode: 0o600 })
  return readFileSync(path, 'utf8')
}
