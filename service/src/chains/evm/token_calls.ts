import { encodeFunctionData, parseAbi } from 'viem/utils'
import { bytes, decodeWord } from './decode.ts'
import { type Call, NodeNonsense } from './json_rpc.ts'

/** ERC-20, as far as we ask. */
const erc20Abi = parseAbi([
  'function balanceOf(address) view returns (uint256)',
  'function decimals() view returns (uint8)',
  'function transfer(address to, uint256 units) returns (bool)',
])

/** EIP-1898: a block by hash where two reads must be of one block, else by number or tag. */
export type BlockId = { readonly blockHash: string } | string

export function balanceOfCall(contract: string, holder: string, block: BlockId): Call {
  const data = encodeFunctionData({
    abi: erc20Abi,
    functionName: 'balanceOf',
    args: [holder as `0x${string}`],
  })
  return { method: 'eth_call', params: [{ to: contract, data }, block] }
}

/** In raw token units. */
export function decodeBalance(contract: string, answer: unknown): bigint {
  if (answer === '0x') throw new NodeNonsense(`there is no token at ${contract} on this chain`)
  return decodeWord(answer, `balance in ${contract}`)
}

export function decimalsCall(contract: string): Call {
  const data = encodeFunctionData({ abi: erc20Abi, functionName: 'decimals' })
  return { method: 'eth_call', params: [{ to: contract, data }, 'latest'] }
}

/** The calldata that pays `units` raw token units to `to`. */
export function transferData(to: string, units: bigint): `0x${string}` {
  return encodeFunctionData({ abi: erc20Abi, functionName: 'transfer', args: [to as `0x${string}`, units] })
}

/** A token agrees by returning true, or nothing at all (USDT on Ethereum does). */
export function hasTransferAgreed(answer: unknown): boolean {
  const returned = bytes(answer, 'answer to a simulated transfer')
  return returned === '0x' || (returned.length === 66 && BigInt(returned) === 1n)
}
