import { type AssetId, assets } from '../../../src/domain/catalog/assets.ts'
import type { SignerSettings } from '../../../src/signer/settings.ts'
import { accountRules } from './account_chain.ts'
import { coinsRules } from './coins_chain.ts'
import { stellarSettings, xrpSettings } from './tags_chains.ts'
import { eosSettings, solanaSettings } from './timed_chains.ts'

const evm = ({ evmChainId, capWei, gasLimitMax }: (typeof accountRules)['ETH' | 'BNB']) => ({
  chainId: evmChainId,
  gasLimitMax,
  feePerGasWeiMax: capWei,
  sweepGasWeiMax: gasLimitMax * capWei,
})

const contracts = Object.values(accountRules).flatMap(({ tokens }) =>
  Object.entries(tokens).map(([contract, asset]) => [asset, contract] as const),
)

/** A real signer's settings for the simulated chains. */
export const simulatedSignerSettings: SignerSettings = {
  bitcoin: {
    network: coinsRules.network,
    feeRateSatPerVbMax: 1_000n,
    feeSatoshiMax: coinsRules.feeSatoshiMax,
  },
  evm: { ETH: evm(accountRules.ETH), BNB: evm(accountRules.BNB) },
  xrp: xrpSettings,
  stellar: stellarSettings,
  tron: { feeLimitSunMax: 0n, sweepGasSunMax: 0n },
  eos: eosSettings,
  solana: solanaSettings,
  contracts: Object.fromEntries(contracts),
  payoutUnitsMax: Object.fromEntries(assets.map(({ id, maxAmount }) => [id, maxAmount * 2n])) as Record<
    AssetId,
    bigint
  >,
  limits: [],
}
