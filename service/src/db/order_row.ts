import { assert } from '../domain/assert.ts'
import type { AssetId } from '../domain/catalog/assets.ts'
import { amountOf } from '../domain/money/amount.ts'
import { parseRate } from '../domain/money/rate.ts'
import {
  type Deposit,
  type EmergencyReason,
  type FailedCosts,
  nothingFailed,
  type Order,
  type OrderState,
  type OrderStatus,
  type Settlement,
} from '../domain/orders/order.ts'
import type { RateType } from '../domain/quotes/quote.ts'

/** The whole row of an order. */
export type OrderRow = {
  order_id: string
  account_id: string
  created_at_ms: number
  expires_at_ms: number
  rate_type: RateType
  from_asset: AssetId
  to_asset: AssetId
  asks: bigint
  promises: bigint
  rate: string
  fee: bigint
  fee_share: number
  network_fee: bigint
  destination: string
  destination_tag: string | null
  refund_address: string | null
  callback_url: string | null
  deposit_address: string
  deposit_tag: string | null
  required_confirmations: number
  tolerance: bigint
  slippage: number
  status: OrderStatus
  sequence: number
  updated_at_ms: number
  completed_at_ms: number | null
  emergency_reasons: EmergencyReason[]
  settled_received: bigint | null
  settled_paid: bigint | null
  settled_rate: string | null
  settled_fee: bigint | null
  settled_network_fee: bigint | null
  refund_units: bigint | null
  refund_network_fee: bigint | null
  payout_id: string | null
  payout_tx_hash: string | null
  outflow_count: number
  is_outflow_committed: boolean
  failed_payouts_cost: bigint
  failed_refunds_cost: bigint
  first_emergency_at_ms: number | null
}

/** The order that a row and its deposits say. */
export function toOrder(row: OrderRow, deposits: readonly Deposit[]): Order {
  return {
    terms: {
      id: row.order_id,
      accountId: row.account_id,
      createdAtMs: row.created_at_ms,
      expiresAtMs: row.expires_at_ms,
      rateType: row.rate_type,
      from: row.from_asset,
      to: row.to_asset,
      asks: amountOf(row.from_asset, row.asks),
      promises: amountOf(row.to_asset, row.promises),
      rate: parseRate(row.from_asset, row.to_asset, row.rate),
      fee: amountOf(row.to_asset, row.fee),
      feeShare: BigInt(row.fee_share),
      networkFee: amountOf(row.to_asset, row.network_fee),
      destination: row.destination,
      destinationTag: row.destination_tag,
      callbackUrl: row.callback_url,
      depositAddress: row.deposit_address,
      depositTag: row.deposit_tag,
      requiredConfirmations: row.required_confirmations,
      tolerance: amountOf(row.from_asset, row.tolerance),
      slippage: BigInt(row.slippage),
    },
    refundAddress: row.refund_address,
    deposits,
    state: toState(row),
    sequence: row.sequence,
    updatedAtMs: row.updated_at_ms,
    outflowCount: row.outflow_count,
    isOutflowCommitted: row.is_outflow_committed,
    failedCosts: toFailedCosts(row),
    firstEmergencyAtMs: row.first_emergency_at_ms,
  }
}

function toFailedCosts(row: OrderRow): FailedCosts {
  const { payouts, refunds } = nothingFailed({ from: row.from_asset, to: row.to_asset })
  return {
    payouts: amountOf(payouts.asset, row.failed_payouts_cost),
    refunds: amountOf(refunds.asset, row.failed_refunds_cost),
  }
}

function toState(row: OrderRow): OrderState {
  switch (row.status) {
    case 'NEW':
    case 'PENDING':
    case 'EXPIRED':
      return { status: row.status }
    case 'EMERGENCY':
      return { status: row.status, reasons: row.emergency_reasons }
    case 'EXCHANGE':
      return row.payout_id === null
        ? { status: row.status, settlement: null }
        : { status: row.status, settlement: toSettlement(row), payoutId: row.payout_id }
    case 'WITHDRAW':
      return { status: row.status, settlement: toSettlement(row), ...sentOutflow(row) }
    case 'DONE':
      return { status: row.status, settlement: toSettlement(row), ...sentOutflow(row), ...completion(row) }
    case 'REFUND':
      return { status: row.status, ...toRefund(row), txHash: row.payout_tx_hash }
    case 'REFUNDED':
      return { status: row.status, ...toRefund(row), ...sentOutflow(row), ...completion(row) }
  }
}

function toSettlement(row: OrderRow): Settlement {
  const { from_asset: from, to_asset: to } = row
  return {
    received: amountOf(from, present(row, 'settled_received')),
    paid: amountOf(to, present(row, 'settled_paid')),
    rate: parseRate(from, to, present(row, 'settled_rate')),
    fee: amountOf(to, present(row, 'settled_fee')),
    networkFee: amountOf(to, present(row, 'settled_network_fee')),
  }
}

function toRefund(row: OrderRow) {
  return {
    payoutId: present(row, 'payout_id'),
    refund: {
      amount: amountOf(row.from_asset, present(row, 'refund_units')),
      networkFee: amountOf(row.from_asset, present(row, 'refund_network_fee')),
      address: present(row, 'refund_address'),
    },
  }
}

function sentOutflow(row: OrderRow) {
  return { payoutId: present(row, 'payout_id'), txHash: present(row, 'payout_tx_hash') }
}

function completion(row: OrderRow) {
  return { completedAtMs: present(row, 'completed_at_ms') }
}

/** A column that the row's status promises. */
function present<Name extends keyof OrderRow>(row: OrderRow, name: Name): NonNullable<OrderRow[Name]> {
  const value = row[name]
  assert(value !== null, `order ${row.order_id} in ${row.status} has ${name}`)
  return value as NonNullable<OrderRow[Name]>
}
