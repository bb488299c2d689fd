import type { MessagePort } from 'node:worker_threads'

/** What passes between the simulator and its EVM. Addresses here are 20 bytes and all bytes are hex, without 0x. */
export type EvmRun = {
  /** Runs the code of `to`; with `code`, deploys it there. */
  readonly to: string
  readonly code?: string
  readonly caller: string
  /** In sun. */
  readonly value: bigint
  readonly data: string
  readonly energyMax: bigint
  readonly height: number
  readonly timeMs: number
}

export type EvmLog = {
  readonly address: string
  readonly topics: readonly string[]
  readonly data: string
}

/** TRX that a contract moves. */
export type EvmPayment = {
  readonly from: string
  readonly to: string
  readonly sun: bigint
  /** Undone again, because a call around it failed. */
  readonly isRejected: boolean
}

export type EvmOutcome = {
  /** In the words of the EVM; undefined when all went well. */
  readonly error?: string
  readonly energyUsed: bigint
  readonly returned: string
  readonly logs: readonly EvmLog[]
  readonly internal: readonly EvmPayment[]
  /** What is to be written when all went well. */
  readonly balances: readonly (readonly [address: string, sun: bigint])[]
  readonly codes: readonly (readonly [address: string, code: string])[]
  readonly slots: readonly (readonly [address: string, key: string, value: string])[]
}

export type EvmQuestion =
  | { readonly kind: 'account'; readonly address: string }
  | { readonly kind: 'slot'; readonly address: string; readonly key: string }

export type EvmAnswer =
  | { readonly kind: 'account'; readonly sun: bigint | undefined; readonly code: string }
  | { readonly kind: 'slot'; readonly value: string }

export type ToEvm = { readonly run: EvmRun } | { readonly answer: EvmAnswer }
export type FromEvm =
  | { readonly ready: true }
  | { readonly question: EvmQuestion }
  | { readonly outcome: EvmOutcome }
  | { readonly failed: string }

/** `wake` is counted up with every message from the EVM: somebody may sleep on it. */
export type EvmLine = { readonly port: MessagePort; readonly wake: Int32Array }
