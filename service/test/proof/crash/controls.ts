import { eventually } from '../../harness/eventually.ts'
import { openHttpLine } from '../../harness/http_line.ts'
import type { Wish } from './customers.ts'
import type { Patch } from './patches.ts'
import type { Role } from './points.ts'
import type { Ground, Stage, StageOptions } from './stage.ts'

/** A service that is known to be bad. If it passes the test, the test has a hole. */
export type Control = {
  readonly name: string
  /** What was taken out of it. Several things keep the promise, each alone; all of them have to go. */
  readonly without: string
  /** What the checks have to say of it: a service that is broken in another way says something else. */
  readonly shows: RegExp
  readonly patches: readonly Patch[]
  readonly sql: readonly string[]
  readonly wishes: readonly Wish[]
  /** Where it hurts. */
  readonly aims: readonly { readonly role: Role; readonly point: string }[]
  /** What the world does to it besides. */
  readonly prepare?: (
    ground: Ground,
  ) => Promise<{ readonly options: Partial<StageOptions>; stop(): Promise<void> }>
  readonly onDeath?: (ground: Ground, stage: Stage) => Promise<void>
}

const PAID_LESS = /arrived \d+ and nothing; due were \d+ and 0$/
const PAID_TWICE = /was paid .+ and refunded .+; due were/
/** A service that sent what it does not know of compares its ledger with the chain, and stops before it sends again. */
const PAID_UNKNOWN = /the ledger of .+ differs from the chain by -?\d+|was paid .+ and refunded .+; due were/

const pays = (from: Wish['from'], to: Wish['to']): Wish => ({ story: 'pays', from, to })

/** The signer forgets what it signed, and signs whatever else it is asked for the same payout. */
const forgetfulSigner: readonly Patch[] = [
  {
    file: 'db/signed_transactions.ts',
    find: 'attempts: async (payoutId) => (await readAttempts(database, payoutId)).map(toRecord),',
    replace: 'attempts: async () => [],',
  },
  {
    file: 'db/signed_transactions.ts',
    find: 'insertOnce: (record, limits) =>',
    replace: 'insertOnce: async (record) => record,\n    unused: (record, limits) =>',
  },
]

/**
 * The key of an outflow is made by the clock and a counter, as two may be made within a millisecond; no index says that there is one for
 * an order, and the signer signs one although a later one of the order was signed.
 */
const keylessObligations = {
  patches: [
    {
      file: 'db/signed_transactions.ts',
      find: "split_part(payout_id, ':', 2)::bigint > $10",
      replace: "split_part(payout_id, ':', 2)::bigint > $10 AND false",
    },
    {
      file: 'domain/orders/identifiers.ts',
      find: 'export function payoutIdOf(orderId: OrderId, number: number): string {',
      replace: `let keysMade = 0
      export function payoutIdOf(orderId: OrderId, number: number): string {
      keysMade += 1
      number += (Date.now() % 1e5) * 1e4 + (keysMade % 1e4)`,
    },
  ],
  sql: ['DROP INDEX outflows_one_live', 'DROP INDEX outflows_one_success'],
} as const

const plansInTransaction =
  'for (const effect of effects.filter(isPlan)) await carryOut(tx, order, effect, nowMs)'

/** Whoever has looked at an order goes on when another has, so that both have seen the same. None may be on its way: five seconds. */
const meeting = `const looking = new Map()
  async function untilAnotherLooked(orderId) {
    const goOn = looking.get(orderId)
    looking.delete(orderId)
    if (goOn !== undefined) return goOn()
    await new Promise((resolve) => {
      looking.set(orderId, resolve)
      setTimeout(resolve, 5_000)
    })
  }`

export const controls: readonly Control[] = [
  {
    name: 'broadcast before storing',
    without:
      'a draft and its bytes are committed only after they were sent, and the signer keeps no record; with the record alone, a second draft is never signed',
    shows: PAID_UNKNOWN,
    patches: [
      ...forgetfulSigner,
      {
        file: 'engine/payouts/send.ts',
        find: 'async function authorityFor(',
        replace: 'export async function authorityFor(',
      },
      {
        file: 'engine/payouts/draft.ts',
        find: "import { type Progress, troubled } from './progress.ts'",
        replace:
          "import { type Progress, troubled } from './progress.ts'\nimport { authorityFor } from './send.ts'",
      },
      {
        file: 'engine/payouts/draft.ts',
        find: 'world.db.transaction((tx) => draft(world, chain, outflow, asked, tx))',
        replace: `world.db.transaction(async (tx) => {
          if (!(await draft(world, chain, outflow, asked, tx))) return false
          const [{ intent }] = await attemptsOf(tx, outflow.payoutId)
          const signed = await world.signer.sign(intent, await authorityFor(world, outflow))
          if (signed.ok) await chain.broadcast(signed.value)
          return true
        })`,
      },
    ],
    sql: [],
    wishes: [pays('BTC:BTC', 'USDT:ERC20'), pays('BTC:BTC', 'ETH:ETH'), pays('BTC:BTC', 'USDT:ERC20')],
    aims: [
      { role: 'engine', point: 'the network has the bytes, nobody noted it' },
      { role: 'engine', point: 'the network has the bytes, nobody noted it' },
    ],
  },
  {
    name: 'no unique obligation key',
    without:
      'an outflow has a key by chance, no unique index, is planned outside the transaction that settles, is paid whether the books owe it or not, and is signed after a later one; with any one of the first three there is one outflow, with the fourth one is paid',
    shows: PAID_TWICE,
    patches: [
      ...keylessObligations.patches,
      {
        file: 'engine/payouts/wait_for_source.ts',
        find: 'if (owed === units) return deposits',
        replace: 'if (owed === units || units > 0n) return deposits',
      },
      {
        file: 'engine/apply.ts',
        find: plansInTransaction,
        replace:
          'for (const effect of effects.filter(isPlan)) await carryOut(world.db, order, effect, nowMs)',
      },
    ],
    sql: keylessObligations.sql,
    wishes: [pays('BTC:BTC', 'USDT:ERC20'), pays('BTC:BTC', 'ETH:ETH')],
    aims: [{ role: 'engine', point: 'a payout is planned, not committed' }],
  },
  {
    name: 'check-then-act on emergency',
    without:
      'the order is read without its lock for a choice, its events have no key, an outflow has a key by chance and no unique index, and is signed after a later one; with any one of the first four one choice wins, with the last the later of two is paid',
    shows: PAID_TWICE,
    patches: [
      ...keylessObligations.patches,
      {
        file: 'engine/apply.ts',
        find: 'const locked = await lockOrder(tx, orderId)',
        replace: `const isChoice = all.some(({ fact }) => fact.kind === 'ActionChosen')
        const look = () => tx.query('SELECT * FROM orders WHERE order_id = $1', [orderId])
        const locked = isChoice ? ((await look())[0] ?? null) : await lockOrder(tx, orderId)
        if (isChoice) await untilAnotherLooked(orderId)`,
      },
      {
        file: 'engine/apply.ts',
        find: 'function isPlan({ kind }: Effect): boolean {',
        replace: `${meeting}
        function isPlan({ kind }: Effect): boolean {`,
      },
    ],
    sql: [...keylessObligations.sql, 'ALTER TABLE events DROP CONSTRAINT events_pkey'],
    wishes: [
      { story: 'wants both', from: 'BTC:BTC', to: 'USDT:ERC20' },
      { story: 'wants both', from: 'BTC:BTC', to: 'ETH:ETH' },
    ],
    aims: [],
  },
  {
    name: 'no block-hash look before paying',
    without: 'a payout leaves on the word of the tables alone; nothing else would stop it',
    shows: /was paid although its own payment .+ is nowhere/,
    patches: [
      {
        file: 'engine/payouts/draft.ts',
        find: 'const waits = await whyWaitForSource(world, outflow, keep)',
        replace: 'const waits = world === null ? await whyWaitForSource(world, outflow, keep) : null',
      },
      {
        file: 'engine/payouts/wait_for_source.ts',
        find: 'return isOut ?',
        replace: 'return isOut || world !== null ?',
      },
    ],
    sql: [],
    wishes: [{ story: 'loses the payment', from: 'ETH:ETH', to: 'BTC:BTC' }],
    aims: [{ role: 'engine', point: 'an exchange is settled, its payout is due' }],
    onDeath: loseThePayment,
  },
  {
    name: 'signing again on a timeout',
    without:
      'when nobody says whether the bytes arrived, a new draft takes a new nonce, and the signer keeps no record; with the record alone, the new one is never signed',
    shows: PAID_UNKNOWN,
    patches: [
      ...forgetfulSigner,
      {
        file: 'engine/payouts/send.ts',
        find: "await noteMissing(world, outflow, [sent, ...forgotten], 'unknown')",
        replace: `await world.db.query('DELETE FROM attempts WHERE payout_id = $1', [outflow.payoutId])
        await world.db.query(
          "UPDATE outflows SET state = 'planned', nonce = NULL WHERE payout_id = $1",
          [outflow.payoutId],
        )`,
      },
    ],
    sql: [],
    wishes: [pays('BTC:BTC', 'USDT:ERC20'), pays('BTC:BTC', 'ETH:ETH')],
    aims: [],
    prepare: loseAnswers,
  },
  {
    name: 'memory-only due rows',
    without:
      'what a decision asks for is kept in memory and written a minute after it; nothing else would find it',
    shows: /owes .+, and nobody knows of it/,
    patches: [
      {
        file: 'engine/apply.ts',
        find: plansInTransaction,
        replace: `for (const effect of effects.filter(isPlan))
          setTimeout(() => carryOut(world.db, order, effect, nowMs).catch(() => {}), 60_000)`,
      },
    ],
    sql: [],
    wishes: [pays('BTC:BTC', 'USDT:ERC20'), pays('BTC:BTC', 'ETH:ETH')],
    aims: [{ role: 'engine', point: 'an exchange is settled, its payout is due' }],
  },
  {
    name: 'less than was promised',
    without: 'a fixed order settles a hundredth below what was shown, and its books agree with that',
    shows: PAID_LESS,
    patches: [
      {
        file: 'domain/orders/order.ts',
        find: ': { from, to, rate, fee, networkFee }',
        replace: ': { from, to: { ...to, units: (to.units * 99n) / 100n }, rate, fee, networkFee }',
      },
    ],
    sql: [],
    wishes: [pays('BTC:BTC', 'ETH:ETH')],
    aims: [],
  },
  {
    name: 'no tag',
    without: 'a payout on the XRP Ledger is signed without the tag that it was drafted with',
    shows: /asked for r\w+ with \d+, and what arrived there was for null$/,
    patches: [
      {
        file: 'signer/transactions/xrp_transaction.ts',
        find: '...(tag !== null && { DestinationTag: tag }),',
        replace: '...(tag === undefined && { DestinationTag: tag }),',
      },
    ],
    sql: [],
    wishes: [pays('ETH:ETH', 'XRP:XRP')],
    aims: [],
  },
  {
    name: 'all for a half',
    without: 'an order that was paid a half is offered and paid the whole of what was promised',
    shows: PAID_TWICE,
    patches: [
      {
        file: 'engine/emergency_offers.ts',
        find: 'continue: keepsRate ? locked && failed && quoteLess(locked, failed) : current,',
        replace: 'continue: locked && failed && keepsRate ? { ...locked, to: terms.promises } : current,',
      },
    ],
    sql: [],
    wishes: [{ story: 'continues', from: 'BTC:BTC', to: 'USDT:ERC20' }],
    aims: [],
  },
]

/** While the watcher sleeps, the payment of the order that is due leaves the chain; the engine comes back first. */
async function loseThePayment({ devnet }: Ground, { fleet, inspected }: Stage): Promise<void> {
  fleet.signal('watcher', 'SIGSTOP')
  const [deposit] = await inspected.rows<{ block_height: number }>(
    `SELECT block_height FROM deposits WHERE chain = 'ETH' AND state = 'confirmed'`,
  )
  const head = await inspected.chains.get('ETH')?.head()
  if (deposit === undefined || head === undefined) throw new Error('a payment is confirmed')
  // Deeper than it stood, because more blocks may come at this moment.
  await devnet.reorg('ETH', head.height - deposit.block_height + 5)
  void wakeUp(devnet, { fleet, inspected })
}

async function wakeUp(devnet: Ground['devnet'], { fleet, inspected }: Pick<Stage, 'fleet' | 'inspected'>) {
  await eventually('the engine has paid or refused', async () => {
    const [outflow] = await inspected.rows<{ state: string; trouble: string | null }>(
      `SELECT state, trouble FROM outflows WHERE kind = 'payout'`,
    )
    if (outflow?.state !== 'broadcast' && outflow?.trouble === null) throw new Error('not yet')
  })
  await devnet.mine('BTC', 1)
  fleet.signal('watcher', 'SIGCONT')
}

const ANSWERS_LOST = 2

/** The first payouts that are sent on Ethereum arrive, and nobody hears of it. */
async function loseAnswers({ devnet }: Ground) {
  const { ETH } = devnet.networks
  if (ETH === undefined) throw new Error('the devnet has Ethereum')
  const line = await openHttpLine(ETH.rpcUrl)
  let lost = 0
  line.meddle(({ method }) => {
    if (method !== 'eth_sendRawTransaction' || lost === ANSWERS_LOST) return null
    lost += 1
    return 'drop_reply'
  })
  return { options: { engineEthUrl: line.url }, stop: line.stop }
}
