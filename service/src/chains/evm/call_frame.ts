import { fields, list, lowerAddress, quantity } from './decode.ts'
import { NodeNonsense } from './json_rpc.ts'

/** One call of a transaction's call tree, whichever way the node tells it. Addresses in lowercase. */
export type CallFrame = {
  readonly kind: string
  readonly from: string
  /** Null when a contract was to be created and was not. */
  readonly to: string | null
  readonly wei: bigint
  /** It and everything below it was undone. */
  readonly isFailed: boolean
  readonly calls: readonly CallFrame[]
}

/** As `callTracer` tells it. */
export function decodeCallFrame(value: unknown): CallFrame {
  const frame = fields(value, 'call frame')
  const { type, error } = frame
  if (typeof type !== 'string') throw new NodeNonsense("the node's call frame has no type")
  return {
    kind: type.toUpperCase(),
    from: lowerAddress(frame.from, 'call frame.from'),
    to: isAbsent(frame.to) ? null : lowerAddress(frame.to, 'call frame.to'),
    wei: isAbsent(frame.value) ? 0n : quantity(frame.value, 'call frame.value'),
    isFailed: !isAbsent(error) && error !== '',
    calls: isAbsent(frame.calls) ? [] : list(frame.calls, 'call frame.calls').map(decodeCallFrame),
  }
}

export function isAbsent(value: unknown): value is null | undefined {
  return value === null || value === undefined
}
