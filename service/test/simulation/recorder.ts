import { createHash } from 'node:crypto'

/** What happened in a schedule, line by line; its hash tells whether the same happened again. */
export class Recorder {
  readonly #hash = createHash('sha256')
  readonly #print: ((line: string) => void) | null
  /** How often each kind of thing happened. */
  readonly counts = new Map<string, number>()
  lines = 0

  /** `print` is told every line as well. */
  constructor(print: ((line: string) => void) | null) {
    this.#print = print
  }

  note(...parts: readonly unknown[]): void {
    const line = parts.map((part) => (typeof part === 'string' ? part : show(part))).join(' ')
    this.lines += 1
    this.#hash.update(line).update('\n')
    this.#print?.(line)
  }

  count(what: string, more = 1): void {
    this.counts.set(what, (this.counts.get(what) ?? 0) + more)
  }

  digest(): string {
    return this.#hash.digest('hex')
  }
}

function show(part: unknown): string {
  return part === undefined ? 'nothing' : JSON.stringify(part, replace)
}

/** The version of an order names the transaction that wrote it, and the server counts those of all schedules. */
function replace(key: string, value: unknown): unknown {
  if (key === 'version') return 'its version'
  return typeof value === 'bigint' ? `${value}n` : value
}
