import { seededChance } from '../../harness/chance.ts'

/** All chance of a run out of one seed: the same seed draws the same. */
export type Chance = {
  /** From 0 to `limit` - 1. */
  below(limit: number): number
  /** True in so many of a hundred draws. */
  percent(percent: number): boolean
  pick<Item>(items: readonly Item[]): Item
}

export function chanceFrom(seed: number): Chance {
  const next = seededChance(seed)
  const below = (limit: number) => Math.floor(next() * limit)
  return {
    below,
    percent: (percent) => next() * 100 < percent,
    pick: <Item>(items: readonly Item[]) => {
      const item = items[below(items.length)]
      if (item === undefined) throw new Error('there is nothing to pick from')
      return item
    },
  }
}
