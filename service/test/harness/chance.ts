/** All chance of a run out of one seed: the same seed draws the same. */
export type Chance = {
  /** From 0 to below 1. */
  next(): number
  /** True in this share of all draws, 0 to 1. */
  happens(share: number): boolean
  /** A whole number from 0 to `limit` − 1. */
  below(limit: number): number
  /** A whole number, both ends possible. */
  between(least: number, most: number): number
  pick<Item>(items: readonly Item[]): Item
  shuffled<Item>(items: readonly Item[]): Item[]
  bytes(count: number): Buffer
  /** `0x` and so many bytes. */
  hex(count: number): `0x${string}`
}

/** `place`: what is drawn there is the same in every run, whatever was drawn elsewhere and in whatever order. */
export function chanceFrom(seed: number, place = 0): Chance {
  const next = mulberry32(seed * 1_000_003 + place)
  const below = (limit: number) => Math.floor(next() * limit)
  return {
    next,
    happens: (share) => next() < share,
    below,
    between: (least, most) => least + below(most - least + 1),
    pick: (items) => {
      if (items.length === 0) throw new Error('there is nothing to pick from')
      return items[below(items.length)] as (typeof items)[number]
    },
    shuffled: (items) => shuffled(items, below),
    bytes: (count) => bytes(count, below),
    hex: (count) => `0x${bytes(count, below).toString('hex')}`,
  }
}

/** One item after the other in an order by chance, each as often as every other. */
export function dealer<Item>(items: readonly Item[], chance: Chance): () => Item {
  let deck: Item[] = []
  return () => {
    if (deck.length === 0) deck = chance.shuffled(items)
    const item = deck.pop()
    if (item === undefined) throw new Error('there is nothing to deal')
    return item
  }
}

/** https://github.com/cprosche/mulberry32 (public domain) */
function mulberry32(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

function bytes(count: number, below: (limit: number) => number): Buffer {
  const made = Buffer.alloc(count + 3)
  for (let at = 0; at < count; at += 4) made.writeUInt32LE(below(2 ** 32), at)
  return made.subarray(0, count)
}

function shuffled<Item>(items: readonly Item[], below: (limit: number) => number): Item[] {
  const left = [...items]
  for (let at = left.length - 1; at > 0; at -= 1) {
    const other = below(at + 1)
    ;[left[at], left[other]] = [left[other] as Item, left[at] as Item]
  }
  return left
}
