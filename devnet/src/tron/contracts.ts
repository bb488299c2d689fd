import type { Draft } from '../simulated/state.ts'
import {
  type Account,
  keys,
  newAccount,
  readAccount,
  readContract,
  readSlot,
  type TronEntry,
} from './entries.ts'
import type { Evm } from './evm.ts'
import type { EvmOutcome, EvmRun } from './evm_messages.ts'

/** Where a contract runs: the block that it will be in. */
export type EvmPlace = { readonly height: number; readonly timeMs: number }

/** A call that takes longer than a block may is stopped; here that is so much energy. */
const ENERGY_IN_TIME = 3_000_000n

export type Execution = Omit<EvmOutcome, 'error' | 'balances' | 'codes' | 'slots'> & {
  /** https://developers.tron.network/docs/resource-model: SUCCESS, REVERT, OUT_OF_ENERGY… */
  readonly contractRet: string
}

export type Call = {
  /** 41…, as everywhere outside the EVM. */
  readonly to: string
  readonly caller: string
  readonly value: bigint
  readonly data: string
  readonly energyMax: bigint
  /** Deploys this at `to`. */
  readonly code?: string
}

/** Runs a contract on the draft, which changes only when it succeeds. */
export function execute(evm: Evm, draft: Draft<TronEntry>, call: Call, place: EvmPlace): Execution {
  const { to, caller, energyMax, ...rest } = call
  const isCapped = energyMax > ENERGY_IN_TIME
  const run: EvmRun = {
    ...rest,
    ...place,
    to: to.slice(2),
    caller: caller.slice(2),
    energyMax: isCapped ? ENERGY_IN_TIME : energyMax,
  }
  const { error, balances, codes, slots, ...outcome } = evm.run(run, (question) => {
    const address = `41${question.address}`
    if (question.kind === 'slot') return { kind: 'slot', value: readSlot(draft, address, question.key) }
    const code = readContract(draft, address)?.code ?? ''
    return { kind: 'account', sun: readAccount(draft, address)?.balance, code }
  })
  const contractRet = error === undefined ? 'SUCCESS' : nameOf(error, isCapped)
  for (const [address, balance] of balances) setBalance(draft, `41${address}`, balance, place)
  for (const [address, code] of codes) {
    setBalance(draft, `41${address}`, readAccount(draft, `41${address}`)?.balance ?? 0n, place)
    const made = { address: `41${address}`, origin: caller, name: '', abi: [], bytecode: '', code }
    draft.set(keys.contract(`41${address}`), made)
  }
  for (const [address, key, value] of slots) {
    if (value === '') draft.delete(keys.slot(`41${address}`, key))
    else draft.set(keys.slot(`41${address}`, key), { value })
  }
  // A revert leaves what it did not use; everything else that goes wrong takes all.
  const isAllTaken = error !== undefined && contractRet !== 'REVERT'
  return { ...outcome, contractRet, energyUsed: isAllTaken ? energyMax : outcome.energyUsed }
}

const NAMES: Readonly<Record<string, string>> = {
  revert: 'REVERT',
  'out of gas': 'OUT_OF_ENERGY',
  'code store out of gas': 'OUT_OF_ENERGY',
  'invalid JUMP': 'BAD_JUMP_DESTINATION',
  'invalid opcode': 'ILLEGAL_OPERATION',
  'stack underflow': 'STACK_TOO_SMALL',
  'stack overflow': 'STACK_TOO_LARGE',
}

function nameOf(error: string, isCapped: boolean): string {
  const name = NAMES[error] ?? 'UNKNOWN'
  return name === 'OUT_OF_ENERGY' && isCapped ? 'OUT_OF_TIME' : name
}

function setBalance(draft: Draft<TronEntry>, address: string, balance: bigint, { timeMs }: EvmPlace): void {
  const account: Account = readAccount(draft, address) ?? newAccount(address, 0n, timeMs)
  draft.set(keys.account(address), { ...account, balance })
}
