import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import type { LocalNetwork } from '../local_network.ts'
import { type Kind, openChain, type Rules, type SimulatedChain, type View } from './chain.ts'
import { type Endpoint, serve } from './server.ts'
import { createTroubles, type TroubleSwitch, type Troubles } from './troubles.ts'

/** What a network's own code works with. */
export type Stage<K extends Kind> = {
  readonly chain: SimulatedChain<K>
  readonly troubles: TroubleSwitch
  /** The chain as outsiders are told it: behind, when that trouble is on. */
  told(): View<K>
}

export type Simulator<K extends Kind, Info> = {
  readonly dataDir: string
  readonly rules: Rules<K>
  endpoint(stage: Stage<K>): Endpoint
  faucet(stage: Stage<K>): Pick<LocalNetwork, 'send' | 'balance' | 'freshAddress'> & {
    readonly replace?: LocalNetwork['replace']
  }
  info(port: number): Info
}

export type SimulatedNetwork<Info> = LocalNetwork & {
  readonly info: Info
  /** Adds to the troubles that are on; null ends them all. */
  trouble(troubles: Partial<Troubles> | null): void
}

/** Quiet chains slow down, so that a sandbox left alone for days does not fill its disk with empty blocks. */
const QUIET_BLOCKS = 40
const QUIET_INTERVAL_MS = 10_000

/** Runs in this process: whoever kills us kills it, and the next start goes on from its file. */
export async function openSimulatedNetwork<K extends Kind, Info>(
  simulator: Simulator<K, Info>,
): Promise<SimulatedNetwork<Info>> {
  mkdirSync(simulator.dataDir, { recursive: true })
  const chain = openChain(join(simulator.dataDir, 'chain.jsonl'), simulator.rules)
  const troubles = createTroubles()
  const told = () =>
    chain.view(Math.max(simulator.rules.firstHeight, chain.head.height - troubles.now.blocksBehind))
  const stage = { chain, troubles, told }
  const server = await serve(simulator.dataDir, simulator.endpoint(stage), troubles)
  const faucet = simulator.faucet(stage)
  let stopped: Promise<void> | undefined
  return {
    info: simulator.info(server.port),
    trouble: troubles.set,
    pid: process.pid,
    adopted: false,
    send: faucet.send,
    balance: faucet.balance,
    freshAddress: faucet.freshAddress,
    mine: async (blocks) => {
      // Signing a block takes ten milliseconds, and the service may live in this process: it has its turn after each.
      for (let block = 0; block < blocks; block += 1) {
        chain.mine(1)
        await setImmediate()
      }
    },
    mineLively: livelyTurn(chain),
    reorg: async (depth) => chain.reorg(depth),
    replace: faucet.replace ?? (async () => undefined),
    // Every line is written when it happens.
    save: async () => {},
    stop: () => {
      stopped ??= server.stop().then(chain.close)
      return stopped
    },
  }
}

function livelyTurn<K extends Kind>(chain: SimulatedChain<K>): () => Promise<void> {
  let quietBlocks = 0
  let minedAtMs = 0
  return async () => {
    const isQuiet = chain.waiting.length === 0
    if (isQuiet && quietBlocks > QUIET_BLOCKS && Date.now() - minedAtMs < QUIET_INTERVAL_MS) return
    quietBlocks = isQuiet ? quietBlocks + 1 : 0
    minedAtMs = Date.now()
    chain.mine(1)
  }
}
