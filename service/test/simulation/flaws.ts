import type { Database, Sql } from '../../src/db/database.ts'
import { type AssetId, assetOf } from '../../src/domain/catalog/assets.ts'
import { parseExact, stringifyExact } from '../../src/domain/exact_json.ts'
import { add } from '../../src/domain/money/amount.ts'
import { accept, refuse } from '../../src/domain/outcome.ts'
import type { Intent } from '../../src/domain/payouts/intent.ts'
import { SOLANA_BLOCKS_OF_LIFE } from '../../src/domain/payouts/solana_life.ts'
import type { RateType } from '../../src/domain/quotes/quote.ts'
import type { MarketBoard } from '../../src/engine/market.ts'
import { makeSeal } from '../../src/engine/seal.ts'
import { localSigner } from '../../src/signer/local_signer.ts'
import type { Signer } from '../../src/signer/signer.ts'
import { memoryStore } from '../../src/signer/testing/memory_store.ts'
import { datedIds, datedRules } from './chains/dated_rules.ts'
import { simulatedSignerSettings } from './chains/signer_settings.ts'
import type { SimulatedNodes } from './chains/simulated_chains.ts'
import { Chance } from './chance.ts'
import { outsideAddress } from './customers.ts'
import { START_MS, sealKey } from './ground.ts'
import type { Flaw } from './play.ts'
import { drawProfile, isDated, type Profile } from './profile.ts'

/** Engines that do not keep their promises, each for one reason. A simulation that they pass shows nothing. */
export const flaws = {
  'signs anew and sends before it stores': () => ({ signer: hastySigner }),
  'checks and acts without a lock': () => ({
    database: (db) =>
      rewriting(db, (text) => text.replaceAll(/FOR (UPDATE|SHARE)( OF \w+)?( SKIP LOCKED)?/g, '')),
  }),
  'pays without another look at the block': () => withoutLook(() => true),
  'looks at the block once, for the draft': withoutLookAtDrafted,
  'credits a block early': () => ({
    database: (db) =>
      rewriting(db, (text) =>
        text.replace("'mined' AND d.block_height <= $2 + 1", "'mined' AND d.block_height <= $2 + 2"),
      ),
  }),
  'signs again before the time of the first attempt is over': withoutPatience,
  'takes a payout for final in its first block': withoutDepth,
  'asks of every deposit one block': () => ({
    database: (db) => changing(db, /"required_confirmations":\d+/g, '"required_confirmations":1'),
  }),
  'asks of a large deposit no more blocks than of a small one': () => ({
    database: (db) => changing(db, /"required_confirmations":6/g, '"required_confirmations":3'),
  }),
  'pays for more than was asked as soon as for what was asked': withoutDepthForMore,
  'pays somebody else': () => ({
    desk: (desk) => ({
      ...desk,
      createOrder: (account, request, slot) => {
        const asset = `${request.to}:${request.toNetwork}` as AssetId
        const destination = outsideAddress(asset, `somebody beside ${request.destination}`)
        return desk.createOrder(account, { ...request, destination }, slot)
      },
    }),
  }),
  'refunds to where nobody asked for it': () => ({
    desk: (desk) => ({
      ...desk,
      chooseAction: (account, orderId, action, _address, slot) =>
        desk.chooseAction(account, orderId, action, null, slot),
    }),
  }),
  'pays without the tag': () => ({ signer: (signer) => retagging(signer, () => null) }),
  "pays with another's tag": () => ({
    signer: (signer) => retagging(signer, (tag) => (tag === '7' ? '8' : '7')),
  }),
  'refunds without the tag': () => ({
    desk: (desk) => ({
      ...desk,
      chooseAction: (account, orderId, action, address, slot) =>
        desk.chooseAction(account, orderId, action, address === null ? null : accountOf(address), slot),
    }),
  }),
  'pays less than it has shown': () => ({
    desk: (desk) => ({
      ...desk,
      createOrder: async (...asked) => {
        const created = await desk.createOrder(...asked)
        if (!created.ok) return created
        const { order } = created.value
        return accept({ ...created.value, order: { ...order, receive_amount: `1${order.receive_amount}` } })
      },
    }),
  }),
  'shows more than the market gives': () => ({ market: takingNothing }),
  'takes the fee of a float order twice': () => ({ market: takingTwice('float') }),
  'takes the fee twice when a fixed order is priced anew': () => ({ market: takingTwice('fixed') }),
  'breaks a locked rate where the client goes on': () => ({
    market: (market) => ({ ...market, isLockHeld: () => false }),
  }),
  'keeps a rate locked for ever': () => ({ market: (market) => ({ ...market, isLockHeld: () => true }) }),
  'takes the cost of a refund twice': () => ({
    market: (market) => ({
      ...market,
      payoutCost: (asset) => {
        const cost = market.payoutCost(asset)
        return cost && add(cost, cost)
      },
    }),
  }),
  'files the second output of a transaction as extra': () => ({
    database: (db) =>
      filing(db, (values) => {
        const isSecond = values[ROLE] === 'counted' && /[:.]1$/.test(String(values[KEY]))
        return isSecond ? values.with(ROLE, 'extra') : values
      }),
  }),
  'forgets what came while a payout was under way': () => {
    const extras = new Set<unknown>()
    return {
      database: (db) =>
        filing(db, (values) => {
          if (values[ROLE] === 'extra') extras.add(values[KEY])
          const isForgotten = values[ROLE] === 'counted' && extras.has(values[KEY])
          return isForgotten ? values.with(ROLE, 'extra') : values
        }),
    }
  },
  'leaves out dust that completes an order': () => ({
    database: (db) =>
      filing(db, (values) => {
        const isDust = (values[UNITS] as bigint) < assetOf(values[ASSET] as AssetId).minCredit
        return isDust ? values.with(ROLE, 'dust') : values
      }),
  }),
  'keeps the rate for who pays too late': () => ({
    database: (db) => filing(db, (values) => values.with(IS_LATE, false)),
  }),
  'takes who pays in time for late': () => ({
    database: (db) => filing(db, (values) => values.with(IS_LATE, true)),
  }),
  'tells of more than it has paid': () => ({
    database: (db) => changing(db, /"receive_final_amount":"/g, '"receive_final_amount":"1'),
  }),
  'tells of more than it has refunded': () => ({
    database: (db) => changing(db, /(?<="refund":\{[^}]*"amount":")/g, '1'),
  }),
  'tells of the first attempt when another one was mined': tellingFirst,
  'gives up without proof what spends coins': () => ({
    chain: (chain) => (chain.areExcluded === undefined ? chain : { ...chain, areExcluded: async () => true }),
  }),
  'bids twice what miners ask': () => ({
    chain: (chain) => ({
      ...chain,
      bid: async (outflow) => {
        const bid = await chain.bid(outflow)
        if (!bid.ok || bid.value.family !== 'bitcoin') return bid
        return accept({ ...bid.value, milliSatPerVb: 2n * bid.value.milliSatPerVb })
      },
    }),
  }),
  'lets nobody choose': () => ({
    desk: (desk) => ({
      ...desk,
      chooseAction: async () => refuse({ code: 'MAINTENANCE', message: 'later' }),
    }),
  }),
} as const satisfies Record<string, () => Flaw>

export type FlawName = keyof typeof flaws

const MONEY_GONE = /^nothing is paid twice: |^the ledger equals the chain: /

/**
 * Two have decided the same of an order, and the second one's row comes to a key that holds one of it. That is as far as
 * this engine gets: the key is what still keeps the promise, and whoever locks before he decides never comes to it, so that
 * nothing else has to be shown. That money leaves twice takes an engine without the keys as well, and a signer that signs
 * again; the crash test has one (`check-then-act on emergency`). Keys of what is only noted, like addresses or leases, say
 * nothing of a decision.
 */
const DECIDED_TWICE =
  /violates unique constraint "(events|outflows|attempts|journal)_\w+"|^nothing is paid twice: /

/** What has to be said of each: an engine that is broken in another way is no engine with the flaw. */
export const signs: Readonly<Record<FlawName, RegExp>> = {
  'signs anew and sends before it stores': MONEY_GONE,
  'checks and acts without a lock': DECIDED_TWICE,
  'pays without another look at the block': /^nothing leaves for a deposit that is gone: /,
  'looks at the block once, for the draft': /^nothing is (signed|sent) for a deposit that is gone: /,
  'credits a block early': /^nothing is credited before it is deep: /,
  'signs again before the time of the first attempt is over': MONEY_GONE,
  'takes a payout for final in its first block': /^nothing is final before it is deep: /,
  'asks of every deposit one block': /^nothing is credited before it is deep: /,
  'asks of a large deposit no more blocks than of a small one':
    /^nothing is credited before it is deep: \S+ by BTC:\S+, [345] of 6 deep$/,
  'pays for more than was asked as soon as for what was asked':
    /^nothing leaves before all of it is deep: \S+ for BTC:\S+, [345] of 6 deep$/,
  'pays somebody else': /^nothing is paid twice or wrongly: \S+ is DONE: /,
  'refunds to where nobody asked for it':
    /^nothing is paid twice or wrongly: \S+ is REFUNDED, refunded elsewhere/,
  'pays without the tag': /^who shares an account is named: CB\d+ is paid: \S+ got \d+ for null, /,
  "pays with another's tag": /^who shares an account is named: CB\d+ is paid: \S+ got \d+ for (id )?[78], /,
  'refunds without the tag': /^who shares an account is named: CB\d+ is refunded: \S+ got \d+ for null, /,
  'pays less than it has shown': /^what was promised is paid: /,
  'shows more than the market gives': /^what is shown is what it is worth: \S+ fixed, /,
  'takes the fee of a float order twice': /^what is due is paid: \S+ float, is DONE /,
  'takes the fee twice when a fixed order is priced anew': /^what is due is paid: \S+ fixed, is DONE /,
  'breaks a locked rate where the client goes on': /^what is due is paid: \S+ fixed, is DONE /,
  'keeps a rate locked for ever': /^what is due is paid: \S+ fixed, is DONE /,
  'takes the cost of a refund twice': /^what is due is paid: \S+ \w+, is REFUNDED /,
  'files the second output of a transaction as extra': /^all that came in time counts: /,
  'leaves out dust that completes an order': /^all that came in time counts: /,
  'forgets what came while a payout was under way': /^all that came in time counts: /,
  'keeps the rate for who pays too late': /^who pays too late is asked: /,
  'takes who pays in time for late': /^who pays as asked is not asked about it: \S+ LATE_DEPOSIT$/,
  'tells of more than it has paid': /^what is told has arrived: \S+ is DONE /,
  'tells of more than it has refunded': /^what is told has arrived: \S+ is REFUNDED /,
  'tells of the first attempt when another one was mined': /^what is told is in a block: /,
  'gives up without proof what spends coins': /^nothing is over that may yet be mined: \S+ on BTC$/,
  'bids twice what miners ask': /^no more is paid to miners than they ask: /,
  'lets nobody choose': /^it never came to rest$/,
}

/**
 * What a schedule has to be like to be about what a flaw is in, where few are: over chains whose transactions have an end; of
 * two engines that come upon the same; of a block that is gone before the money leaves; of one who goes on, or first pays, when
 * his time is over. Where that says nothing, any will do.
 */
const about: Readonly<Partial<Record<FlawName, (profile: Profile) => boolean>>> = {
  'checks and acts without a lock': ({ beginsWith, processes, races }) =>
    beginsWith === 'exchanged' && processes > 1 && races > 0,
  'pays without another look at the block': ({ beginsWith }) => beginsWith === 'orphaned',
  'looks at the block once, for the draft': ({ beginsWith }) => beginsWith === 'unsigned',
  'signs again before the time of the first attempt is over': isOverDated,
  'asks of a large deposit no more blocks than of a small one': (profile) =>
    hasLarge(profile) && ['confirmed', 'exchanged'].includes(profile.beginsWith),
  'pays for more than was asked as soon as for what was asked': (profile) =>
    hasLarge(profile) && ['unsigned', 'overtaken', 'sent'].includes(profile.beginsWith),
  'pays without the tag': isOverDated,
  "pays with another's tag": isOverDated,
  'refunds without the tag': isOverDated,
  'keeps a rate locked for ever': ({ beginsWith, orders }) => beginsWith === 'awaited' && orders > 1,
  'keeps the rate for who pays too late': ({ beginsWith, orders }) =>
    ['created', 'paid'].includes(beginsWith) && orders > 1,
}

function isOverDated({ chains }: Profile): boolean {
  return chains.some(isDated)
}

function hasLarge({ chains, orders, largeBtc }: Profile): boolean {
  return chains.includes('BTC') && orders > 1 && largeBtc === '0.1'
}

/** A little before one that catches it, where that is rare all the same: not all before has to be gone through. */
const nearby: Readonly<Partial<Record<FlawName, number>>> = {
  'signs anew and sends before it stores': 150,
  'checks and acts without a lock': 100,
  'pays without another look at the block': 60,
  'looks at the block once, for the draft': 1_180,
  'credits a block early': 10,
  'signs again before the time of the first attempt is over': 4_300,
  'takes a payout for final in its first block': 100,
  'asks of every deposit one block': 10,
  'asks of a large deposit no more blocks than of a small one': 230,
  'pays for more than was asked as soon as for what was asked': 220,
  'takes the fee twice when a fixed order is priced anew': 90,
  'breaks a locked rate where the client goes on': 10,
  'files the second output of a transaction as extra': 30,
  'forgets what came while a payout was under way': 210,
  'keeps the rate for who pays too late': 250,
  'gives up without proof what spends coins': 78,
}

/** The first so many schedules that are about what the flaw is in. */
export function seedsFor(flaw: FlawName, count: number): readonly number[] {
  const isAbout = about[flaw] ?? (() => true)
  const seeds: number[] = []
  for (let seed = (nearby[flaw] ?? 0) + 1; seeds.length < count; seed += 1)
    if (isAbout(drawProfile(seed, new Chance(seed)))) seeds.push(seed)
  return seeds
}

function rewriting(db: Database, rewrite: (text: string) => string): Database {
  const over = (sql: Sql): Sql => ({ query: (text, values) => sql.query(rewrite(text), values) })
  return { ...db, ...over(db), transaction: (work) => db.transaction((tx) => work(over(tx))) }
}

/** What is written of an order is another than what was decided. */
function changing(db: Database, find: RegExp, replace: string): Database {
  const over = (sql: Sql): Sql => ({
    query: (text, values) =>
      sql.query(
        text,
        values?.map((value) => (typeof value === 'string' ? value.replaceAll(find, replace) : value)),
      ),
  })
  return { ...db, ...over(db), transaction: (work) => db.transaction((tx) => work(over(tx))) }
}

/** Whatever is written of an order names the transaction that was signed for it first. */
function tellingFirst(): Flaw {
  const first = new Map<unknown, string>()
  const instead = new Map<string, string>()
  const note = ([, payoutId, , txHash]: readonly unknown[]) => {
    const told = first.get(payoutId) ?? String(txHash)
    first.set(payoutId, told)
    instead.set(String(txHash), told)
  }
  const tell = (value: unknown) =>
    typeof value !== 'string'
      ? value
      : [...instead].reduce((text, [txHash, told]) => text.replaceAll(txHash, told), value)
  const over = (sql: Sql): Sql => ({
    query: (text, values = []) => {
      if (text.startsWith('UPDATE attempts SET tx_hash')) note(values)
      return sql.query(text, /^(UPDATE orders|INSERT INTO events)/.test(text) ? values.map(tell) : values)
    },
  })
  return {
    database: (db) => ({ ...db, ...over(db), transaction: (work) => db.transaction((tx) => work(over(tx))) }),
  }
}

/**
 * Whatever is quoted at such a rate costs its fee twice, the first time in what the one is worth in the other: which fee is
 * taken of an order was agreed. What was locked before stays what it was.
 */
function takingTwice(rateType: RateType): NonNullable<Flaw['market']> {
  return (market) => ({
    ...market,
    read: (from, to, asked) => {
      const found = market.read(from, to, asked)
      if (!found.ok || asked !== rateType) return found
      const { mid, fee } = found.value
      const numerator = mid.numerator * 10_000n
      const denominator = mid.denominator * (10_000n + fee)
      return accept({ ...found.value, mid: { ...mid, numerator, denominator } })
    },
  })
}

/** A fixed order has no fee in it, from the first word on: it keeps what it promises, which is too much. */
function takingNothing(market: MarketBoard): MarketBoard {
  return {
    ...market,
    read: (from, to, rateType) => {
      const found = market.read(from, to, rateType)
      return found.ok && rateType === 'fixed' ? accept({ ...found.value, fee: 0n }) : found
    },
  }
}

/** The columns of `deposits` in the order in which they are written. */
const KEY = 2
const ASSET = 5
const UNITS = 6
const ROLE = 7
const IS_LATE = 8

/** A deposit is written down as another than it was found to be. */
function filing(db: Database, bend: (values: readonly unknown[]) => readonly unknown[]): Database {
  const over = (sql: Sql): Sql => ({
    query: (text, values) =>
      sql.query(text, text.startsWith('INSERT INTO deposits') ? bend(values ?? []) : values),
  })
  return { ...db, ...over(db), transaction: (work) => db.transaction((tx) => work(over(tx))) }
}

/** In the engine's eyes every block that a payout is in has as many above it as it takes. */
function withoutDepth(): Flaw {
  const standing = 'least(h.height, h.leaving_above_height)'
  return { database: (db) => rewriting(db, (text) => text.replace(standing, `${standing} + 100`)) }
}

/** What it signs is out before anybody has stored it; asked again, it signs anew with another nonce. */
function hastySigner(signer: Signer, nodes: () => SimulatedNodes): Signer {
  const signed = new Set<string>()
  return {
    addresses: (...asked) => signer.addresses(...asked),
    room: (asset) => signer.room(asset),
    lastSigned: (payoutId) => signer.lastSigned(payoutId),
    lastOutflow: (orderId) => signer.lastOutflow(orderId),
    sign: async (intent, authority) => {
      const fresh = localSigner({
        seed: Buffer.alloc(64, 7),
        store: memoryStore(),
        sealKey,
        settings: simulatedSignerSettings,
        clock: { nowMs: () => START_MS },
      })
      if (intent.family !== 'evm' || authority.kind !== 'payout') return signer.sign(intent, authority)
      const nonce = intent.nonce + (signed.has(intent.payoutId) ? 1 : 0)
      const answer = await fresh.sign({ ...intent, nonce, attempt: 1 }, authority)
      signed.add(intent.payoutId)
      if (answer.ok) await nodes().ETH.send(answer.value.bytes)
      return answer
    },
  }
}

/** Payouts to whom another tag names; the order is sealed anew with it, or the signer would not sign. */
function retagging(signer: Signer, change: (tag: string) => string | null): Signer {
  return {
    ...signer,
    sign: (intent, authority) => {
      const { destinationTag } = authority
      if (authority.kind !== 'payout' || destinationTag === null) return signer.sign(intent, authority)
      const retagged = withTag(intent, change(destinationTag))
      if (retagged === null) return signer.sign(intent, authority)
      const terms = { ...authority, destinationTag: retagged.tag }
      return signer.sign(retagged.intent, { ...terms, seal: makeSeal(sealKey, terms) })
    },
  }
}

/** Null: it has no field for one. */
function withTag(intent: Intent, tag: string | null): { intent: Intent; tag: string | null } | null {
  if (intent.family === 'xrp' && intent.payment !== null)
    return {
      intent: { ...intent, payment: { ...intent.payment, tag: tag === null ? null : Number(tag) } },
      tag,
    }
  if (intent.family === 'stellar' && intent.payment !== null && intent.payment.memo !== null)
    return { intent: { ...intent, payment: { ...intent.payment, memo: tag } }, tag }
  if (intent.family === 'eos')
    return { intent: { ...intent, payment: { ...intent.payment, memo: tag ?? '' } }, tag: tag ?? '' }
  return null
}

/** Without the tag, on whichever chain it is. */
function accountOf(address: string): string {
  return datedIds.reduce((text, id) => datedRules[id].holderOf(text), address)
}

type SignedRow = { readonly payout_id: string; readonly attempt: number; readonly intent: string }

/** Neither the engine nor the signer cares whether an earlier attempt may still get into a block. */
function withoutPatience(): Flaw {
  const ended = (intent: Intent): Intent => {
    if (intent.family === 'tron' || intent.family === 'eos') return { ...intent, expirationMs: 0 }
    if (intent.family !== 'solana') return intent
    return { ...intent, reference: { ...intent.reference, height: -SOLANA_BLOCKS_OF_LIFE }, lastHeight: 0 }
  }
  const asked = new Map<string, number>()
  const forget = (signed: SignedRow) => {
    if (signed.attempt >= (asked.get(signed.payout_id) ?? 0)) return signed as never
    return { ...signed, intent: stringifyExact(ended(parseExact(signed.intent) as Intent)) } as never
  }
  return {
    chain: (chain) =>
      chain.isOver === undefined
        ? chain
        : { ...chain, isOver: async () => true, raise: (previous, bid) => chain.raise(ended(previous), bid) },
    signer: (signer) => ({
      ...signer,
      sign: (intent, authority) => {
        asked.set(intent.payoutId, intent.attempt)
        return signer.sign(intent, authority)
      },
    }),
    database: (db) => ({
      ...db,
      query: async (text, values) => {
        const rows = await db.query<never>(text, values)
        const areSigned = text.includes('intent::text') && text.includes('FROM signer.signed_transactions')
        return areSigned ? rows.map(forget) : rows
      },
    }),
  }
}

type OrderRow = {
  readonly deposits?: readonly object[] | null
  readonly from_asset?: string
  readonly payout_id?: string | null
}

/** In the engine's eyes, when it is about to pay, so much was asked for that all of it has been deep for long. */
function withoutDepthForMore(): Flaw {
  const ask = (row: OrderRow) =>
    row.deposits && row.from_asset === 'BTC:BTC' ? { ...row, asks: 10n ** 9n } : row
  return {
    // Outside of transactions: whoever changes an order reads it as it is.
    database: (db) => ({
      ...db,
      query: async (text, values) => {
        const rows = await db.query<never>(text, values)
        return text.includes(' AS deposits FROM ') ? (rows.map(ask) as never[]) : rows
      },
    }),
  }
}

/** In the engine's eyes deposits are so old that nothing takes them back, which is when it does not look. */
function withoutLook(isBlind: (row: OrderRow) => boolean): Flaw {
  const age = (row: OrderRow) =>
    row.deposits && isBlind(row)
      ? { ...row, deposits: row.deposits.map((deposit) => ({ ...deposit, block_height: -1_000_000 })) }
      : row
  return {
    // Outside of transactions: whoever changes an order reads it as it is.
    database: (db) => ({
      ...db,
      query: async (text, values) => {
        const rows = await db.query<never>(text, values)
        return text.includes(' AS deposits FROM ') ? (rows.map(age) as never[]) : rows
      },
    }),
  }
}

/** What was drafted is signed, sent and raised by what was told of its deposits alone. */
function withoutLookAtDrafted(): Flaw {
  const drafted = new Set<unknown>()
  const blind = withoutLook(({ payout_id }) => drafted.has(payout_id))
  const noting = (sql: Sql): Sql => ({
    query: (text, values) => {
      if (text.startsWith('INSERT INTO attempts')) drafted.add(values?.[1])
      return sql.query(text, values)
    },
  })
  return {
    database: (db) => {
      const blinded = blind.database?.(db) ?? db
      return { ...blinded, transaction: (work) => db.transaction((tx) => work(noting(tx))) }
    },
  }
}
