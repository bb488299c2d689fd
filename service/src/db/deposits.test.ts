import { expect, test } from 'vitest'
import { amountOf } from '../domain/money/amount.ts'
import type { Deposit, Order } from '../domain/orders/order.ts'
import type { Sql } from './database.ts'
import { saveDeposits } from './deposits.ts'

/**
 * What: what one more deposit costs to store does not grow with the square of those that an order has.
 * How: a list that counts how often one of its deposits is looked at, and a database that keeps what is written.
 */
test('one more crumb is written alone, and each of a thousand others is looked at once', async () => {
  const crumbs = Array.from({ length: 1_000 }, (_, index) => crumb(index))
  const before = counted(crumbs)
  const after = [...crumbs, crumb(1_000)]
  const { tx, written } = keepingSql()
  await saveDeposits(tx, orderWith(before.list), orderWith(after))
  expect(written).toEqual([crumb(1_000).key])
  expect(before.looks()).toBe(1_000)
})

test('a deposit that differs is written, and no other', async () => {
  const crumbs = [crumb(0), crumb(1), crumb(2)]
  const after = crumbs.map(
    (deposit, index): Deposit => (index === 1 ? { ...deposit, state: 'vanished' } : deposit),
  )
  const { tx, written } = keepingSql()
  await saveDeposits(tx, orderWith(crumbs), orderWith(after))
  expect(written).toEqual([crumb(1).key])
})

function crumb(index: number): Deposit {
  return {
    key: `BNB:0xaa:call:${index}`,
    txHash: '0xaa',
    amount: amountOf('BNB:BNB', 1n),
    seenAtMs: 1,
    role: 'dust',
    isLate: false,
    state: 'seen',
    block: null,
  }
}

function orderWith(deposits: readonly Deposit[]): Order {
  return { terms: { id: 'CB0000000000000001' }, deposits } as Partial<Order> as Order
}

function counted(deposits: readonly Deposit[]) {
  let looks = 0
  const list = new Proxy(deposits, {
    get: (target, name, list) => {
      if (typeof name === 'string' && /^\d+$/.test(name)) looks += 1
      return Reflect.get(target, name, list)
    },
  })
  return { list, looks: () => looks }
}

/** The keys of the deposits that are written. */
function keepingSql() {
  const written: unknown[] = []
  const tx: Sql = {
    query: async (_, values = []) => {
      written.push(values[2])
      return []
    },
  }
  return { tx, written }
}
