import type { MessagePort } from 'node:worker_threads'

/** What passes between the simulator and its virtual machine. */
export type VmAccount = {
  readonly lamports: bigint
  readonly owner: string
  /** In base64. */
  readonly data: string
}

export type VmRun = {
  /** The transaction in base64. Neither its signatures nor its blockhash are looked at. */
  readonly wire: string
  /** What it names, as the chain has it now; null: not there, or a program that the machine brings itself. */
  readonly accounts: readonly (readonly [address: string, account: VmAccount | null])[]
  /** Of these it tells what became of them. */
  readonly written: readonly string[]
}

export type VmOutcome = {
  /** In the words of a node; null when all went well. */
  readonly err: unknown
  readonly logs: readonly string[]
  readonly unitsConsumed: number
  /** In the order of `written`; null: not there any more. Empty when it failed. */
  readonly accounts: readonly (VmAccount | null)[]
}

export type ToVm = { readonly run: VmRun } | { readonly stop: true }
export type FromVm = { readonly ready: true } | { readonly outcome: VmOutcome } | { readonly failed: string }

/** `wake` is counted up with every message from the machine: somebody may sleep on it. */
export type VmLine = { readonly port: MessagePort; readonly wake: Int32Array }
