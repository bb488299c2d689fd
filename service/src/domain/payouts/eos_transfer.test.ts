import { expect, test } from 'vitest'
import { eosName } from './eos_transfer.ts'

test.each(['a', '5', 'ab', 'a.b', 'a..b', 'cambist12345', 'eosio.token'])('%s is a name', (name) => {
  expect(eosName.test(name)).toBe(true)
})

test.each(['', '.', 'a.', '.a', 'a.b.', 'Abc', 'abc0', 'abc6', 'a_b', 'a/7', 'a\n', 'abcdefghijklm', 'ä'])(
  '%j is none',
  (name) => {
    expect(eosName.test(name)).toBe(false)
  },
)
