import { copyFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { nameOfSchema, ownMigrations } from './migrations_done.ts'

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

/** What an update does to a process that still runs: its own code stays as it was loaded, the files are those of the next release. */
test('a process judges a database by the migrations that lay there when it was loaded', async () => {
  const file = join(folder, 'migrations_done.ts')
  copyFileSync(new URL('migrations_done.ts', import.meta.url), file)
  mkdirSync(join(folder, 'migrations'))
  write('migrations/0001_orders.sql', '')
  const loaded: typeof import('./migrations_done.ts') = await import(pathToFileURL(file).href)
  write('migrations/0002_more.sql', '')
  const done: { name: string }[] = [{ name: '0001_orders' }]
  const sql = { query: async () => done as never }
  expect(await loaded.compareMigrations(sql)).toEqual({ missing: [], unknown: [] })
  done.push({ name: '0002_more' })
  expect(await loaded.compareMigrations(sql)).toEqual({ missing: [], unknown: ['0002_more'] })
})

test('the numbers of migrations have no hole: one that is filled later is never run where a later one was', () => {
  const numbers = ownMigrations.map((name) => Number(name.slice(0, 4)))
  expect(numbers).toEqual(numbers.map((_, at) => at + 1))
})
