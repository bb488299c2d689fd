import { expect, test } from 'vitest'
import { table, toTerminal } from './table.ts'

test('what a stranger wrote moves no cursor, ends no line and changes no column', () => {
  const agent = 'curl\u009b2J\u001b[31m\u007f\nROW 2\tforged'
  const printed = table(
    ['ROW', 'DETAIL', 'AT'],
    [
      ['1', agent, 'now'],
      ['2', 'plain — Ünïcode stays', 'now'],
    ],
  )
  expect(printed.split('\n')).toHaveLength(3)
  expect(printed).toContain('curl\\u009b2J\\u001b[31m\\u007f\\u000aROW 2\\u0009forged')
  expect(printed).toContain('plain — Ünïcode stays')
  expect(
    new Set(
      printed
        .split('\n')
        .map((line) => line.lastIndexOf('now'))
        .slice(1),
    ).size,
  ).toBe(1)
})

test('what is printed keeps its lines and has no other control character, and JSON means the same', () => {
  expect(toTerminal('a\nb\u009b\r\u0000')).toBe('a\nb\\u009b\\u000d\\u0000')
  const value = { agent: 'curl\u009b\u007f\n' }
  const printed = toTerminal(JSON.stringify(value, null, 2))
  expect(printed).not.toMatch(/[^\n\P{Cc}]/u)
  expect(JSON.parse(printed)).toEqual(value)
})
