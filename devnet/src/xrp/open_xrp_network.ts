import { openSimulatedNetwork, type SimulatedNetwork, type Stage } from '../simulated/simulated_network.ts'
import type { XrpNode } from './command.ts'
import { xrpEndpoint } from './endpoint.ts'
import { xrpFaucet } from './faucet.ts'
import { NETWORK_ID, type Xrp, xrpRules } from './rules.ts'

export type XrpInfo = { readonly rpcUrl: string; readonly wsUrl: string; readonly networkId: number }

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
    rules: xrpRules,
    endpoint: (stage) => xrpEndpoint(nodeOn(stage)),
    faucet: ({ chain }) => xrpFaucet(chain),
    info: (port) => ({
      rpcUrl: `http://127.0.0.1:${port}`,
      wsUrl: `ws://127.0.0.1:${port}`,
      networkId: NETWORK_ID,
    }),
  })
}
