import { expect, test } from 'vitest'
import { deriveEd25519 } from './slip10.ts'

// https://github.com/satoshilabs/slips/blob/master/slip-0010.md#test-vector-1-for-ed25519
test.each([
  ['m', [], '2b4be7f19ee27bbf30c667b642d5f4aa69fd169872f8fc3059c08ebae2eb19e7'],
  ["m/0'", [0], '68e0fe46dfb67e368c75379acec591dad19df3cde26e63b93a8e704f1dade7a3'],
  ["m/0'/1'", [0, 1], 'b1d0bad404bf35da785a64ca1ac54b2617211d2777696fbffaf208f746ae84f2'],
  [
    "m/0'/1'/2'/2'/1000000000'",
    [0, 1, 2, 2, 1_000_000_000],
    '8f94d394a8e8fd6b1bc2f3f49f5c47e385281d5c17e65324b0f62483e37e8793',
  ],
])('the secret at %s is the one of the vectors', (_, path, secret) => {
  const seed = Buffer.from('000102030405060708090a0b0c0d0e0f', 'hex')
  expect(Buffer.from(deriveEd25519(seed, path)).toString('hex')).toBe(secret)
})
