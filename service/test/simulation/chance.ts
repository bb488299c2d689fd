import { chanceFrom, type Chance as Draws } from '../harness/chance.ts'

/** Everything in a schedule that is left to chance comes from one of these. */
export class Chance {
  readonly #draws: Draws

  constructor(seed: number) {
    this.#draws = chanceFrom(seed)
  }

  /** True in so many of cases, from 0 to 1. */
  isHit(share: number): boolean {
    return share > 0 && this.#draws.next() < share
  }

  /** From `least` to `most`, both possible. */
  between(least: number, most: number): number {
    return this.#draws.between(least, most)
  }

  pick<Item>(items: readonly [Item, ...Item[]]): Item {
    return items[this.between(0, items.length - 1)] ?? items[0]
  }

  /** One of them, each as often as its weight says; null when none has any. */
  weigh<Item extends { readonly weight: number }>(items: readonly Item[]): Item | null {
    const total = items.reduce((sum, { weight }) => sum + weight, 0)
    let left = this.#draws.next() * total
    for (const item of items) {
      left -= item.weight
      if (left < 0) return item
    }
    return items.findLast(({ weight }) => weight > 0) ?? null
  }

  shuffle<Item>(items: readonly Item[]): Item[] {
    return this.#draws.shuffled(items)
  }

  digits(count: number): string {
    return Array.from({ length: count }, () => this.between(0, 9)).join('')
  }
}
