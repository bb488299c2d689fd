import { expect, test } from 'vitest'
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
