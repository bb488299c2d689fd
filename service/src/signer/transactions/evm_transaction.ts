import { privateKeyToAccount } from 'viem/accounts'
import { bytesToHex, encodeFunctionData, getAddress, isAddress, keccak256, parseAbi } from 'viem/utils'
import { accept, type Outcome } from '../../domain/outcome.ts'
import type { EvmIntent, SignedTx } from '../../domain/payouts/intent.ts'
import type { Keys } from '../derivation.ts'
import { refuseToSign } from '../rejections.ts'
import type { EvmSettings } from '../settings.ts'
import type { SignRejection } from '../signer.ts'

/** An EIP-1559 transaction: a plain transfer, or a call of the token's `transfer`. Deterministic (RFC 6979). */
export async function signEvm(
  intent: EvmIntent,
  keys: Keys,
  settings: EvmSettings,
): Promise<Outcome<SignedTx, SignRejection>> {
  if (intent.evmChainId !== settings.chainId) {
    return refuseToSign(
      'malformed',
      `intent.evmChainId is not ${settings.chainId}, the id of ${intent.chain}`,
    )
  }
  if (intent.from.purpose === 'change') {
    return refuseToSign('malformed', 'intent.from: EVM chains have no change addresses')
  }
  if (intent.gasLimit > settings.gasLimitMax) {
    return refuseToSign('limit_exceeded', `a gas limit is at most ${settings.gasLimitMax}`)
  }
  if (intent.maxFeePerGasWei > settings.feePerGasWeiMax) {
    return refuseToSign('limit_exceeded', `a fee is at most ${settings.feePerGasWeiMax} wei per gas`)
  }
  const account = privateKeyToAccount(bytesToHex(keys.privateKey('evm', intent.from)))
  const serialized = await account.signTransaction({
    type: 'eip1559',
    chainId: intent.evmChainId,
    nonce: intent.nonce,
    gas: intent.gasLimit,
    maxFeePerGas: intent.maxFeePerGasWei,
    maxPriorityFeePerGas: intent.maxPriorityFeePerGasWei,
    ...callOf(intent),
  })
  return accept({ txHash: keccak256(serialized), bytes: serialized.slice(2) })
}

const erc20Abi = parseAbi(['function transfer(address to, uint256 units) returns (bool)'])

function callOf({ to, units, token }: EvmIntent) {
  if (token === null) return { to: getAddress(to), value: units }
  const data = encodeFunctionData({ abi: erc20Abi, functionName: 'transfer', args: [getAddress(to), units] })
  return { to: getAddress(token), value: 0n, data }
}

/** The checksummed form (EIP-55), or null when it is no address. */
export function canonicalEvmAddress(text: string): string | null {
  return isAddress(text) ? getAddress(text) : null
}
