import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Postgres, removePostgres, startPostgres } from '@cambist/devnet'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { asSuperuser, createDatabase, openBenchDatabase } from '../../bench/bench_postgres.ts'
import { benchSigner } from '../../bench/bench_world.ts'
import { fillHistory, restingBalances } from '../../bench/history.ts'
import { openLifeStage } from '../../bench/life_stage.ts'
import { eventually } from '../harness/eventually.ts'

/**
 * What: on a history that a benchmark wrote the service goes on as on one of its own: its signer is taken for the one of before, ledger and
 * chains agree, and orders end.
 * How: as the benchmark of growth does it, with few orders.
 */
const folder = mkdtempSync(join(tmpdir(), 'cambist-bench-history-'))
const dataDir = join(folder, 'postgres')
let postgres: Postgres

beforeAll(async () => {
  postgres = await startPostgres({ dataDir })
})

afterAll(async () => {
  await postgres?.stop()
  removePostgres(dataDir)
  rmSync(folder, { recursive: true, force: true })
})

test('orders end beside a history that a benchmark wrote', async () => {
  const url = await createDatabase(postgres, 'history')
  const db = openBenchDatabase(url, 2)
  const lying = await asSuperuser(url, async (admin) => {
    await fillHistory(admin, 500, benchSigner(db))
    return restingBalances(admin)
  })
  expect(lying.length).toBeGreaterThan(0)
  const stage = await openLifeStage(url, lying)
  try {
    await eventually('orders end', async () => {
      expect((await stage.drive(10, 500)).ended).toBeGreaterThan(0)
    })
    await eventually('ledger and chains are compared', async () => {
      const [compared] = await db.query<{ chains: number }>(
        'SELECT count(DISTINCT asset)::int AS chains FROM reconciliations',
      )
      expect(compared?.chains).toBeGreaterThan(2)
    })
    expect(await db.query('SELECT * FROM reconciliations WHERE difference <> 0')).toEqual([])
  } finally {
    await stage.stop()
    await db.close()
  }
})
