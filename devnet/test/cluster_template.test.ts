import { readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { makeClusterTemplate, type Postgres, removePostgres, startPostgres } from '../src/index.ts'
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
  for (const name of ['one', 'two']) removePostgres(join(folder.path, name))
  folder.remove()
})

type Cluster = { readonly id: string; readonly url: string }

async function startOnce(name: string): Promise<Cluster> {
  let server: Postgres | undefined
  try {
    server = await startPostgres({ dataDir: join(folder.path, name), log: (line) => said.push(line) })
    const [row] = await query(server.url, 'SELECT system_identifier::text AS id FROM pg_control_system()')
    return { id: String(row?.id), url: server.url }
  } finally {
    await server?.stop()
  }
}

const passwordOf = (url: string) => new URL(url).password

test('two clusters are copies of one, and each has its own password', async () => {
  await makeClusterTemplate()
  await makeClusterTemplate()
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
  await makeClusterTemplate()
  const [name = ''] = readdirSync(cache)
  rmSync(join(cache, name, 'global'), { recursive: true })
  const [one, two] = [await startOnce('one'), await startOnce('two')]
  expect(two.id).not.toBe(one.id)
  expect(said.filter((line) => line.includes('of no use'))).toHaveLength(2)
})
