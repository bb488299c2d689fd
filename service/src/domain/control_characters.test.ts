import { expect, test } from 'vitest'
import { escapeControls } from './control_characters.ts'

test('what a terminal would obey is written as JSON does, and nothing else is', () => {
  expect(escapeControls('a\u001b[2J\u009b\u007f\n é €')).toBe(String.raw`a\u001b[2J\u009b\u007f\u000a é €`)
})
