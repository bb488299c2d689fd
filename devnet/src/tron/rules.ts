import type { Block, OpenBlock, Rules } from '../simulated/chain.ts'
import type { Change } from '../simulated/state.ts'
import { sha256Hex } from './addresses.ts'
import { referenceOf, type Seal, sealBlock } from './blocks.ts'
import type { TronTransaction } from './decode_transaction.ts'
import { keys, type TronEntry } from './entries.ts'
import type { Evm } from './evm.ts'
import { fillGenesis } from './genesis.ts'
import { runTransaction, type TronResult } from './run_transaction.ts'
import { Refused } from './transfers.ts'

export type Tron = { entry: TronEntry; tx: TronTransaction; result: TronResult; seal: Seal }
export type TronBlock = Block<Tron>

/** A block is solid when 19 of the 27 witnesses have built on it: with all of them at work the main network's head is then about this much higher. */
export const SOLID_DEPTH = 19
export const BLOCK_STEP_MS = 3_000

export function solidHeight(head: TronBlock): number {
  return Math.max(0, head.height - SOLID_DEPTH)
}

export function tronRules(evm: Evm): Rules<Tron> {
  return {
    firstHeight: 0,
    blockStepMs: BLOCK_STEP_MS,
    afterReorg: 'transactions wait again',
    genesis: (state) => fillGenesis(state, evm),
    run: (tx, draft, place) => {
      try {
        return { included: runTransaction(tx, draft, place, evm) }
      } catch (error) {
        if (error instanceof Refused) return 'void'
        throw error
      }
    },
    seal: (block, draft) => {
      const seal = sealBlock(block, changesHash(block, draft.changes()))
      const { bytes, hash } = referenceOf(seal.hash)
      draft.set(keys.reference(bytes), { hash })
      draft.set(keys.head, { timeMs: block.timeMs })
      return seal
    },
  }
}

/** Not the root of a tree of all accounts: of what changed, and of chance, so that no two blocks are the same. */
function changesHash({ salt }: OpenBlock<Tron>, changes: readonly Change<TronEntry>[]): string {
  const spelt = JSON.stringify(changes, (_key, value) => (typeof value === 'bigint' ? `${value}` : value))
  return sha256Hex(Buffer.from(salt + spelt).toString('hex'))
}
