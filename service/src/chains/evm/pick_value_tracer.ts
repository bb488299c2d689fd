import { decodeCallFrame } from './call_frame.ts'
import { NOBODY } from './decode.ts'
import { type JsonRpc, NodeNonsense } from './json_rpc.ts'
import { valueMoves } from './value_moves.ts'
import { STEPPING_VALUE_TRACER, VALUE_TRACER } from './value_tracer.ts'

/**
 * The first that tells of what a contract leaves that destroys itself. Rejects where none does: tracers in JavaScript differ in how they
 * see a SELFDESTRUCT, and by one that sees none what it moves would be missed.
 */
export async function pickValueTracer(rpc: JsonRpc): Promise<string> {
  for (const tracer of [VALUE_TRACER, STEPPING_VALUE_TRACER]) {
    const root = decodeCallFrame(await rpc.call('debug_traceCall', probeWith(tracer)))
    const [moved, ...more] = valueMoves(root)
    const isSeen = moved?.from === PROBED && moved.to === HEIR && moved.wei === 1n && more.length === 0
    if (isSeen) return tracer
  }
  throw new NodeNonsense(
    'its tracers in JavaScript do not tell what SELFDESTRUCT moves, and nothing is read by them: the block takes another node',
  )
}

/** Nobody's. */
const PROBED = `0x${'5d'.repeat(20)}`
const HEIR = `0x${'e1'.repeat(20)}`

/**
 * https://geth.ethereum.org/docs/interacting-with-geth/rpc/ns-debug#debugtracecall: a contract that holds 1 wei and leaves it (PUSH20,
 * SELFDESTRUCT). To somebody who has something already: a new account costs much, and far more from EIP-8037 on.
 */
function probeWith(tracer: string): readonly unknown[] {
  const stateOverrides = {
    [PROBED]: { code: `0x73${HEIR.slice(2)}ff`, balance: '0x1' },
    [HEIR]: { balance: '0x1' },
  }
  return [{ from: NOBODY, to: PROBED, gas: '0xf4240' }, 'latest', { tracer, stateOverrides }]
}
