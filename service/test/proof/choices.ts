import { seededChance } from '../harness/chance.ts'

/** Choices that a seed repeats. */
export type Choices = {
  /** A whole number from 0 to `below` − 1. */
  int(below: number): number
  pick<Value>(from: readonly Value[]): Value
  /** True in this share of all cases. */
  happens(share: number): boolean
  bytes(length: number): Buffer
}

/** Those of one place: the same in every run, whatever was chosen elsewhere and in whatever order. */
export function choicesOf(seed: number, place: number): Choices {
  const chance = seededChance(seed * 1_000_003 + place)
  const int = (below: number) => Math.floor(chance() * below)
  return {
    int,
    pick: (from) => {
      if (from.length === 0) throw new Error('there is nothing to pick from')
      return from[int(from.length)] as (typeof from)[number]
    },
    happens: (share) => chance() < share,
    bytes: (length) => Buffer.from(Array.from({ length }, () => int(256))),
  }
}
