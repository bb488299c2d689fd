import { readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { makeClusterTemplates, type Postgres, removePostgres, startPostgres } from '../src/index.ts'
import { makeTemporaryFolder, query } from './harness.ts'

/**
 * What: a new cluster is a copy of the one that was made ahead, with a password of its own; without one, or with one that
 * is broken, it is made as ever.
 * How: a cache of the test's own. Copies of one cluster are told by its system identifier, which initdb draws.
 */
const folder = makeTemporaryFolder()
const cache = join(folder.path, 'cache', 'cambist')
const said: string[] = []

beforeEach(() => {
  vi.stubEnv('XDG_CACHE_HOME', join(folder.path, 'cache'))
  said.length = 0
})
afterEach(() => {
  vi.unstubAllEnvs()
  for (const name of ['one', 'two', 'three']) removePostgres(join(folder.path, name))
  folder.remove()
})

type Cluster = { readonly id: string; readonly hasCoins: boolean; readonly url: string }

async function startOnce(name: string, template?: () => Promise<string>): Promise<Cluster> {
  let server: Postgres | undefined
  try {
    const log = (line: string) => said.push(line)
    server = await startPostgres({ dataDir: join(folder.path, name), log, ...(template && { template }) })
    const [row] = await query(
      server.url,
      `SELECT system_identifier::text AS id, to_regclass('coins') IS NOT NULL AS "hasCoins" FROM pg_control_system()`,
    )
    return { id: String(row?.id), hasCoins: row?.hasCoins === true, url: server.url }
  } finally {
    await server?.stop()
  }
}

const passwordOf = (url: string) => new URL(url).password

test('two clusters are copies of one, and each has its own password', async () => {
  await Promise.all([makeClusterTemplates(), makeClusterTemplates()])
  await makeClusterTemplates()
  expect(readdirSync(cache)).toHaveLength(1)
  const [one, two] = [await startOnce('one'), await startOnce('two')]
  expect(two.id).toBe(one.id)
  expect(passwordOf(two.url)).not.toBe(passwordOf(one.url))
  expect(said.filter((line) => line.includes('of no use'))).toEqual([])
  // Each stands on its own feet: the cache may be emptied.
  rmSync(cache, { recursive: true })
  expect(await startOnce('one')).toMatchObject({ id: one.id })
})

test('without one made ahead each is made anew', async () => {
  const [one, two] = [await startOnce('one'), await startOnce('two')]
  expect(two.id).not.toBe(one.id)
})

test('one that is broken is told of, and a new one is made', async () => {
  await makeClusterTemplates()
  const [name = ''] = readdirSync(cache)
  rmSync(join(cache, name, 'global'), { recursive: true })
  const [one, two] = [await startOnce('one'), await startOnce('two')]
  expect(two.id).not.toBe(one.id)
  expect(said.filter((line) => line.includes('of no use'))).toHaveLength(2)
})

const coins = {
  name: 'with-coins',
  fill: async (url: string) => {
    await query(url, 'CREATE TABLE coins AS SELECT 7 AS held')
  },
}

test('what was filled ahead is there for whoever names it, and for nobody else', async () => {
  await makeClusterTemplates(coins)
  await makeClusterTemplates(coins)
  expect(readdirSync(cache)).toHaveLength(2)
  expect(await startOnce('one', async () => coins.name)).toMatchObject({ hasCoins: true })
  expect(await startOnce('two')).toMatchObject({ hasCoins: false })
  expect(await startOnce('three', async () => 'something else')).toMatchObject({ hasCoins: false })
})

test('a filling that fails leaves nothing', async () => {
  const failing = { name: 'failing', fill: () => Promise.reject(new Error('no tables')) }
  await expect(makeClusterTemplates(failing)).rejects.toThrow('no tables')
  expect(readdirSync(cache)).toHaveLength(1)
})
