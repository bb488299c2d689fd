import { expect, test } from 'vitest'
import type { OrderView } from '../../engine/desks/desk.ts'
import { orderView } from '../testing/fake_desk.ts'
import { csvCell, csvHead, csvLines } from './order_csv.ts'

test.each([
  ['=1+1', `"'=1+1"`],
  ['+1', `"'+1"`],
  ['-1', `"'-1"`],
  ['@SUM(A1)', `"'@SUM(A1)"`],
  ['\t=1', `"'\t=1"`],
  ['\r\n=1', `"'\r\n=1"`],
  ['\tplain', `"'\tplain"`],
  ['  =1', `"'  =1"`],
  ['\u200b=1', `"'\u200b=1"`],
  ['＝1', `"'＝1"`],
  ['=HYPERLINK("https://evil.example","x")', `"'=HYPERLINK(""https://evil.example"",""x"")"`],
  ['a=1', 'a=1'],
  ['a,b', '"a,b"'],
  ['a;b', '"a;b"'],
  ['say "x"', '"say ""x"""'],
  ['a\nb', '"a\nb"'],
  [' a', '" a"'],
  ['', ''],
  ['0.05', '0.05'],
  [3, '3'],
])('the cell %j is written %s', (value, cell) => {
  expect(csvCell(value)).toBe(cell)
})

test('a tag that is a formula stays in its cell, and every line has as many cells as there are columns', () => {
  const tag = '=cmd|"/c calc"!A1,x\n+y'
  const csv = csvLines([{ ...orderView, destination_tag: tag }])
  expect(csv).toContain(`,"'=cmd|""/c calc""!A1,x\n+y",`)
  expect(csvLines([orderView, orderView]).trimEnd().split('\r\n')).toHaveLength(2)
  expect(csvLines([orderView]).split(',')).toHaveLength(csvHead.split(',').length)
})

test('every column holds what its name says', () => {
  const plain = {
    deposit_received: '0.09',
    deposit_tag: 'deposit-tag',
    deposit_account: 'deposit-account',
    deposit_tx_hash: 'deposit-hash',
    receive_final_amount: '5800.5',
    destination_tag: 'destination-tag',
    withdraw_tx_hash: 'payout-hash',
    refund_address: 'refund-address',
  }
  const order: OrderView = {
    ...orderView,
    ...plain,
    status: 'EMERGENCY',
    updated_at: 1_790_000_950_000,
    completed_at: 1_790_001_000_000,
    emergency: {
      reasons: ['UNDERPAID', 'LATE_DEPOSIT'],
      are_options_known: true,
      options: { continue: null, recalculate: null, refund: null },
    },
    refund: {
      address: 'elsewhere',
      amount: '0.08',
      currency: 'BTC',
      network: 'BTC',
      network_fee: '0.01',
      tx_hash: 'refund-hash',
    },
  }
  const names = csvHead.trimEnd().split(',')
  const cells = csvLines([order]).trimEnd().split(',')
  // Of the order as it is shown, all but what stands in columns of their own.
  const { short_id, deposit_confirmations, deposit_required_confirmations, emergency, refund, ...rest } =
    order
  expect(Object.fromEntries(names.map((name, index) => [name, cells[index]]))).toEqual({
    ...rest,
    created_at: '2026-09-21T14:13:20.000Z',
    updated_at: '2026-09-21T14:29:10.000Z',
    expires_at: '2026-09-21T14:28:20.000Z',
    completed_at: '2026-09-21T14:30:00.000Z',
    emergency_reasons: 'UNDERPAID LATE_DEPOSIT',
    refund_amount: '0.08',
    refund_tx_hash: 'refund-hash',
  })
})
