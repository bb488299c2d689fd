import type { DecimalText, DeskOutcome } from '../../engine/desks/desk.ts'

/** A mail as the sandbox's mailbox keeps it. */
export type SandboxMail = {
  /** Counts up with every mail that came. */
  readonly id: number
  readonly message_id: string
  readonly to: string
  readonly from: string
  readonly subject: string
  readonly text: string
  readonly html: string | null
  /** Epoch milliseconds. */
  readonly sent_at: number
}

export type PriceChange =
  | { readonly code: string; readonly usd: DecimalText }
  /** May be negative: `-5` makes the price 5 % lower. */
  | { readonly code: string; readonly changePercent: DecimalText }

/** What docs/api.md promises of the sandbox: tools rely on it. Networks are named as in the interface. */
export type SandboxRoutes = {
  /** A real transaction on the local chain to the order's deposit address. Null amount: what is asked. */
  pay(orderId: string, amount: DecimalText | null): Promise<DeskOutcome<{ readonly tx_hash: string }>>
  mine(network: string, blocks: number): Promise<DeskOutcome<Record<string, never>>>
  reorg(network: string, depth: number): Promise<DeskOutcome<Record<string, never>>>
  /** Double spend. Null `to`: back to whoever paid. */
  replace(txHash: string, to: string | null): Promise<DeskOutcome<{ readonly tx_hash: string }>>
  prices(change: PriceChange): Promise<DeskOutcome<Record<string, never>>>
  /** Moves the time that orders live by; answers what it is now, in epoch milliseconds. */
  clock(advanceSeconds: number): Promise<DeskOutcome<{ readonly now: number }>>
  /** A fresh valid address that is not ours. */
  address(network: string): Promise<DeskOutcome<{ readonly address: string }>>
  /** What the chain says. Null currency: the network's native one. */
  balance(
    network: string,
    address: string,
    currency: string | null,
  ): Promise<DeskOutcome<{ readonly balance: DecimalText }>>
  /** Newest first. */
  mail(): Promise<DeskOutcome<{ readonly mails: readonly SandboxMail[] }>>
}
