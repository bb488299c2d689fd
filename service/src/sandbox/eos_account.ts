import type { Devnet } from '@cambist/devnet'
import type { ChainSettings } from '../config/chain_settings.ts'
import { deriveKeys } from '../signer/derivation.ts'
import { loadInTurn } from '../signer/load_in_turn.ts'

/** On EOS a key is not an account: somebody has to make one for it. Here that is the faucet, at the first start. */
export async function withEosAccount(
  settings: ChainSettings,
  devnet: Devnet,
  seed: Uint8Array,
): Promise<ChainSettings> {
  const { BTC, XRP, EOS } = settings
  if (EOS.rpcUrl === null) return settings
  const { eosPublicKey } = await loadInTurn(() => import('../signer/transactions/eos_transaction.ts'))
  const publicKey = eosPublicKey(deriveKeys(seed, { bitcoin: BTC.network, xrpNetworkId: XRP.networkId }))
  try {
    await devnet.eos.createAccount(EOS.account, publicKey)
    await devnet.mine('EOS', 1)
  } catch (error) {
    if (!String(error).includes('already taken')) throw error
  }
  return { ...settings, EOS: { ...EOS, publicKey } }
}
