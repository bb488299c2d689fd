import { expect, test } from 'vitest'
import { findDoublePayments } from '../harness/invariants.ts'

/**
 * What: an order that was paid twice is found, and so is one of whose transactions nobody can say anything.
 * How: two transactions of one order, and chains that have them or are not there.
 */
const rows = async () =>
  ['0xa', '0xb'].map((tx_hash) => ({ order_id: 'CB1', chain: 'ETH', tx_hash })) as never[]

function withMined(...mined: readonly string[]) {
  const lookup = async (txHash: string) =>
    mined.includes(txHash) ? { where: 'block', succeeded: true } : { where: 'absent' }
  return new Map([['ETH', { lookup }]]) as never
}

test('one of two is in a block', async () => {
  expect(await findDoublePayments({ rows, chains: withMined('0xb') })).toEqual([])
})

test('both are', async () => {
  const said = 'CB1 was paid 2 times: 0xa, 0xb'
  expect(await findDoublePayments({ rows, chains: withMined('0xa', '0xb') })).toEqual([said])
})

test('a chain that is not there has not said no', async () => {
  expect(await findDoublePayments({ rows, chains: new Map() })).toEqual(
    ['0xa', '0xb'].map((txHash) => `CB1 has ${txHash} on ETH, and nobody asks there`),
  )
})
