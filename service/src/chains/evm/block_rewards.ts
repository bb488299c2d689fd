import { count, type EvmHeader, type EvmReceipt, fields, list, lowerAddress, quantity } from './decode.ts'

/** Address in lowercase. */
export type Reward = { readonly id: string; readonly to: string; readonly wei: bigint }

const WEI_PER_GWEI = 10n ** 9n

/**
 * Coin that a block gives by itself, so that neither a receipt nor a trace tells of it: stake that is paid out
 * (https://eips.ethereum.org/EIPS/eip-4895), and the tips to whom its maker names. Both name whom they like, and an address of
 * ours that held more than we know of would stop all outflows. On BNB Smart Chain a contract gets the tips: there `miner` is whose
 * key signed the block, which is nobody of ours.
 */
export function blockRewards(
  block: unknown,
  { hash, baseFeePerGasWei }: EvmHeader,
  receipts: readonly EvmReceipt[],
): readonly Reward[] {
  const { miner, withdrawals } = fields(block, 'block')
  const tips = receipts.reduce(
    (sum, { gasUsed, effectiveGasPriceWei }) =>
      sum + gasUsed * (effectiveGasPriceWei - (baseFeePerGasWei ?? 0n)),
    0n,
  )
  // Blocks from before stake could be paid out have no such list.
  const paidOut = withdrawals === undefined ? [] : list(withdrawals, 'block.withdrawals').map(readWithdrawal)
  return [
    ...paidOut.map(({ index, to, wei }) => ({ id: `${hash}:withdrawal:${index}`, to, wei })),
    { id: `${hash}:tips`, to: lowerAddress(miner, 'block.miner'), wei: tips },
  ].filter(({ wei }) => wei > 0n)
}

function readWithdrawal(value: unknown) {
  const { index, address, amount } = fields(value, 'withdrawal')
  return {
    index: count(index, 'withdrawal.index'),
    to: lowerAddress(address, 'withdrawal.address'),
    wei: quantity(amount, 'withdrawal.amount') * WEI_PER_GWEI,
  }
}
