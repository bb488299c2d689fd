import { NOBODY } from './decode.ts'

/**
 * Runs in the node (https://geth.ethereum.org/docs/developers/evm-tracing/custom-tracer) and tells a call tree as `callTracer`
 * does, of no more than the calls that moved value and those around them. `callTracer` and `trace_block` repeat what every call
 * was given: a transaction of two million gas that calls nobody with 32 KB, over and over, is longer there than a text can be,
 * and anybody may send one. A call that moves value takes 6,700 gas.
 */
export const VALUE_TRACER = valueTracer('')

/**
 * The same for nodes that say of a SELFDESTRUCT that the call around it was entered once more (revm-inspectors, and so reth and anvil):
 * looks at every instruction, which takes a node many times as long, and takes what it is about to move from there.
 */
export const STEPPING_VALUE_TRACER = valueTracer(`
  step: function (log, db) {
    this.leaving = null
    if (log.op.toNumber() !== 0xff) return
    var own = log.contract.getAddress(), heir = '${NOBODY.slice(2)}' + log.stack.peek(0).toString(16)
    this.leaving = {
      type: 'SELFDESTRUCT', from: toHex(own), to: '0x' + heir.slice(-40), value: '0x' + db.getBalance(own).toString(16), calls: []
    }
  },`)

function valueTracer(step: string): string {
  return `{
  open: [],
  moved: [],
  leaving: null,${step}
  enter: function (call) {
    var leaving = this.leaving
    this.leaving = null
    if (leaving) {
      this.open.push(leaving)
      return
    }
    var type = call.getType(), value = call.getValue()
    var moves = type === 'CALL' || type === 'CREATE' || type === 'CREATE2' || type === 'SELFDESTRUCT'
    this.open.push(
      moves && value && value > 0
        ? { type: type, from: toHex(call.getFrom()), to: toHex(call.getTo()), value: '0x' + value.toString(16), calls: [] }
        : { type: 'NONE', from: '${NOBODY}', calls: [] }
    )
  },
  exit: function (result) {
    this.leaving = null
    var call = this.open.pop()
    if (result.getError() || (call.type === 'NONE' && call.calls.length === 0)) return
    var above = this.open.length > 0 ? this.open[this.open.length - 1].calls : this.moved
    above.push(call)
  },
  fault: function () {},
  result: function (context) {
    return {
      type: context.type,
      from: toHex(context.from),
      to: toHex(context.to),
      value: '0x' + context.value.toString(16),
      error: context.error || '',
      calls: this.moved
    }
  }
}`
}
