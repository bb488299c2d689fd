import { type AssetId, isAssetId } from '../../domain/catalog/assets.ts'

/**
 * The request itself is wrong; the message names the field and may be shown to whoever asked. What reads a field here, or an
 * intent out of fields, returns it checked or throws this.
 */
export class Malformed extends Error {}

export type Fields = Readonly<Record<string, unknown>>

export const UINT32_MAX = 2 ** 32 - 1

/** An object with exactly these fields of its own. */
export function record(name: string, value: unknown, names: readonly string[]): Fields {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new Malformed(`${name} is not an object`)
  }
  for (const key of names) if (!Object.hasOwn(value, key)) throw new Malformed(`${name}.${key} is missing`)
  if (Object.keys(value).length !== names.length) throw new Malformed(`${name} has a field that is not known`)
  return value as Fields
}

export function orNull<Value>(value: unknown, read: (value: unknown) => Value): Value | null {
  return value === null ? null : read(value)
}

export function text(name: string, value: unknown, shape: RegExp): string {
  if (typeof value !== 'string' || !shape.test(value)) throw new Malformed(`${name} is malformed`)
  return value
}

export function oneOf<const Word extends string>(name: string, value: unknown, words: readonly Word[]): Word {
  const word = words.find((word) => word === value)
  if (word === undefined) throw new Malformed(`${name} is one of ${words.join(', ')}`)
  return word
}

export function asset(name: string, value: unknown): AssetId {
  if (typeof value !== 'string' || !isAssetId(value)) throw new Malformed(`${name} is not an asset we know`)
  return value
}

export function boolean(name: string, value: unknown): boolean {
  if (typeof value !== 'boolean') throw new Malformed(`${name} is true or false`)
  return value
}

export function integer(name: string, value: unknown, min: number, max: number): number {
  if (typeof value !== 'number' || !Number.isInteger(value) || value < min || value > max) {
    throw new Malformed(`${name} is a whole number from ${min} to ${max}`)
  }
  return value + 0 // -0 becomes 0
}

export function bounded(name: string, value: unknown, min: bigint, max: bigint): bigint {
  if (typeof value !== 'bigint' || value < min || value > max) {
    throw new Malformed(`${name} is a bigint from ${min} to ${max}`)
  }
  return value
}
