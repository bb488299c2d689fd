/**
 * JSON that gives back exactly what it was given, bigints included: a bigint travels as `{"$bigint":"123"}`.
 * Nothing else may have the key `$bigint`, so no value can be mistaken for another. What JSON would lose or
 * bend in silence (undefined, NaN, -0, a Date, `__proto__`) is refused with an error instead.
 */
export function stringifyExact(value: unknown): string {
  return JSON.stringify(encode(value, 0))
}

/** The inverse of `stringifyExact`. Throws on anything that it would not have written. */
export function parseExact(text: string): unknown {
  return decode(JSON.parse(text), 0)
}

const TAG = '$bigint'
/** Deeper than anything of ours; keeps hostile text from exhausting the stack. */
const DEPTH_MAX = 100

function encode(value: unknown, depth: number): unknown {
  if (typeof value === 'bigint') return { [TAG]: value.toString() }
  return walk(value, depth, encode)
}

function decode(value: unknown, depth: number): unknown {
  if (isPlainObject(value) && Object.hasOwn(value, TAG)) {
    const digits = value[TAG]
    if (Object.keys(value).length !== 1 || typeof digits !== 'string' || !/^(0|-?[1-9]\d*)$/.test(digits)) {
      throw new Error(`exact JSON: ${TAG} holds the digits of an integer and stands alone`)
    }
    return BigInt(digits)
  }
  return walk(value, depth, decode)
}

function walk(value: unknown, depth: number, visit: (value: unknown, depth: number) => unknown): unknown {
  if (depth > DEPTH_MAX) throw new Error(`exact JSON: nested deeper than ${DEPTH_MAX}`)
  if (value === null || typeof value === 'string' || typeof value === 'boolean') return value
  if (typeof value === 'number') {
    if (!Number.isFinite(value) || Object.is(value, -0))
      throw new Error(`exact JSON: ${value} has no exact text`)
    return value
  }
  // Array.from visits holes too, as undefined, which is refused.
  if (Array.isArray(value)) return Array.from(value, (item) => visit(item, depth + 1))
  if (!isPlainObject(value)) throw new Error(`exact JSON: a ${kindOf(value)} has no exact text`)
  return Object.fromEntries(
    Object.entries(value).map(([key, item]) => {
      if (key === TAG || key === '__proto__') throw new Error(`exact JSON: the key ${key} is not allowed`)
      return [key, visit(item, depth + 1)]
    }),
  )
}

function isPlainObject(value: unknown): value is Record<string, unknown> {
  if (typeof value !== 'object' || value === null) return false
  const prototype: unknown = Object.getPrototypeOf(value)
  return prototype === Object.prototype || prototype === null
}

function kindOf(value: NonNullable<unknown> | undefined): string {
  return typeof value === 'object' ? (value.constructor?.name ?? 'object') : typeof value
}
