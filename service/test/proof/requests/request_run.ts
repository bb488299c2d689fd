import { assert } from '../../../src/domain/assert.ts'
import type { Conformity } from '../../../src/http/testing/conformity.ts'
import { chanceFrom } from '../../harness/chance.ts'
import { openRawLine, type RawLine } from '../../harness/raw_line.ts'
import { findFault } from './answer_check.ts'
import { asItIs, type GeneratedCase, generateCase, type Weather } from './generated_case.ts'
import type { KnownExchange } from './known_exchange.ts'
import type { Operation } from './operations.ts'
import { bytesOf, type Sendable, shellLine, signed } from './sendable.ts'

export type RequestRun = {
  /** Says the next `count` requests over all lines. */
  say(count: number, weather?: Weather): Promise<void>
  /** How many were done and how many refused, by operation. */
  readonly counts: ReadonlyMap<string, { done: number; refused: number }>
  /** One for each kind, in words that name the request and how to say it again. */
  readonly faults: ReadonlyMap<string, string>
}

const LINES = 16

/** Numbered requests from a seed: what the number chooses is the same in every run, what it meets may differ. */
export function startRequestRun(options: {
  readonly port: number
  readonly seed: number
  readonly operations: readonly Operation[]
  readonly known: KnownExchange
  readonly conforms: Conformity
}): RequestRun {
  const { port, seed, operations, known, conforms } = options
  const counts = new Map(operations.map(({ id }) => [id, { done: 0, refused: 0 }]))
  const faults = new Map<string, string>()
  let number = 0
  const sayOne = async (line: RawLine, weather: Weather) => {
    number += 1
    const name = `request ${number} of seed ${seed}`
    const next = await say(
      line,
      weather,
      name,
      generateCase(operations, known, chanceFrom(seed, number), weather),
    )
    if (next === undefined) return
    const operation = operations.find(({ id }) => id === next.operation)
    assert(operation !== undefined, `${next.operation} is an operation`)
    const followUp = { made: asItIs(operation, next.right), right: next.right }
    await say(line, weather, `what follows ${name}`, followUp)
  }
  const say = async (line: RawLine, weather: Weather, name: string, { made, right }: GeneratedCase) => {
    const request: Sendable = made.signer === null ? made.request : signed(made.request, made.signer)
    const bytes = bytesOf(request)
    const tellFault = (fault: string) => {
      const kind = `${made.operation}, ${made.what}: ${fault.slice(0, 60)}`
      if (!faults.has(kind)) {
        faults.set(kind, `${name}: ${made.operation}, ${made.what}\n  ${fault}\n  ${shellLine(bytes, port)}`)
      }
    }
    try {
      const answer = await line.ask(bytes, { isHead: request.method === 'HEAD' })
      const fault = findFault(made, answer, conforms, weather)
      if (fault !== null) tellFault(fault)
      const isDone = answer.status < 400
      const count = counts.get(made.operation)
      if (count !== undefined) count[isDone ? 'done' : 'refused'] += 1
      if (!isDone) right.letGo?.()
      else if (made.expected === 'success' && answer.json !== undefined) {
        right.learn?.(answer)
        return right.followUp?.(answer)
      }
    } catch (error) {
      tellFault(String(error))
    }
    return undefined
  }
  return {
    counts,
    faults,
    say: async (count, weather = 'calm') => {
      const last = number + count
      const lines = Array.from({ length: LINES }, () => openRawLine(port))
      await Promise.all(
        lines.map(async (line) => {
          while (number < last) await sayOne(line, weather)
        }),
      )
      for (const line of lines) line.close()
    },
  }
}
