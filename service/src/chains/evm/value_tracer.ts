/** Stands where a call moved no value and one below it did. */
const NOBODY = `0x${'0'.repeat(40)}`

/**
 * Runs in the node (https://geth.ethereum.org/docs/developers/evm-tracing/custom-tracer) and tells a call tree as `callTracer`
 * does, of no more than the calls that moved value and those around them. `callTracer` and `trace_block` repeat what every call
 * was given: a transaction of two million gas that calls nobody with 32 KB, over and over, is longer there than a text can be,
 * and anybody may send one. A call that moves value takes 6,700 gas.
 */
export const VALUE_TRACER = `{
  open: [],
  moved: [],
  enter: function (call) {
    var type = call.getType(), value = call.getValue()
    var moves = type === 'CALL' || type === 'CREATE' || type === 'CREATE2' || type === 'SELFDESTRUCT'
    this.open.push(
      moves && value && value > 0
        ? { type: type, from: toHex(call.getFrom()), to: toHex(call.getTo()), value: '0x' + value.toString(16), calls: [] }
        : { type: 'NONE', from: '${NOBODY}', calls: [] }
    )
  },
  exit: function (result) {
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
