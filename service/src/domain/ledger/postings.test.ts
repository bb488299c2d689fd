import { readdirSync, readFileSync } from 'node:fs'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { amountOf } from '../money/amount.ts'
import { type LedgerAccount, ledgerAccounts } from './accounts.ts'
import type { Posting } from './postings.ts'
import * as ledger from './postings.ts'

const units = fc.oneof(fc.constant(0n), fc.bigInt({ min: 0n, max: 10n ** 30n }))
const from = units.map((value) => amountOf('ETH:ETH', value))
const to = units.map((value) => amountOf('USDT:ERC20', value))
const exchange = fc.record({ received: from, paid: to, fee: to, networkFee: to })

/** Debits less credits of every account; accounts that come to nothing are left out. */
function balances(postings: readonly Posting[]): Record<string, bigint> {
  const sums = new Map<string, bigint>()
  const book = (account: LedgerAccount, asset: string, value: bigint) =>
    sums.set(`${asset} ${account}`, (sums.get(`${asset} ${account}`) ?? 0n) + value)
  for (const { debit, credit, amount } of postings) {
    book(debit, amount.asset, amount.units)
    book(credit, amount.asset, -amount.units)
  }
  return Object.fromEntries([...sums].filter(([, value]) => value !== 0n))
}

const every: Readonly<Record<string, fc.Arbitrary<readonly Posting[]>>> = {
  depositReceived: from.map(ledger.depositReceived),
  unclaimedReceived: from.map(ledger.unclaimedReceived),
  unclaimedCounted: from.map(ledger.unclaimedCounted),
  unclaimedClosed: from.map(ledger.unclaimedClosed),
  orphanWrittenOff: from.map(ledger.orphanWrittenOff),
  depositOrphaned: from.map(ledger.depositOrphaned),
  orphanCancelled: from.map(ledger.orphanCancelled),
  reserveFunded: from.map(ledger.reserveFunded),
  operatorBooked: fc
    .tuple(from, fc.boolean())
    .map(([{ asset, units: size }, isMissing]) =>
      ledger.operatorBooked(amountOf(asset, isMissing ? -size : size)),
    ),
  exchanged: exchange.map(ledger.exchanged),
  exchangeReturned: exchange.map(ledger.exchangeReturned),
  payoutConfirmed: to.map(ledger.payoutConfirmed),
  refundOwed: fc.tuple(from, from).map(([refund, cost]) => ledger.refundOwed(refund, cost)),
  refundReturned: fc.tuple(from, from).map(([refund, cost]) => ledger.refundReturned(refund, cost)),
  refundConfirmed: from.map(ledger.refundConfirmed),
  outflowOrphaned: to.map(ledger.outflowOrphaned),
  owedClosed: to.map(ledger.owedClosed),
  networkCostPaid: from.map(ledger.networkCostPaid),
}

test('every kind of posting is tried here', () => {
  const exported = Object.keys(ledger).filter((name) => name !== 'reversed')
  expect(Object.keys(every).toSorted()).toEqual(exported.toSorted())
})

describe.each(Object.entries(every))('%s', (_, postings) => {
  test('reversed, it comes to nothing, and reversed again to itself', () => {
    fc.assert(
      fc.property(postings, (booked) => {
        expect(balances([...booked, ...ledger.reversed(booked)])).toEqual({})
        expect(ledger.reversed(ledger.reversed(booked))).toEqual(booked)
      }),
    )
  })

  test('moves something between two different accounts, or is not there', () => {
    fc.assert(
      fc.property(postings, (booked) => {
        for (const { debit, credit, amount } of booked) {
          expect(debit).not.toBe(credit)
          expect(amount.units > 0n).toBe(true)
        }
      }),
    )
  })
})

test('an exchange turns a deposit into a payout owed, and the house is left with the difference', () => {
  const booked = ledger.exchanged({
    received: amountOf('ETH:ETH', 100n),
    paid: amountOf('USDT:ERC20', 300n),
    fee: amountOf('USDT:ERC20', 3n),
    networkFee: amountOf('USDT:ERC20', 2n),
  })
  expect(balances(booked)).toEqual({
    'ETH:ETH customer_deposits': 100n,
    'ETH:ETH exchange_position': -100n,
    'USDT:ERC20 exchange_position': 305n,
    'USDT:ERC20 payouts_owed': -300n,
    'USDT:ERC20 fee_income': -3n,
    'USDT:ERC20 network_costs': -2n,
  })
})

test('an orphan that is cancelled and a deposit that was never there come to the same', () => {
  fc.assert(
    fc.property(from, (amount) => {
      const orphaned = [
        ...ledger.depositReceived(amount),
        ...ledger.depositOrphaned(amount),
        ...ledger.orphanCancelled(amount),
      ]
      expect(balances(orphaned)).toEqual({})
    }),
  )
})

test('what the operator puts in is capital', () => {
  expect(balances(ledger.reserveFunded(amountOf('ETH:ETH', 100n)))).toEqual({
    'ETH:ETH wallet': 100n,
    'ETH:ETH capital': -100n,
  })
})

test('what the operator took out was capital', () => {
  const [missing, more] = [-100n, 30n].map((value) => ledger.operatorBooked(amountOf('ETH:ETH', value)))
  expect(balances([...(missing ?? []), ...(more ?? [])])).toEqual({
    'ETH:ETH wallet': -70n,
    'ETH:ETH capital': 70n,
  })
})

test('a refund that cost what the customer was charged for it leaves nothing behind', () => {
  const [refund, cost] = [amountOf('ETH:ETH', 97n), amountOf('ETH:ETH', 3n)]
  const booked = [
    ...ledger.depositReceived(amountOf('ETH:ETH', 100n)),
    ...ledger.refundOwed(refund, cost),
    ...ledger.refundConfirmed(refund),
    ...ledger.networkCostPaid(cost),
  ]
  expect(balances(booked)).toEqual({})
})

test('nothing negative is posted', () => {
  expect(() => ledger.depositReceived(amountOf('ETH:ETH', -1n))).toThrow()
})

test('a payout that lost its block is in the wallet again, and owed', () => {
  const paid = amountOf('USDT:ERC20', 300n)
  const booked = [...ledger.payoutConfirmed(paid), ...ledger.outflowOrphaned(paid)]
  expect(balances(booked)).toEqual({
    'USDT:ERC20 payouts_owed': 300n,
    'USDT:ERC20 orphaned_payouts': -300n,
  })
})

test('what is owed of a payout that lost its block and is paid by hand is capital, until that is booked as well', () => {
  const paid = amountOf('USDT:ERC20', 300n)
  const booked = [...ledger.outflowOrphaned(paid), ...ledger.owedClosed(paid)]
  expect(balances(booked)).toEqual({ 'USDT:ERC20 wallet': 300n, 'USDT:ERC20 capital': -300n })
  const taken = ledger.operatorBooked(amountOf('USDT:ERC20', -300n))
  expect(balances([...booked, ...taken])).toEqual({})
})

test('the database knows the same accounts', () => {
  const folder = new URL('../../db/migrations/', import.meta.url)
  const migrations = readdirSync(folder).map((file) => readFileSync(new URL(file, folder), 'utf8'))
  const inserted = migrations.flatMap((sql) => [
    ...sql.matchAll(/INSERT INTO ledger_accounts \(account\) VALUES([^;]*);/g),
  ])
  const names = inserted.flatMap(([, values = '']) =>
    [...values.matchAll(/'(\w+)'/g)].map(([, name]) => name),
  )
  expect(names.toSorted()).toEqual([...ledgerAccounts].toSorted())
})
