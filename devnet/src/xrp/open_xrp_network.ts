import { openSimulatedNetwork, type SimulatedNetwork, type Stage } from '../simulated/simulated_network.ts'
import type { XrpNode } from './command.ts'
import { xrpEndpoint } from './endpoint.ts'
import { xrpFaucet } from './faucet.ts'
import { type Xrp, xrpRules } from './rules.ts'

export type XrpInfo = { readonly rpcUrl: string; readonly wsUrl: string; readonly networkId: number }

/** Above 1024, so every transaction has to name it, and none of another network is valid here. */
const NETWORK_ID = 31_344

/** A whole XRP Ledger of one server, in this process. NOTES.md says what it leaves out. */
export function openXrpNetwork(dataDir: string): Promise<SimulatedNetwork<XrpInfo>> {
  const startedAtMs = Date.now()
  const nodeOn = (stage: Stage<Xrp>): XrpNode => ({
    ...stage,
    startedAtMs,
    networkId: () => NETWORK_ID + (stage.troubles.now.isStranger ? 1 : 0),
  })
  return openSimulatedNetwork({
    dataDir,
    rules: xrpRules(NETWORK_ID),
    endpoint: (stage) => xrpEndpoint(nodeOn(stage)),
    faucet: (stage) => xrpFaucet(nodeOn(stage)),
    info: (port) => ({
      rpcUrl: `http://127.0.0.1:${port}`,
      wsUrl: `ws://127.0.0.1:${port}`,
      networkId: NETWORK_ID,
    }),
  })
}
