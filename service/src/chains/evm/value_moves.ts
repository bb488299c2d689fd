import { createHash } from 'node:crypto'
import type { CallFrame } from './call_frame.ts'

/** Native coin that one account gave to another while a transaction ran. Addresses in lowercase. */
export type ValueMove = {
  /** Place in the call tree: `0` is the transaction's own value, `0.2.1` an inner call's. */
  readonly path: string
  readonly from: string
  readonly to: string
  readonly wei: bigint
  /** Of a SELFDESTRUCT: the account that ran it, which `from` has to be. */
  readonly selfdestructOf?: string
}

/**
 * What really moved in a transaction whose receipt says success. A frame that failed took everything below it
 * back, though the frames below do not say so. DELEGATECALL and CALLCODE show a value but run in the caller's own
 * account, and STATICCALL cannot carry one.
 *
 * Calls are numbered counting only those in which value moved: nodes disagree on whether calls to precompiles and
 * calls that failed for lack of balance are in the tree, and the number must not depend on the node.
 */
export function valueMoves(root: CallFrame): readonly ValueMove[] {
  return movesBelow(root, root.from).map(({ path, ...move }) => ({ ...move, path: pathText([0, ...path]) }))
}

type Move = Omit<ValueMove, 'path'> & { readonly path: readonly number[] }

/** `caller`: the account that the calling code runs in. */
function movesBelow(frame: CallFrame, caller: string): readonly Move[] {
  if (frame.isFailed) return []
  const moves: Move[] = []
  if (carriesValue(frame)) {
    const { from, to, wei, kind } = frame
    moves.push({ path: [], from, to, wei, ...(kind === 'SELFDESTRUCT' && { selfdestructOf: caller }) })
  }
  const runsInCaller = frame.kind === 'DELEGATECALL' || frame.kind === 'CALLCODE'
  const account = runsInCaller ? caller : (frame.to ?? caller)
  let ordinal = 0
  for (const call of frame.calls) {
    const inner = movesBelow(call, account)
    if (inner.length === 0) continue
    for (const move of inner) moves.push({ ...move, path: [ordinal, ...move.path] })
    ordinal += 1
  }
  return moves
}

function carriesValue(frame: CallFrame): frame is CallFrame & { to: string } {
  const movesByKind =
    frame.kind === 'CALL' ||
    frame.kind === 'CREATE' ||
    frame.kind === 'CREATE2' ||
    frame.kind === 'SELFDESTRUCT'
  return movesByKind && frame.wei > 0n && frame.to !== null && frame.to !== frame.from
}

/** The call stack is 1024 deep, and an id that long would not fit a database index: an absurd path is named by its digest. */
const PATH_TEXT_MAX = 100

function pathText(path: readonly number[]): string {
  const text = path.join('.')
  return text.length <= PATH_TEXT_MAX ? text : createHash('sha256').update(text).digest('hex')
}
