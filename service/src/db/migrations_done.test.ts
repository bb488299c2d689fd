import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { nameOfSchema } from './migrations_done.ts'

/** What: tables that were made ahead are found under their name, so another migration, or another text of one, is another name. */
let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'cambist-schema-'))
})
afterEach(() => rmSync(folder, { recursive: true }))

const write = (name: string, text: string) => writeFileSync(join(folder, name), text)

test('a schema has a name of its own, whatever lies beside its migrations', async () => {
  const names: string[] = []
  const note = async () => names.push(await nameOfSchema(folder))
  write('0001_orders.sql', 'CREATE TABLE orders ();')
  await note()
  write('0001_orders.sql', 'CREATE TABLE orderz ();')
  await note()
  write('0002_more.sql', '')
  await note()
  write('0002_more.sql', 'CREATE TABLE more ();')
  await note()
  expect(new Set(names).size).toBe(4)
  write('README.md', 'nothing')
  expect(await nameOfSchema(folder)).toBe(names.at(-1))
})
