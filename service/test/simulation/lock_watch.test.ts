import pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { eventually } from '../harness/eventually.ts'
import { type LockWatch, openLockWatch } from './lock_watch.ts'
import { type ScratchPostgres, startScratchPostgres } from './scratch_postgres.ts'

let server: ScratchPostgres
let locks: LockWatch
const clients: pg.Client[] = []

beforeAll(async () => {
  server = await startScratchPostgres()
  locks = await openLockWatch(server.url)
})

afterAll(async () => {
  await Promise.all(clients.map((client) => client.end()))
  await locks?.close()
  await server?.stop()
})

async function connect(): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: server.url })
  await client.connect()
  clients.push(client)
  return client
}

test('of statements that wait, the one that began last gives up, also when another has begun to wait anew since', async () => {
  const [holder, first, last] = [await connect(), await connect(), await connect()]
  const waitFor = async (client: pg.Client, lock: number) => {
    const pid = (client as unknown as { readonly processID: number }).processID
    await eventually(`somebody waits for lock ${lock}`, async () => {
      const { rows } = await holder.query(
        'SELECT 1 FROM pg_locks WHERE pid = $1 AND objid = $2 AND NOT granted',
        [pid, lock],
      )
      expect(rows).toHaveLength(1)
    })
  }
  await holder.query('SELECT pg_advisory_lock(1), pg_advisory_lock(2), pg_advisory_lock(3)')
  const both = first.query('SELECT pg_advisory_lock(1), pg_advisory_lock(2)')
  await waitFor(first, 1)
  const third = last.query('SELECT pg_advisory_lock(3)').catch(String)
  await waitFor(last, 3)
  await holder.query('SELECT pg_advisory_unlock(1)')
  await waitFor(first, 2)

  expect(await locks.waiting()).toBe(2)
  await locks.cancelLast()
  expect(await third).toMatch('canceling statement due to user request')
  await holder.query('SELECT pg_advisory_unlock(2)')
  expect((await both).rows).toHaveLength(1)
})
