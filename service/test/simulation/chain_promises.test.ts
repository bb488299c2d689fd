import { expect, test } from 'vitest'
import { findBrokenPromises } from './chain_promises.ts'

/**
 * What: an order is told to have ended by a transaction of its own, of which one was mined.
 * How: what the database says is made by hand, and one transaction is in a block.
 */
const ORDER = 'CB1'
const WHOLE = 10n ** 18n

/** Of an order that was paid one ether; `told` is what its event says, and `isOwn` whether that was signed for it. */
async function brokenBy(told: string, { isOwn = true, isFinalAgain = false } = {}) {
  const ended = {
    ...{ order_id: ORDER, status: 'DONE', from_asset: 'BTC:BTC', to_asset: 'ETH:ETH', paid: `${WHOLE}` },
    ...{ refunded: null, told_paid: '1', told_refunded: null },
    ...{ tx_hash: 'mined', told_tx_hash: told, is_own_told: isOwn, is_final_again: isFinalAgain },
  }
  const deposit = { deposit_currency: 'BTC', deposit_network: 'BTC', deposit_amount: '1' }
  const order = { order_id: ORDER, ...deposit, deposit_required_confirmations: 1 }
  const request = { destination: 'theirs', refundAddress: null }
  const lookup = (txHash: string) => (txHash === 'mined' ? { where: 'block', succeeded: true } : null)
  return findBrokenPromises(
    async (sql: string) => (sql.includes('is_final_again') ? [ended] : []) as never[],
    { ETH: { lookup, holds: () => WHOLE }, BTC: { holds: () => 0n } } as never,
    { depths: new Map(), problems: [], requiredDepth: () => 1 } as never,
    [{ order, request }] as never,
  )
}

test('an event names what was mined', async () => {
  expect(await brokenBy('mined')).toEqual([])
  expect(await brokenBy('another')).toHaveLength(1)
})

test('where another attempt was mined since, it names one of its own that was not', async () => {
  expect(await brokenBy('another', { isFinalAgain: true })).toEqual([])
  expect(await brokenBy('another', { isFinalAgain: true, isOwn: false })).toHaveLength(1)
})
