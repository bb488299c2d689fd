import { expect, test } from 'vitest'
import { requiredDepth } from './required_depth.ts'
import { Witness } from './witness.ts'

/**
 * What: whoever signs for what has not all come back is noticed, however many digits the amounts have.
 * How: the tables are asked for amounts, and answer with text.
 */
async function signWith(confirmed: string, units: string): Promise<string[]> {
  let nowMs = 1_000
  const rows = async () => [{ order_id: 'CB1', units, confirmed, state: 'seen' }] as never[]
  const witness = new Witness(
    rows,
    () => ({}) as never,
    () => nowMs,
    requiredDepth('1'),
  )
  const look = (begunAtMs: number) => ({ name: 'a look', begunAtMs }) as never
  await witness.see(look(900), 'INSERT INTO facts', [1, 'CB1', 'BTC:tx:0:unmined:hash@0'], 1)
  nowMs = 2_000
  await witness.see(look(1_500), 'INSERT INTO signer.signed_transactions', ['CB1:1', 1], 1)
  return witness.problems
}

test('two thirds are back, and they have fewer digits', async () => {
  const said = 'nothing is signed for a deposit that is gone, or not deep again: CB1:1'
  expect(await signWith('666667', '1000000')).toEqual([said])
})

test('more than all is back, and it has more digits', async () => {
  expect(await signWith('10000000', '8000000')).toEqual([])
})
