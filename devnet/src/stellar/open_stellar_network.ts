import { Networks } from '@stellar/stellar-sdk/base'
import { openSimulatedNetwork, type SimulatedNetwork } from '../simulated/simulated_network.ts'
import { PASSPHRASE } from './decode_transaction.ts'
import { stellarEndpoint } from './endpoint.ts'
import { stellarFaucet } from './faucet.ts'
import { stellarRules } from './rules.ts'

export type StellarInfo = { readonly horizonUrl: string; readonly passphrase: string }

/** A whole Stellar network of one Horizon, in this process. NOTES.md says what it leaves out. */
export function openStellarNetwork(dataDir: string): Promise<SimulatedNetwork<StellarInfo>> {
  return openSimulatedNetwork({
    dataDir,
    rules: stellarRules,
    endpoint: (stage) =>
      stellarEndpoint({
        ...stage,
        passphrase: () => (stage.troubles.now.isStranger ? Networks.TESTNET : PASSPHRASE),
      }),
    faucet: ({ chain }) => stellarFaucet(chain),
    info: (port) => ({ horizonUrl: `http://127.0.0.1:${port}`, passphrase: PASSPHRASE }),
  })
}
