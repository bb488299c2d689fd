import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { expect } from 'vitest'
import type { ChainId } from '../../src/domain/catalog/networks.ts'
import type { ComparedChain } from '../../src/engine/books/compare.ts'
import { reconcileChain } from '../../src/engine/books/reconcile.ts'
import { isOutflowStopped } from '../../src/engine/books/stopped_outflows.ts'
import { nobodyElse } from '../../src/engine/testing/nobody_else.ts'
import { type Chance, chanceFrom } from '../harness/chance.ts'
import {
  bnbToEth,
  btcToUsdt,
  createOrder,
  ethToUsdc,
  payAndBury,
  quickPair,
  usdcToBnb,
  usdtToBtc,
} from '../harness/orders.ts'
import { processEnvironment } from '../harness/process_environment.ts'
import type { TestSandbox } from '../harness/test_sandbox.ts'
import { checkAllEnded, inSandbox } from './in_sandbox.ts'
import { prove } from './prove.ts'
import { type Difference, findDifferences, openSuperuser, type Superuser } from './reconciler/differences.ts'

/**
 * What: a difference of one unit, wherever it is, is found: what shows between ledger and chain stops the outflows of
 * that chain and of no other, to the unit, and everything is named by `cambist ledger audit`, which names nothing else.
 * How: orders of all pairs, finished and on their way, on real chains; a superuser bends the books, and the test the
 * balances of the nodes, a few places at a time. The command runs as a process of its own.
 */
prove('one unit too much or too little is found, named, and stops what it has to', async (proof) => {
  const { seed, sized, figure } = proof
  const count = sized({ short: 20, long: 100 })
  const chance = chanceFrom(seed)
  await inSandbox({}, async (sandbox) => {
    for (const text of EXPECTED) sandbox.expectError(text)
    const superuser = await openSuperuser(sandbox.databaseUrl)
    try {
      await fillBooks(sandbox)
      const all = await findDifferences(sandbox, superuser)
      const batches = planBatches(all, count, count / A_BATCH, chance)
      const found = []
      for (const { differences } of batches) found.push(...(await findBatch(sandbox, differences)))
      tell(found, figure)
      await expectOutflowsToWait(sandbox, superuser)
      await buryAll(sandbox)
      await checkAllEnded(sandbox)
    } finally {
      await superuser.close()
    }
  })
})

const A_BATCH = 10

const EXPECTED = ['ledger and chain differ and nothing explains it', 'the journal adds up to something else']

/** Finished orders of every pair, one that was returned, a deposit and a payout that are mined and not deep. */
async function fillBooks(sandbox: TestSandbox): Promise<void> {
  const pairs = [btcToUsdt, usdtToBtc, ethToUsdc, usdcToBnb, bnbToEth, quickPair]
  const orders = await Promise.all(pairs.map((pair) => createOrder(sandbox, pair)))
  for (const { order_id } of orders) await sandbox.remote.pay(order_id)
  const refundAddress = await sandbox.remote.freshAddress('ERC20')
  const returned = await createOrder(sandbox, quickPair, { refund_address: refundAddress })
  await sandbox.remote.pay(returned.order_id, 300)
  await buryAll(sandbox)
  await sandbox.waitForStatus(returned.order_id, 'EMERGENCY')
  await sandbox.client.chooseEmergencyAction(returned.order_id, { action: 'refund' })
  await sandbox.eventually('everything is sent', async () => {
    expect(await sandbox.rows("SELECT payout_id FROM outflows WHERE state = 'broadcast'")).toHaveLength(7)
  })
  await buryAll(sandbox)
  await checkAllEnded(sandbox)
  const [paid, paying] = [await createOrder(sandbox, usdcToBnb), await createOrder(sandbox, ethToUsdc)]
  await payAndBury(sandbox, paying)
  await sandbox.waitForStatus(paying.order_id, 'WITHDRAW')
  await sandbox.mine('BNB', 1)
  await sandbox.remote.pay(paid.order_id)
  await sandbox.mine('ETH', 1)
  await sandbox.settle()
}

/** Never more blocks than a local node keeps the state of, without the service having read them. */
async function buryAll(sandbox: TestSandbox): Promise<void> {
  for (const network of ['BTC', 'ETH', 'BNB'] as const) await sandbox.bury(network)
  await sandbox.settle()
}

type Batch = { readonly taken: Set<string>; readonly differences: Difference[] }

/** Of every kind as many as of every other, as far as there are so many; what would hide each other in other batches. */
function planBatches(all: readonly Difference[], count: number, batchCount: number, chance: Chance): Batch[] {
  const kinds = [...Map.groupBy(chance.shuffled(all), ({ kind }) => kind).values()]
  const batches = Array.from({ length: batchCount }, (): Batch => ({ taken: new Set(), differences: [] }))
  const place = (kind: Difference[]): boolean => {
    for (const [at, difference] of kind.entries()) {
      const batch = batches.find(({ taken }) => difference.places.every((one) => !taken.has(one)))
      if (batch === undefined) continue
      kind.splice(at, 1)
      batch.differences.push(difference)
      for (const one of difference.places) batch.taken.add(one)
      return true
    }
    return false
  }
  for (let placed = 0; placed < count; ) {
    const before = placed
    for (const kind of kinds) if (placed < count && place(kind)) placed += 1
    if (placed === before) throw new Error(`only ${placed} of ${all.length} fit into ${batchCount} batches`)
  }
  return batches
}

type Found = { readonly difference: Difference; readonly isSeen: boolean; readonly isNamed: boolean }

/** Bends them, looks, and bends them back. */
async function findBatch(sandbox: TestSandbox, batch: readonly Difference[]): Promise<Found[]> {
  for (const { inject } of batch) await inject()
  const seen = await reconcile(sandbox, batch)
  const problems = await audit(sandbox)
  for (const { undo } of batch) await undo()
  await agree(sandbox)
  const strangers = problems.filter(
    ({ subject }) =>
      !batch.some(({ named, places, related = [] }) =>
        [named.subject, ...places, ...related].includes(subject),
      ),
  )
  expect(strangers, `beside ${batch.map(({ what }) => what).join('; ')}`).toEqual([])
  return batch.map((difference) => {
    const { named } = difference
    const isNamed = problems.some(({ subject, check }) => subject === named.subject && check === named.check)
    return { difference, isSeen: seen.has(difference), isNamed }
  })
}

const chains = ['BTC', 'ETH', 'BNB'] as const

/** Compares until outflows stop where they have to, and nowhere else; answers what was seen to the unit. */
async function reconcile(sandbox: TestSandbox, batch: readonly Difference[]): Promise<Set<Difference>> {
  const { world } = sandbox.service
  const affected = new Set<ChainId>(batch.flatMap(({ seen }) => seen?.chain ?? []))
  for (const id of chains) {
    await sandbox.eventually(`outflows of ${id} ${affected.has(id) ? 'are stopped' : 'go on'}`, async () => {
      const compared = await compare(sandbox, id)
      expect(compared?.kind).toBe('compared')
      expect(await isOutflowStopped(world.db, id)).toBe(affected.has(id))
    })
  }
  // Outflows may be stopped before the last is seen: the journal is added up a part at a time.
  const visible = batch.filter(({ seen }) => seen !== null)
  await sandbox.eventually('every difference is seen to the unit', async () => {
    for (const id of affected) await compare(sandbox, id)
    const seen = await seenNow(sandbox, batch)
    expect(visible.filter((each) => !seen.has(each)).map(({ what }) => what)).toEqual([])
  })
  return seenNow(sandbox, batch)
}

async function compare({ service: { world } }: TestSandbox, id: ChainId): Promise<ComparedChain | null> {
  const chain = world.chains.get(id)
  if (chain === undefined) throw new Error(`${id} is not there`)
  return reconcileChain(world, chain, { guard: nobodyElse })
}

async function seenNow(sandbox: TestSandbox, batch: readonly Difference[]): Promise<Set<Difference>> {
  const rows = await sandbox.rows<{ asset: string; difference: bigint }>(
    'SELECT asset, difference FROM reconciliations',
  )
  const byAsset = new Map(rows.map((row) => [row.asset, row]))
  return new Set(
    batch.filter(({ seen }) => seen !== null && byAsset.get(seen.asset)?.difference === seen.units),
  )
}

async function agree(sandbox: TestSandbox): Promise<void> {
  const { world } = sandbox.service
  for (const chain of world.chains.values()) {
    await sandbox.eventually(`outflows of ${chain.id} go on`, async () => {
      await reconcileChain(world, chain, { guard: nobodyElse })
      expect(await isOutflowStopped(world.db, chain.id)).toBe(false)
    })
  }
}

type Problem = { readonly subject: string; readonly check: string; readonly message: string }

const CLI = join(import.meta.dirname, '../../src/cli.ts')

/** `cambist ledger audit`, as an operator runs it. */
async function audit({ dataDir }: TestSandbox): Promise<readonly Problem[]> {
  const env = { ...processEnvironment, CAMBIST_DATA_DIR: dataDir }
  const args = [CLI, 'ledger', '--sandbox', 'audit', '--json']
  return new Promise((resolve, reject) => {
    execFile(process.execPath, args, { env, maxBuffer: 2 ** 26 }, (error, stdout, stderr) => {
      if (stdout === '') return reject(new Error(`the audit failed: ${stderr}`, { cause: error }))
      const { problems } = JSON.parse(stdout) as { problems: readonly Problem[] }
      if ((problems.length === 0) !== (error === null))
        reject(new Error(`its exit says otherwise: ${stderr}`))
      resolve(problems)
    })
  })
}

function tell(found: readonly Found[], figure: (what: string, value: number | string) => void): void {
  const kinds = [...Map.groupBy(found, ({ difference }) => difference.kind)]
  figure('differences of one unit', found.length)
  figure('kinds', kinds.map(([kind, all]) => `${all.length} × ${kind}`).join(', '))
  figure('named by the audit', found.filter(({ isNamed }) => isNamed).length)
  const visible = found.filter(({ difference }) => difference.seen !== null)
  figure('between ledger and chain', visible.length)
  figure('of these seen to the unit, outflows stopped', visible.filter(({ isSeen }) => isSeen).length)
  const missed = found.filter(
    ({ difference, isSeen, isNamed }) => !isNamed || (difference.seen !== null && !isSeen),
  )
  expect(missed.map(({ difference: { what } }) => what)).toEqual([])
}

/** While they are stopped nothing leaves and nothing new is taken; when books and chain agree again it is. */
async function expectOutflowsToWait(sandbox: TestSandbox, superuser: Superuser): Promise<void> {
  const [forged] = (await findDifferences(sandbox, superuser)).filter(({ seen }) => seen?.asset === 'BNB:BNB')
  if (forged === undefined) throw new Error('there is always something to bend')
  const quote = () => sandbox.client.getRate({ ...quickPair, amount: 100 })
  await sandbox.eventually('what was stopped before is offered again', quote)
  const order = await createOrder(sandbox, quickPair)
  await forged.inject()
  await reconcile(sandbox, [forged])
  await sandbox.eventually('nothing new is taken', async () => {
    await expect(quote()).rejects.toMatchObject({ code: 'MAINTENANCE' })
  })
  await payAndBury(sandbox, order)
  await sandbox.eventually('its payout waits', async () => {
    const outflows = await sandbox.rows('SELECT state, trouble FROM outflows WHERE order_id = $1', [
      order.order_id,
    ])
    expect(outflows).toEqual([
      { state: 'planned', trouble: 'outflows of BNB are stopped: ledger and chain differ' },
    ])
  })
  await forged.undo()
  await agree(sandbox)
  await sandbox.eventually('it is taken again', quote)
  await sandbox.waitForStatus(order.order_id, 'WITHDRAW')
}
