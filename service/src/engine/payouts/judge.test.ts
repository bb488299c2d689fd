import { hostname, userInfo } from 'node:os'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { verifyAudit } from '../../accounts/verify_audit.ts'
import type { Chain } from '../../chains/chain.ts'
import { showTime } from '../../commands/table.ts'
import { attemptsOf } from '../../db/attempts.ts'
import { appendAudit, houseChain, operator, readAuditBackwards } from '../../db/audit_log.ts'
import type { Database } from '../../db/database.ts'
import { findOrder } from '../../db/orders.ts'
import { planOutflow } from '../../db/outflows.ts'
import { type AssetId, assetOf, nativeAsset } from '../../domain/catalog/assets.ts'
import type { Order } from '../../domain/orders/order.ts'
import { auditBooks } from '../books/audit_books.ts'
import { compareChain } from '../books/compare.ts'
import { reconcileChain } from '../books/reconcile.ts'
import {
  type BooksStage,
  confirmDeposit,
  fundReserve,
  lookAt,
  mineDeposit,
  openBooksStage,
  placeOrder,
  RESERVE,
  sendPayout,
  tell,
  writeAttempt,
} from '../testing/books_stage.ts'
import { nobodyElse } from '../testing/nobody_else.ts'
import { tellOrderCommand } from '../testing/stage_commands.ts'
import { worldSigningNothing } from '../testing/willing_signer.ts'
import { orphanOutflows } from './orphan.ts'
import { workPayouts } from './work.ts'

/**
 * What: a payout whose token moved in another way than it was to ends by an operator's word, as that says, once, and by a word about just
 * that transaction and that move; any other word changes nothing.
 * How: a real PostgreSQL, orders moved by facts, chains on paper that say what was moved, and the command as it is typed.
 */
let stage: BooksStage

beforeAll(async () => {
  stage = await openBooksStage('judge')
})

beforeEach(async () => {
  await stage.reset()
  await stage.empty('audit_log', 'audit_heads')
})

afterAll(() => stage?.stop())

const ETHER = 10n ** 18n
const PROMISED = 100n * ETHER
const COST = 21_000n
const MOVED = 'it was to move 100 units and moved 99'
const BY = `${userInfo().username}@${hostname()}`
const BECAUSE = ['--because', 'the rest was sent by hand']

type Sent = {
  readonly order: Order
  readonly payoutId: string
  readonly txHash: string
  readonly asset: AssetId
}

/** A payout of this token that the network has. */
async function send(asset: AssetId = 'USDT:ERC20'): Promise<Sent> {
  const { chain } = assetOf(asset)
  await fundReserve(stage, nativeAsset(chain).id, 5n * ETHER)
  await fundReserve(stage, asset, 10n * PROMISED)
  const order = await placeOrder(stage, 'BTC:BTC', asset, { asks: 1_000_000n, promises: PROMISED })
  await confirmDeposit(stage, order, await mineDeposit(stage, order, 1_000_000n, 90))
  return { order, asset, ...(await sendPayout(stage, order)) }
}

/** In the block at `height` this much of the token leaves us. */
async function mine({ asset, txHash }: Sent, units: bigint, height = 100): Promise<void> {
  const { chain: id } = assetOf(asset)
  const chain = stage.chain(id)
  chain.mined(txHash, height, COST)
  chain.move(height, asset, RESERVE, -units)
  chain.move(height, nativeAsset(id).id, RESERVE, -COST)
  await lookAt(stage, id, height + 30)
}

/** The chain says of what it has mined that this was moved; null: what it was to move. */
function saying({ asset }: Sent, moved: string | null = MOVED): Chain {
  const paper = stage.chain(assetOf(asset).chain)
  return {
    ...paper,
    lookup: async (hash, intent) => {
      const status = await paper.lookup(hash, intent)
      return status.where === 'block' && moved !== null ? { ...status, movedOtherwise: moved } : status
    },
  }
}

/** The service dies after each step, and begins anew with what is written down. */
async function work(sent: Sent, moved: string | null = MOVED): Promise<void> {
  await workPayouts(worldSigningNothing(stage), saying(sent, moved))
}

/** A payout that waits for an operator. */
async function inDoubt(asset: AssetId = 'USDT:ERC20', units = 99n * ETHER): Promise<Sent> {
  const sent = await send(asset)
  await mine(sent, units)
  await work(sent)
  expect(await outflow(sent)).toEqual({
    state: 'broadcast',
    trouble: `${sent.txHash} succeeded, but ${MOVED}`,
  })
  return sent
}

async function outflow({ payoutId }: Pick<Sent, 'payoutId'>) {
  return (await stage.db.query('SELECT state, trouble FROM outflows WHERE payout_id = $1', [payoutId]))[0]
}

async function stateOf({ order }: Sent) {
  return (await findOrder(stage.db, order.terms.id))?.state
}

/** What `cambist order judge …` prints, or the sentence with which it refuses. */
async function judge(...words: string[]): Promise<string> {
  return judgeIn(stage.db, ...words)
}

function judgeIn(db: Database, ...words: string[]): Promise<string> {
  return tellOrderCommand(stage, ['judge', ...words], db)
}

/** What every clock says, as a command prints it. */
function at(): string {
  return showTime(stage.world.clock.wallMs())
}

function verdicts() {
  return stage.db.query('SELECT payout_id, tx_hash, moved, is_paid FROM verdicts')
}

/** What the chain holds beyond the books, which find nothing wrong with themselves. */
async function differences({ asset }: Sent, problems: readonly string[] = []) {
  const compared = await compareChain(stage.db, stage.chain(assetOf(asset).chain), { kind: 'all' })
  if (compared.kind === 'inconclusive') throw new Error(compared.why)
  expect((await auditBooks(stage.db)).problems.map(({ message }) => message)).toEqual(problems)
  return compared.comparisons.flatMap((one) =>
    one.difference === 0n ? [] : [{ asset: one.asset, units: one.difference }],
  )
}

async function loseBlock({ asset }: Sent, height: number, branch: number, units: bigint): Promise<void> {
  const { chain: id } = assetOf(asset)
  const chain = stage.chain(id)
  const blocks = [{ height, hash: (await chain.blockHash(height)) ?? '' }]
  await orphanOutflows(stage.world, id, { kind: 'named', blocks }, branch, nobodyElse)
  chain.move(height, asset, RESERVE, units)
  chain.move(height, nativeAsset(id).id, RESERVE, COST)
  await stage.db.query('UPDATE chain_heads SET reorganisations = $2 WHERE chain = $1', [id, branch])
  // The worker that ended it holds its claim for a while.
  stage.advance(120_000)
}

const TOKENS = ['USDT:ERC20', 'USDT:TRC20'] as const

test.each(TOKENS)('judged paid, a payout of %s ends as one that succeeded', async (asset) => {
  const sent = await inDoubt(asset)
  const printed = await judge(sent.payoutId, '--paid', ...BECAUSE)
  expect(printed).toContain(`${sent.payoutId} is judged paid by ${sent.txHash}: ${MOVED}.`)
  expect(await verdicts()).toEqual([
    { payout_id: sent.payoutId, tx_hash: sent.txHash, moved: MOVED, is_paid: true },
  ])
  await work(sent)
  expect(await outflow(sent)).toMatchObject({ state: 'confirmed' })
  expect(await stateOf(sent)).toMatchObject({ status: 'DONE', txHash: sent.txHash })
  expect(await differences(sent), 'what the token left with us').toEqual([{ asset, units: ETHER }])

  const chain = /cambist audit show (house_.)/.exec(printed)?.[1] ?? ''
  const [row] = await readAuditBackwards(stage.db, chain, 1_000, 10)
  expect(row).toMatchObject({ act: 'payout_judged', actor: 'operator', subject: sent.payoutId })
  expect(JSON.parse(row?.detail ?? '')).toMatchObject({
    os_host: hostname(),
    verdict: 'paid',
    because: 'the rest was sent by hand',
    tx_hash: sent.txHash,
    moved: MOVED,
  })
  expect((await verifyAudit(stage.db, [])).problems).toEqual([])
})

test.each(TOKENS)('judged not paid, a payout of %s has failed at our cost', async (asset) => {
  const sent = await inDoubt(asset)
  expect(await judge(sent.payoutId, '--not-paid', ...BECAUSE)).toContain('is judged not paid')
  await work(sent)
  expect(await outflow(sent)).toMatchObject({ state: 'failed' })
  expect(await stateOf(sent)).toMatchObject({ status: 'EMERGENCY', reasons: ['NETWORK_PROBLEM'] })
  const [costs] = await stage.db.query(
    `SELECT failed_payouts_cost AS charged, (
       SELECT sum(units) FROM journal WHERE owner = order_id AND debit = 'network_costs' AND asset = $1 AND entry_key LIKE '%:failed'
     ) AS booked FROM orders`,
    [nativeAsset(assetOf(asset).chain).id],
  )
  expect(costs).toEqual({ charged: 0n, booked: COST })
  expect(await differences(sent)).toEqual([{ asset, units: -99n * ETHER }])
})

test('it ends also while outflows of its chain are stopped, because what left is not what the books expect', async () => {
  const sent = await inDoubt()
  const eth = stage.chain('ETH')
  for (let look = 0; look < 3; look += 1) await reconcileChain(stage.world, eth, { guard: nobodyElse })
  stage.advance(60_000)
  await work(sent)
  await judge(sent.payoutId, '--paid', ...BECAUSE)
  await work(sent)
  expect(await stateOf(sent)).toMatchObject({ status: 'DONE' })
})

test('one word is given about one move, also by two at once; who comes second is told whose it was, when and why', async () => {
  const sent = await inDoubt()
  const { payoutId, txHash } = sent
  const words = ['--paid', '--not-paid'].map((word) => judge(payoutId, word, '--because', `it is ${word}`))
  const answers = await Promise.all(words)
  const [verdict] = await verdicts()
  const [word, given] = verdict?.is_paid ? ['paid', '--paid'] : ['not paid', '--not-paid']
  const where = `see cambist audit show ${houseChain(payoutId)}`
  const told = `was judged ${word} with ${txHash} by ${BY} on ${at()}: it is ${given}; ${where}.`
  const refused = `${payoutId} ${told} That stands: an engine goes by it.`
  expect(answers.filter((answer) => answer === refused)).toHaveLength(1)
  for (const again of ['--paid', '--not-paid']) expect(await judge(payoutId, again, ...BECAUSE)).toBe(refused)
  expect(await verdicts()).toEqual([verdict])
  expect(await stage.db.query('SELECT act FROM audit_log')).toEqual([{ act: 'payout_judged' }])
  await work(sent)
  const state = verdict?.is_paid ? 'confirmed' : 'failed'
  expect(await outflow(sent)).toMatchObject({ state })
  const ended = `${payoutId} has ended (${state}): there is nothing to judge. It ${told}`
  expect(await judge(payoutId, '--paid', ...BECAUSE)).toBe(ended)
})

test('an order is shown with what was judged and noted of its payout and its deposit, and with nothing of others', async () => {
  const sent = await inDoubt()
  const { id } = sent.order.terms
  const { payoutId, txHash } = sent
  await judge(payoutId, '--paid', ...BECAUSE)
  const note = (subject: string, because: string) => {
    const machine = { user: 'ada', host: 'ops1' }
    const entry = {
      chain: houseChain(subject),
      atMs: 1_000,
      act: 'noted',
      subject,
      detail: { because },
    } as const
    return stage.db.transaction((tx) => appendAudit(tx, { ...entry, by: { ...operator, machine } }))
  }
  await note(payoutId, 'sent 1 USDT with 0x8b')
  await note(txHash, 'looked up')
  await note(`BTC:deposit-tx-${id}-1000000:0`, 'asked its payer')
  await note(`${payoutId}0`, 'of another')
  const shown = await tellOrderCommand(stage, ['show', id])
  const judged = `${payoutId} +paid +${txHash} +${MOVED} +${at()} +${BY} +${BECAUSE[1]}`
  expect(shown).toMatch(new RegExp(`^Judged\nOUTFLOW .*\n${judged}$`, 'm'))
  const line = (subject: string, why: string) => `${subject} +1970-01-01 00:00:01Z +ada@ops1 +${why}\n`
  expect(shown).toMatch(new RegExp(`^Noted\nABOUT .*\n${'[^\n]+\n'.repeat(3)}\n`, 'm'))
  expect(shown).toMatch(new RegExp(`^${line(payoutId, 'sent 1 USDT with 0x8b')}`, 'm'))
  expect(shown).toMatch(new RegExp(`^${line(txHash, 'looked up')}`, 'm'))
  expect(shown).toMatch(new RegExp(`^${line(`BTC:deposit-tx-${id}-1000000:0`, 'asked its payer')}`, 'm'))
  expect(JSON.parse(await tellOrderCommand(stage, ['show', id, '--json']))).toMatchObject({
    verdicts: [
      { payout_id: payoutId, is_paid: true, because: BECAUSE[1], audit_chain: houseChain(payoutId) },
    ],
    notes: [{ by: 'ada@ops1' }, { by: 'ada@ops1' }, { by: 'ada@ops1' }],
  })
})

test('what dies before its reason is in the audit log has said nothing', async () => {
  const sent = await inDoubt()
  const { db } = stage
  const dying: Database = {
    ...db,
    transaction: (act) =>
      db.transaction((tx) =>
        act({
          query: (text, values) =>
            text.includes('INSERT INTO audit_log')
              ? Promise.reject(new Error('it dies'))
              : tx.query(text, values),
        }),
      ),
  }
  await expect(judgeIn(dying, sent.payoutId, '--paid', ...BECAUSE)).rejects.toThrow('it dies')
  expect(await verdicts()).toEqual([])
  stage.advance(60_000)
  await work(sent)
  expect(await outflow(sent)).toMatchObject({ state: 'broadcast' })
  expect(await judge(sent.payoutId, '--paid', ...BECAUSE)).toContain('is judged paid')
})

test('what is not in doubt is not judged', async () => {
  const sent = await send()
  const refused = async (payoutId: string, ...words: string[]) => {
    const answer = await judge(payoutId, ...words)
    expect(await verdicts()).toEqual([])
    return answer
  }
  const { payoutId } = sent
  expect(await refused(payoutId, '--paid', ...BECAUSE), 'in no block').toContain('No transaction of')
  expect(await refused(payoutId, ...BECAUSE)).toBe('Say either --paid or --not-paid.')
  expect(await refused(payoutId, '--paid', '--not-paid', ...BECAUSE)).toBe('Say either --paid or --not-paid.')
  expect(await refused(payoutId, '--paid', '--because', ' ')).toContain('--because says why')
  for (const unknown of ['CB0000000000000001:9', 'CB1:1', sent.order.terms.id, 'nothing'])
    expect(await refused(unknown, '--paid', ...BECAUSE)).toContain(`There is no outflow ${unknown};`)
  const planned = await placeOrder(stage, 'BTC:BTC', 'USDT:ERC20', { asks: 1_000_000n, promises: PROMISED })
  await confirmDeposit(stage, planned, await mineDeposit(stage, planned, 1_000_000n, 90))
  await tell(stage, planned.terms.id, 'priced:1', { kind: 'ExchangePriced', quote: null })
  expect(await refused(`${planned.terms.id}:1`, '--paid', ...BECAUSE), 'never sent').toContain(
    'No transaction of',
  )
  for (const kind of ['sweep', 'filler'] as const) {
    const name = `house-ETH-${kind}:1`
    const what = { kind, asset: 'ETH:ETH', units: 0n, address: RESERVE, tag: null } as const
    await planOutflow(stage.db, { payoutId: name, ...what }, 1)
    expect(await refused(name, '--paid', ...BECAUSE)).toBe(`${name} is a ${kind}: it pays nobody.`)
  }
  await mine(sent, PROMISED)
  await work(sent, null)
  expect(await refused(payoutId, '--paid', ...BECAUSE)).toBe(
    `${payoutId} has ended (confirmed): there is nothing to judge.`,
  )
})

test('what a node said before its chain took another branch is judged no more', async () => {
  const sent = await inDoubt()
  stage.chain('ETH').mined(sent.txHash, 130, COST)
  stage.advance(60_000)
  await lookAt(stage, 'ETH', 130)
  await work(sent)
  expect(await judge(sent.payoutId, '--paid', ...BECAUSE), 'not deep').toContain('No transaction of')
})

test('trouble of a node leaves to be judged what was found before', async () => {
  const sent = await inDoubt()
  stage.advance(60_000)
  const lookup = () => Promise.reject(new Error('no answer'))
  await workPayouts(worldSigningNothing(stage), { ...saying(sent), lookup })
  expect(await outflow(sent)).toMatchObject({ trouble: 'Error: no answer' })
  expect(await judge(sent.payoutId, '--paid', ...BECAUSE)).toContain('is judged paid')
  await work(sent)
  expect(await outflow(sent)).toMatchObject({ state: 'confirmed' })
})

test('it is judged also while the signer refuses a further attempt of it', async () => {
  const sent = await send()
  const { bucket, payout_id } = (await stage.db.query('SELECT bucket, payout_id FROM outflows'))[0] ?? {}
  await stage.db.query(
    `INSERT INTO attempts (bucket, payout_id, attempt, intent, drafted_at_ms) VALUES ($1, $2, 2, '{"family":"evm"}', 2)`,
    [bucket, payout_id],
  )
  await mine(sent, 99n * ETHER)
  await work(sent)
  expect(await outflow(sent)).toMatchObject({ trouble: `${sent.txHash} succeeded, but ${MOVED}` })
  await judge(sent.payoutId, '--paid', ...BECAUSE)
  await work(sent)
  expect(await outflow(sent)).toMatchObject({ state: 'confirmed' })
})

test('between the word and the next look the chain moves what it was to: then the word is not asked', async () => {
  const sent = await inDoubt()
  await judge(sent.payoutId, '--not-paid', ...BECAUSE)
  await work(sent, null)
  expect(await stateOf(sent)).toMatchObject({ status: 'DONE' })
})

test.each([
  ['moved something else', (sent: Sent) => work(sent, 'it moved 1'), 'it moved 1'],
  [
    'is another attempt',
    async (sent: Sent) => {
      if ((await attemptsOf(stage.db, sent.payoutId)).length === 1)
        await writeAttempt(stage, sent.payoutId, 2, 'another')
      stage.chain('ETH').mined(sent.txHash, 1_000, COST)
      stage.chain('ETH').mined('another', 101, COST)
      const chain = saying(sent)
      const lookup: Chain['lookup'] = async (hash) =>
        hash === 'another' ? chain.lookup(hash) : { where: 'absent' }
      await workPayouts(worldSigningNothing(stage), { ...chain, lookup })
    },
    MOVED,
  ],
])('a word is not about what the next branch has, which %s', async (_, next, moved) => {
  const sent = await inDoubt()
  await judge(sent.payoutId, '--paid', ...BECAUSE)
  await next(sent)
  expect(await outflow(sent)).toMatchObject({
    state: 'broadcast',
    trouble: expect.stringMatching(` succeeded, but ${moved}$`),
  })
  expect(await judge(sent.payoutId, '--not-paid', ...BECAUSE)).toContain('is judged not paid')
  expect(await verdicts()).toHaveLength(2)
  await next(sent)
  expect(await outflow(sent)).toMatchObject({ state: 'failed' })
})

test('judged not paid after its order has ended, nothing is to be paid by hand where the deposit is gone too', async () => {
  const sent = await inDoubt('USDT:ERC20', PROMISED)
  await judge(sent.payoutId, '--paid', ...BECAUSE)
  await work(sent)
  await loseBlock(sent, 100, 1, PROMISED)
  await mine(sent, 0n, 131)
  await work(sent, 'it moved nothing')
  const { id } = sent.order.terms
  const key = `BTC:deposit-tx-${id}-1000000:0`
  await tell(stage, id, `${key}:unmined:b@1`, { kind: 'DepositUnmined', key })
  const told = await judge(sent.payoutId, '--not-paid', ...BECAUSE)
  expect(told).toContain(
    `then close it, cambist order close-owed ${id}:1. Its own deposit is gone: 0.01 BTC:BTC is missing. Pay nothing unless that is back.\n`,
  )
  expect(told).not.toContain('by hand')
})

test('judged paid, it is final again by the same word when its block is lost, and asks anew about another move', async () => {
  const sent = await inDoubt('USDT:ERC20', PROMISED)
  await judge(sent.payoutId, '--paid', ...BECAUSE)
  await work(sent)
  expect(await differences(sent)).toEqual([])
  await loseBlock(sent, 100, 1, PROMISED)
  expect(await outflow(sent)).toEqual({ state: 'orphaned', trouble: null })
  expect(await judge(sent.payoutId, '--paid', ...BECAUSE)).toContain('No transaction of')
  await mine(sent, PROMISED, 131)
  await work(sent)
  expect(await outflow(sent)).toMatchObject({ state: 'confirmed' })
  expect(await differences(sent)).toEqual([])

  await loseBlock(sent, 131, 2, PROMISED)
  await mine(sent, 0n, 162)
  await work(sent, 'it moved nothing')
  expect(await outflow(sent)).toMatchObject({
    state: 'orphaned',
    trouble: expect.stringContaining('it moved nothing'),
  })
  expect(await judge(sent.payoutId, '--not-paid', ...BECAUSE)).toMatch(
    /is judged not paid .*\nIts order has ended and stays as it is\. Its payee is still owed the payment: send nothing yet\. .* close-owed CB\d+:1, and only then pay it by hand\.\n/,
  )
  await work(sent, 'it moved nothing')
  expect(await outflow(sent)).toMatchObject({ state: 'failed' })
  expect(await stateOf(sent), 'its client was told so').toMatchObject({ status: 'DONE' })
  expect(stage.logged.at(-1)).toMatchObject({
    level: 'error',
    message: 'an outflow that was final was mined again and failed: it is still owed',
  })
  const { id } = sent.order.terms
  expect(
    await differences(sent, [
      `the failed payout ${id}:1 is booked as orphaned with 100 USDT:ERC20, and that is 0 USDT:ERC20`,
      `it is DONE and its outflow ${id}:1 is not confirmed`,
    ]),
  ).toEqual([])
})

test.each([
  [MOVED, 'info', 'an outflow that had failed was mined again: nobody was paid by it'],
  ['it moved 1', 'error', 'an outflow that had failed was mined again and paid: it may have been paid twice'],
])('judged not paid, it loses its block and is mined again where %s', async (moved, level, message) => {
  const sent = await inDoubt('USDT:ERC20', 0n)
  await stage.db.query('UPDATE outflows SET nonce = 0')
  await judge(sent.payoutId, '--not-paid', ...BECAUSE)
  await work(sent)
  expect(await differences(sent)).toEqual([])
  await loseBlock(sent, 100, 1, 0n)
  stage.chain('ETH').mined(sent.txHash, 1_000, COST)
  expect(await differences(sent)).toEqual([])
  await mine(sent, 0n, 131)
  await work(sent, moved)
  expect(stage.logged.at(-1)).toMatchObject({ level, message, facts: { payout: sent.payoutId } })
  expect(await differences(sent)).toEqual([])
})
