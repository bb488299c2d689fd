/** From 0 to below 1; the same seed gives the same row. https://github.com/cprosche/mulberry32 (public domain) */
export function seededChance(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

export function shuffled<Item>(items: readonly Item[], chance: () => number): Item[] {
  const left = [...items]
  for (let at = left.length - 1; at > 0; at -= 1) {
    const other = Math.floor(chance() * (at + 1))
    ;[left[at], left[other]] = [left[other] as Item, left[at] as Item]
  }
  return left
}

/** One item after the other in an order by chance, each as often as every other. */
export function dealer<Item>(items: readonly Item[], chance: () => number): () => Item {
  let deck: Item[] = []
  return () => {
    if (deck.length === 0) deck = shuffled(items, chance)
    const item = deck.pop()
    if (item === undefined) throw new Error('there is nothing to deal')
    return item
  }
}

export function pick<Item>(items: readonly Item[], chance: () => number): Item {
  const item = items[Math.floor(chance() * items.length)]
  if (item === undefined) throw new Error('there is nothing to pick from')
  return item
}
