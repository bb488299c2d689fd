import { type ChainSettings, tokensOf } from '../config/chain_settings.ts'
import type { EvmChainId } from '../domain/catalog/networks.ts'
import type { SignerSettings } from '../signer/settings.ts'

/**
 * What the signer is told of each chain: the networks, the listed tokens, and caps that nothing which a connector may bid is above.
 * How much may leave is for whoever runs it to say.
 */
export function signerCaps(chains: ChainSettings): Omit<SignerSettings, 'payoutUnitsMax' | 'limits'> {
  const { BTC, ETH, BNB, XRP, XLM, TRX, EOS, SOL } = chains
  const evm = ({ evmChainId, gasLimitMax, maxFeePerGasWeiMax }: typeof ETH) => ({
    chainId: evmChainId,
    gasLimitMax,
    feePerGasWeiMax: maxFeePerGasWeiMax,
    // A sweep is one transaction: it cannot need more than the dearest one may cost.
    sweepGasWeiMax: gasLimitMax * maxFeePerGasWeiMax,
  })
  return {
    bitcoin: {
      network: BTC.network,
      // Change too small to keep goes to the miner: the rate of a small transaction may pass what was bid. At low rates that is dust,
      // 294 satoshi, in 110 vbytes.
      feeRateSatPerVbMax: (2n * BTC.milliSatPerVbMax + 999n) / 1_000n + 3n,
      feeSatoshiMax: BTC.feeSatoshiMax,
    },
    evm: { ETH: evm(ETH), BNB: evm(BNB) } satisfies Record<EvmChainId, unknown>,
    xrp: { networkId: XRP.networkId, feeDropsMax: XRP.feeDropsMax },
    stellar: { passphrase: XLM.passphrase, feeStroopsMax: XLM.feeStroopsMax },
    // A call's energy, and the bandwidth beside it.
    tron: { feeLimitSunMax: TRX.feeLimitSunMax, sweepGasSunMax: 2n * TRX.feeLimitSunMax },
    ...(EOS.account !== '' && {
      eos: { chainId: EOS.chainId, account: EOS.account, publicKey: EOS.publicKey },
    }),
    solana: { feeLamportsMax: SOL.feeLamportsMax },
    contracts: tokensOf(chains),
  }
}
