import { createHash } from 'node:crypto'
import { getAddress, keccak256, parseTransaction, recoverTransactionAddress } from 'viem'
import { transferCall } from '../../../src/chains/evm/token_moves.ts'
import type { AssetId } from '../../../src/domain/catalog/assets.ts'

/** A plain transfer of coin, or a call of a listed token's `transfer`. `units` are the chain's. */
export type AccountTx = {
  readonly txHash: string
  readonly from: string
  readonly nonce: number
  readonly to: string
  readonly asset: AssetId
  readonly units: bigint
  readonly gasLimit: bigint
  readonly maxFeeWei: bigint
  readonly tipWei: bigint
}

/** The transaction in these bytes, its sender by its signature; null when there is none that this chain knows. */
export async function readAccountTx(
  bytes: string,
  tokens: Readonly<Record<string, AssetId>>,
  native: AssetId,
): Promise<AccountTx | null> {
  try {
    const serialized = `0x02${bytes.slice(2)}` as const
    const tx = parseTransaction(serialized)
    if (tx.type !== 'eip1559' || tx.to == null) return null
    const from = await recoverTransactionAddress({ serializedTransaction: serialized })
    const paid = readPayment(tx.to, tx.value ?? 0n, tx.data ?? '0x', tokens, native)
    if (paid === null) return null
    return {
      txHash: keccak256(serialized),
      from,
      nonce: tx.nonce ?? 0,
      ...paid,
      gasLimit: tx.gas ?? 0n,
      maxFeeWei: tx.maxFeePerGas ?? 0n,
      tipWei: tx.maxPriorityFeePerGas ?? 0n,
    }
  } catch {
    return null // the library throws on whatever is no transaction
  }
}

function readPayment(
  to: string,
  wei: bigint,
  data: string,
  tokens: Readonly<Record<string, AssetId>>,
  native: AssetId,
): Pick<AccountTx, 'to' | 'asset' | 'units'> | null {
  if (data === '0x') return { to: getAddress(to), asset: native, units: wei }
  const asset = tokens[getAddress(to)]
  const call = transferCall(data)
  return asset === undefined || call === null ? null : { to: getAddress(call.to), asset, units: call.units }
}

/** The address of a person outside, whose key nobody has. */
export function accountAddress(of: string): string {
  return getAddress(`0x${createHash('sha256').update(of).digest('hex').slice(0, 40)}`)
}
