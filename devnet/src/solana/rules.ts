import { createHash } from 'node:crypto'
import { base58 } from '@scure/base'
import type { Block, Rules } from '../simulated/chain.ts'
import type { Draft } from '../simulated/state.ts'
import type { SolanaTransaction } from './decode_transaction.ts'
import { keys, type SolanaEntry } from './entries.ts'
import { Refused, runTransaction, type SolanaResult } from './run_transaction.ts'
import type { Vm } from './vm.ts'

export type Seal = { readonly hash: string }
export type Solana = { entry: SolanaEntry; tx: SolanaTransaction; result: SolanaResult; seal: Seal }
export type SolanaBlock = Block<Solana>

/** Blocks on top of one that is final. The main network's are 31; these are fewer, so that nobody waits for them. */
export const FINAL_DEPTH = 1
const BLOCK_STEP_MS = 400

/** Of nine slots in ten a leader makes a block; heights count blocks. */
const BLOCKS_BEFORE_A_SKIP = 9

export function slotOf(height: number): number {
  return height + Math.floor(height / BLOCKS_BEFORE_A_SKIP)
}

/** Undefined: the slot was skipped. */
export function heightOf(slot: number): number | undefined {
  const height = slot - Math.floor(slot / (BLOCKS_BEFORE_A_SKIP + 1))
  return slotOf(height) === slot ? height : undefined
}

export function solanaRules(vm: Vm, genesis: (draft: Draft<SolanaEntry>) => void): Rules<Solana> {
  return {
    firstHeight: 0,
    blockStepMs: BLOCK_STEP_MS,
    afterReorg: 'transactions are gone',
    genesis,
    run: (tx, draft, { height }) => {
      try {
        return { included: runTransaction(tx, draft, height, vm) }
      } catch (error) {
        if (error instanceof Refused) return 'void'
        throw error
      }
    },
    seal: ({ height, parentHash, salt, included }, draft) => {
      const said = JSON.stringify([height, parentHash, salt, included.map(({ tx }) => tx.id)])
      const hash = base58.encode(createHash('sha256').update(said).digest())
      draft.set(keys.reference(hash), { height })
      return { hash }
    },
  }
}
