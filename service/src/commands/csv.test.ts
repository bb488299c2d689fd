import { expect, test } from 'vitest'
import { csvLine } from './csv.ts'

test('plain cells stand between commas, and the line ends as RFC 4180 has it', () => {
  expect(csvLine(['CB0000000000000001', '', '0.5'])).toBe('CB0000000000000001,,0.5\r\n')
})

test('a comma or a quote does not end a cell', () => {
  expect(csvLine(['a,b', 'say "so"'])).toBe('"a,b","say ""so"""\r\n')
})

test.each(['=1+1', '+1', '-1', '@SUM(A1)'])('%s is no formula', (cell) => {
  expect(csvLine([cell])).toBe(`'${cell}\r\n`)
})

test('a formula with a comma is none either', () => {
  expect(csvLine(['=HYPERLINK("x","y")'])).toBe(`"'=HYPERLINK(""x"",""y"")"\r\n`)
})

test('control characters neither end a line nor hide what follows them', () => {
  expect(csvLine(['a\r\nb', '\t=1', '\u001b[2J'])).toBe('a\\u000d\\u000ab,\\u0009=1,\\u001b[2J\r\n')
})
