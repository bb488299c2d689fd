import { expect, test } from 'vitest'
import { BoundedMap } from './bounded_map.ts'

/** What: no more is remembered than was said, and what was set last stays. How: by hand. */
test('what was set longest ago is forgotten first, and what is set anew is the newest', () => {
  const known = new BoundedMap<string, number>(2)
  known.set('a', 1).set('b', 2).set('a', 3)
  expect([...known]).toEqual([
    ['b', 2],
    ['a', 3],
  ])
  known.set('c', 4)
  expect([...known.keys()]).toEqual(['a', 'c'])
  known.delete('a')
  known.set('d', 5)
  expect([...known.keys()]).toEqual(['c', 'd'])
})
