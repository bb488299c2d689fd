import { Name, Serializer } from '@wharfkit/antelope'
import type { Included, OpenBlock } from '../simulated/chain.ts'
import type { Change } from '../simulated/state.ts'
import { type EosTransaction, sha256 } from './decode_transaction.ts'
import type { EosEntry } from './entries.ts'
import type { ActionTrace } from './run_transaction.ts'

export type EosResult = {
  /** `hard_fail`: it is in the block, and nothing that it says happened. */
  readonly status: 'executed' | 'hard_fail'
  readonly traces: readonly ActionTrace[]
}

export type Seal = {
  /** Its first four bytes are the number of the block. */
  readonly hash: string
  readonly transactionMroot: string
  readonly actionMroot: string
  /** The number of the first action of the next block, which the node itself puts there. */
  readonly nextOnblockSequence: number
}

export type Eos = { entry: EosEntry; tx: EosTransaction; result: EosResult; seal: Seal }

export const PRODUCER = 'eosio'
const SLOT_MS = 500
const SLOTS_SINCE_MS = Date.UTC(2000, 0, 1)
const NONE = '00'.repeat(32)

/** Blocks have the time of their half second. */
export function slotTimeMs(timeMs: number): number {
  return timeMs - (timeMs % SLOT_MS)
}

export function sealBlock(
  block: OpenBlock<Eos>,
  changes: readonly Change<EosEntry>[],
  nextOnblockSequence: number,
): Seal {
  const transactionMroot = transactionsRoot(block.included)
  // Not the root of a tree of receipts: of what changed, and of chance, so that no two blocks are the same.
  const spelt = JSON.stringify(changes, (_key, value) => (typeof value === 'bigint' ? `${value}` : value))
  const actionMroot = sha256(Buffer.from(block.salt + spelt).toString('hex'))
  const header = headerBytes(block, transactionMroot, actionMroot)
  const number = block.height.toString(16).padStart(8, '0')
  const hash = number + sha256(header).slice(8)
  return { hash, transactionMroot, actionMroot, nextOnblockSequence }
}

function transactionsRoot(included: readonly Included<Eos>[]): string {
  return included.length === 0
    ? NONE
    : sha256(included.map(({ tx, result }) => sha256(tx.id) + statusByte(result)).join(''))
}

function statusByte({ status }: EosResult): string {
  return status === 'executed' ? '00' : '02'
}

/** https://docs.antelope.io/docs/latest/advanced-topics/consensus-protocol#block-header */
function headerBytes(block: OpenBlock<Eos>, transactionMroot: string, actionMroot: string): string {
  const slot = Buffer.alloc(4)
  slot.writeUInt32LE((slotTimeMs(block.timeMs) - SLOTS_SINCE_MS) / SLOT_MS)
  const producer = Serializer.encode({ object: Name.from(PRODUCER) }).hexString
  const [confirmed, scheduleVersion, noNewProducers, noExtensions] = ['0000', '00000000', '00', '00']
  return [
    slot.toString('hex'),
    producer,
    confirmed,
    block.parentHash,
    transactionMroot,
    actionMroot,
    scheduleVersion,
    noNewProducers,
    noExtensions,
  ].join('')
}
