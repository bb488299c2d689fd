import { type AuditRow, readAuditAct } from '../../db/audit_log.ts'
import { readAuditedOrders } from '../../db/audited_orders.ts'
import { HOUSE, readBalances } from '../../db/books.ts'
import type { Database, Sql } from '../../db/database.ts'
import {
  type FalseCost,
  readAuditedHouseDeposits,
  readAuditedHouseOutflows,
  readFalseCosts,
  readFalseHouseBalances,
  readFalseWords,
  readLostClosings,
  readSharedDeposits,
  readStrayOutflows,
  readStrayOwners,
  readUnexplainedEntries,
  readUnknownBookings,
} from '../../db/false_books.ts'
import { readHouseEntriesToExplain } from '../../db/house_entries.ts'
import { readAllWords } from '../../db/operator_words.ts'
import { findFalseRestingSums } from '../../db/resting.ts'
import { findFalseWalletSums } from '../../db/wallet_sums.ts'
import { assets, isAssetId, nativeAsset } from '../../domain/catalog/assets.ts'
import type { LedgerAccount } from '../../domain/ledger/accounts.ts'
import { BUCKETS } from '../../domain/orders/identifiers.ts'
import { paysSomebody } from '../../domain/payouts/intent.ts'
import { auditHouseEntries } from './audit_house_entries.ts'
import { auditOrder, checkBookings, checkDeposit, type Problem, problem, show } from './audit_order.ts'
import { isOnWrongSide } from './audit_sides.ts'
import { auditWords } from './audit_words.ts'
import { auditActs } from './operator_word.ts'

export type Balance = { readonly asset: string; readonly account: LedgerAccount; readonly units: bigint }

export type BooksAudit = {
  readonly balances: readonly Balance[]
  readonly orderCount: number
  readonly problems: readonly Problem[]
}

/** The books against themselves: every order, every deposit, every outflow, as they all are at one moment. */
export function auditBooks(db: Database): Promise<BooksAudit> {
  return db.transaction(async (tx) => {
    await tx.query('SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY')
    const balances = await readBalances(tx)
    const problems: Problem[] = [
      ...balances.flatMap(checkSide),
      ...(await auditSums(tx)),
      ...(await auditHouse(tx)),
      ...(await auditSaid(tx)),
      ...(await readFalseCosts(tx)).map(describeCost),
    ]
    let orderCount = 0
    // Bucket by bucket, so that memory does not grow with the number of orders.
    for (let bucket = 0; bucket < BUCKETS; bucket += 1) {
      const orders = await readAuditedOrders(tx, bucket)
      orderCount += orders.length
      problems.push(...orders.flatMap(auditOrder), ...(await auditOwners(tx, bucket)))
    }
    return { balances, orderCount, problems }
  })
}

function checkSide({ asset, account, units }: Balance): Problem[] {
  if (!isOnWrongSide(account, units)) return []
  return [
    { subject: asset, check: 'journal', message: `${account} is ${show(asset, units)}, on the wrong side` },
  ]
}

/** What comparisons go by instead of adding everything up (docs/decisions/0021), against everything added up. */
async function auditSums(tx: Sql): Promise<Problem[]> {
  const buckets = { first: 0, last: BUCKETS - 1 }
  const wallets = await findFalseWalletSums(
    tx,
    buckets,
    assets.map(({ id }) => id),
  )
  const resting = await findFalseRestingSums(tx)
  return [
    ...wallets.map(({ bucket, asset, summed, journal }) =>
      problem(
        asset,
        'journal',
        `wallet of bucket ${bucket} adds up to ${show(asset, journal)}, its sum is ${show(asset, summed)}`,
      ),
    ),
    ...resting.map(({ asset, units, summed }) =>
      problem(
        asset,
        'chain',
        `what rests adds up to ${show(asset, units)}, its sum is ${show(asset, summed)}`,
      ),
    ),
  ]
}

const listed = assets.map(({ id }) => id)

/** What operators have said against the audit log, the entries that book it, and what became of it. */
async function auditSaid(tx: Sql): Promise<Problem[]> {
  const words = await readFalseWords(tx, listed)
  const lost = await readLostClosings(tx)
  const rows: AuditRow[] = []
  for (const act of Object.values(auditActs)) rows.push(...(await readAuditAct(tx, act)))
  return [
    ...auditWords(await readAllWords(tx), rows),
    ...words.map(({ entryKey, said, booked }) =>
      problem(
        entryKey,
        'journal',
        `an operator has said ${said ?? 'nothing'}, and booked is ${booked ?? 'nothing'}`,
      ),
    ),
    ...lost.map(({ about, asset, units }) =>
      problem(
        about,
        'missing',
        `it was closed with ${show(asset, units)}, which is not confirmed on its chain any more`,
      ),
    ),
  ]
}

const OUTFLOWS_A_STEP = 10_000

async function auditHouse(tx: Sql): Promise<Problem[]> {
  const deposits = await readAuditedHouseDeposits(tx)
  const shared = await readSharedDeposits(tx)
  const balances = await readFalseHouseBalances(tx, listed)
  return [
    ...balances.map(({ asset, account, units, deposits }) => {
      const [is, should] = [show(asset, units), show(asset, deposits)]
      return problem(HOUSE, 'balances', `${account} is ${is}, while its deposits come to ${should}`)
    }),
    ...deposits.flatMap((deposit) => {
      const { asset, key } = deposit
      // A token that is not listed has no place in the books.
      if (!isAssetId(asset)) return []
      return checkDeposit({ ...deposit, asset }).map((message) => problem(key, 'deposits', message))
    }),
    ...(await auditHouseOutflows(tx)),
    ...auditHouseEntries(await readHouseEntriesToExplain(tx), await readAuditAct(tx, 'difference_booked')),
    ...shared.map(({ key, owners }) =>
      problem(key, 'deposits', `it is recorded for ${owners.join(' and ')}`),
    ),
  ]
}

function describeCost({ payoutId, booked, asset, outflow }: FalseCost): Problem {
  if (outflow === null) {
    const cost = show(asset ?? '', booked)
    return problem(
      payoutId,
      'outflows',
      `the journal has a cost of ${cost} of it, and there is no such outflow`,
    )
  }
  const { orderId, kind, state, chain, cost } = outflow
  const native = nativeAsset(chain).id
  const [is, was] = [show(asset ?? native, booked), show(native, cost)]
  const subject = paysSomebody(outflow) ? orderId : payoutId
  const message = `the ${state} ${kind} ${payoutId} is booked with a cost of ${is}, and that was ${was}`
  return problem(subject, 'outflows', message)
}

/** A part after the other, so that memory does not grow with the number of sweeps. */
async function auditHouseOutflows(tx: Sql): Promise<Problem[]> {
  const problems: Problem[] = []
  for (let last = ''; ; ) {
    const outflows = await readAuditedHouseOutflows(tx, last, OUTFLOWS_A_STEP)
    for (const outflow of outflows) {
      problems.push(
        ...checkBookings(outflow).map((message) => problem(outflow.payoutId, 'outflows', message)),
      )
    }
    last = outflows.at(-1)?.payoutId ?? last
    if (outflows.length < OUTFLOWS_A_STEP) return problems
  }
}

async function auditOwners(tx: Sql, bucket: number): Promise<Problem[]> {
  const strays = await readStrayOwners(tx, bucket)
  const outflows = await readStrayOutflows(tx, bucket)
  const unknown = await readUnknownBookings(tx, bucket)
  const unexplained = await readUnexplainedEntries(tx, bucket)
  return [
    ...strays.map((owner) =>
      problem(owner, 'journal', 'the journal has entries of it, and there is no such order'),
    ),
    ...outflows.map(({ orderId, payoutId }) =>
      problem(orderId, 'outflows', `there is an outflow ${payoutId}, and no such order`),
    ),
    ...unknown.map(({ owner, key }) =>
      problem(owner, 'deposits', `the journal books a deposit ${key} that is not recorded`),
    ),
    ...unexplained.map(({ owner, key }) =>
      problem(owner, 'journal', `it has the entry ${key}, and no fact that changed the order`),
    ),
  ]
}
