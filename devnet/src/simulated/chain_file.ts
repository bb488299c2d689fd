import {
  closeSync,
  existsSync,
  fstatSync,
  ftruncateSync,
  openSync,
  readFileSync,
  truncateSync,
  writeSync,
} from 'node:fs'

/** Lines of plain data (JSON, and bigint), to which only ever more are added. */
export type ChainFile<Line> = {
  /** What was there when it was opened, oldest first. */
  readonly lines: readonly Line[]
  /** Is with the kernel when this returns: a kill -9 of this process no longer loses it. When it throws, the line never happened. */
  append(line: Line): void
  close(): void
}

/** A cut of the power, say, has left something in the middle of a file that is no line of it: nobody knows what stood there. */
export class DamagedChainFile extends Error {
  override readonly name = 'DamagedChainFile'
}

/** Throws `DamagedChainFile`. */
export function openChainFile<Line>(path: string): ChainFile<Line> {
  const lines = existsSync(path) ? readLines<Line>(path) : []
  const file = openSync(path, 'a', 0o600)
  return {
    lines,
    append: (line) => writeAll(file, Buffer.from(`${JSON.stringify(line, spell)}\n`)),
    close: () => closeSync(file),
  }
}

/** Whoever was killed while writing leaves half a line, which never happened. */
function readLines<Line>(path: string): Line[] {
  const bytes = readFileSync(path)
  const whole = bytes.lastIndexOf('\n') + 1
  if (whole < bytes.length) truncateSync(path, whole)
  const text = bytes.subarray(0, whole).toString().trimEnd()
  return text === '' ? [] : text.split('\n').map((line, index) => readLine<Line>(path, index + 1, line))
}

function readLine<Line>(path: string, number: number, line: string): Line {
  try {
    return JSON.parse(line, readBigint) as Line
  } catch (cause) {
    throw new DamagedChainFile(`${path} is damaged: its line ${number} cannot be read`, { cause })
  }
}

/** A full disk may take half a line before it refuses: that is taken back, or the next one would be written behind it. */
function writeAll(file: number, bytes: Buffer): void {
  const { size } = fstatSync(file)
  try {
    for (let written = 0; written < bytes.length; ) written += writeSync(file, bytes, written)
  } catch (error) {
    ftruncateSync(file, size)
    throw error
  }
}

/** Refuses what would come back as something else (bytes, dates, maps): better now than at the next start. */
function spell(this: Record<string, unknown>, key: string, value: unknown): unknown {
  if (typeof value === 'bigint') return { $bigint: value.toString() }
  const given = this[key]
  const kind = typeof given === 'object' && given !== null ? Object.getPrototypeOf(given) : null
  if (kind === null || kind === Object.prototype || kind === Array.prototype) return value
  throw new TypeError(`${key} is no plain data: ${kind.constructor?.name}`)
}

function readBigint(_key: string, value: unknown): unknown {
  const spelt = (value as { $bigint?: unknown } | null)?.$bigint
  return typeof spelt === 'string' ? BigInt(spelt) : value
}
