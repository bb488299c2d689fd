import { seeded } from '../seeded.ts'

/** Chance that is the same for the same seed, in the shapes that blocks need. */
export type Chance = ReturnType<typeof chanceOf>

export function chanceOf(seed: number) {
  const random = seeded(seed)
  const below = (end: number) => Math.floor(random() * end)
  const bytes = (count: number) => {
    const made = Buffer.alloc(count + 3)
    for (let at = 0; at < count; at += 4) made.writeUInt32LE(below(2 ** 32), at)
    return made.subarray(0, count)
  }
  return {
    below,
    bytes,
    between: (least: number, most: number) => least + below(most - least + 1),
    /** `0x` and so many bytes. */
    hex: (count: number) => `0x${bytes(count).toString('hex')}`,
    oneOf: <Item>(items: readonly Item[]): Item => {
      const item = items[below(items.length)]
      if (item === undefined) throw new Error('there is nothing to choose from')
      return item
    },
  }
}
