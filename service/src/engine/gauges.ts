import { Gauge, type Registry } from 'prom-client'
import { type ChainHead, silenceMs } from '../db/chain_heads.ts'
import { endedStates, liveStates } from '../db/outflows.ts'
import type { CurrencyCode } from '../domain/catalog/currencies.ts'
import { finishedStatuses, orderStatuses } from '../domain/orders/order.ts'
import { MINUTE_MS, SECOND_MS } from '../domain/time.ts'
import { isStopping } from './books/stopped_outflows.ts'
import { type GaugeWorld, gaugeReader, type Readings } from './gauge_readings.ts'

type PriceAges = {
  /** The age of the believed price; null when there is none. */
  ageMs(currency: CurrencyCode): number | null
  /** Of which it is told. */
  readonly currencies: Iterable<CurrencyCode>
}

/**
 * Puts the gauges of the engine into the registry. They are read when somebody asks, as often as `gaugeReader` lets them. While the database
 * is away the gauges that come from it are absent and `cambist_database_up` is 0: an old figure must not look like a new one.
 */
export function registerGauges(world: GaugeWorld, registry: Registry, priceAges?: PriceAges): void {
  const read = gaugeReader(world)
  const gauge: MakeGauge = (name, help, labelNames, fill) => {
    new Gauge({
      name,
      help,
      labelNames: [...labelNames],
      registers: [registry],
      async collect() {
        const now = await read()
        this.reset()
        // One without labels is 0 after a reset, and not absent.
        if (labelNames.length === 0) this.remove()
        if (now !== null) fill(now, (labels, value) => this.set({ ...labels }, value))
      },
    })
  }
  new Gauge({
    name: 'cambist_database_up',
    help: 'Whether the database answered when these figures were read (1) or not (0).',
    registers: [registry],
    async collect() {
      this.set((await read()) === null ? 0 : 1)
    },
  })
  registerOrders(gauge)
  registerOutflows(gauge)
  registerChains(gauge)
  registerLedger(gauge)
  registerMails(gauge)
  registerUntold(gauge)
  registerWebhooks(gauge)
  if (priceAges !== undefined) registerPrices(registry, priceAges)
}

type Labels = Readonly<Record<string, string>>
type MakeGauge = (
  name: `cambist_${string}`,
  help: string,
  labelNames: readonly string[],
  fill: (now: Readings, set: (labels: Labels, value: number) => void) => void,
) => void

function registerOrders(gauge: MakeGauge): void {
  gauge('cambist_orders', 'Orders by status.', ['status'], ({ orders, ended }, set) => {
    for (const status of orderStatuses) if (ended !== null || !finished.has(status)) set({ status }, 0)
    for (const { status, count } of [...orders, ...(ended?.orders ?? [])]) set({ status }, count)
  })
  gauge(
    'cambist_order_oldest_age_seconds',
    'How long the order in a status that waits longest has not changed; 0 when there is none.',
    ['status'],
    ({ orders, nowMs }, set) => {
      for (const status of orderStatuses.filter((one) => !finished.has(one))) set({ status }, 0)
      for (const { status, oldestAtMs } of orders) set({ status }, seconds(nowMs - oldestAtMs))
    },
  )
  gauge(
    'cambist_addresses_free',
    'Addresses that wait in the pool; at 0 no order can be created.',
    ['family', 'purpose'],
    ({ addresses }, set) => {
      for (const { family, purpose, count } of addresses) set({ family, purpose }, count)
    },
  )
}

const finished: ReadonlySet<string> = new Set(finishedStatuses)

function registerOutflows(gauge: MakeGauge): void {
  gauge(
    'cambist_payouts',
    'Outflows by chain, kind (payout, refund, filler, sweep) and state.',
    ['chain', 'kind', 'state'],
    ({ heads, outflows, ended }, set) => {
      const states = ended === null ? liveStates : [...liveStates, ...endedStates]
      for (const { chain } of heads) {
        for (const kind of ['payout', 'refund']) {
          for (const state of states) set({ chain, kind, state }, 0)
        }
      }
      for (const { chain, kind, state, count } of [...outflows, ...(ended?.outflows ?? [])])
        set({ chain, kind, state }, count)
    },
  )
  gauge(
    'cambist_payouts_in_trouble',
    'Outflows that are not finished and have something in their way.',
    ['chain'],
    ({ heads, outflows }, set) => {
      for (const { chain } of heads) {
        const own = outflows.filter((outflow) => outflow.chain === chain)
        set(
          { chain },
          own.reduce((sum, { inTrouble }) => sum + inTrouble, 0),
        )
      }
    },
  )
  gauge(
    'cambist_payout_oldest_age_seconds',
    'Time since the oldest unfinished outflow was planned; 0 when there is none.',
    ['chain'],
    ({ heads, outflows, nowMs }, set) => {
      for (const { chain } of heads) {
        const own = outflows.filter((outflow) => outflow.chain === chain)
        set({ chain }, seconds(nowMs - Math.min(nowMs, ...own.map(({ oldestAtMs }) => oldestAtMs))))
      }
    },
  )
}

function registerChains(gauge: MakeGauge): void {
  const perChain = (
    name: `cambist_${string}`,
    help: string,
    read: (head: ChainHead, now: Readings) => number,
  ) =>
    gauge(name, help, ['chain'], (now, set) => {
      for (const head of now.heads) set({ chain: head.chain }, read(head, now))
    })
  perChain(
    'cambist_chain_height_blocks',
    'The last block that was looked at whole.',
    ({ block }) => block.height,
  )
  perChain(
    'cambist_chain_lag_blocks',
    'How far the last block that was looked at whole is behind the node, as the last look found it.',
    ({ nodeHeight, block }) => nodeHeight - block.height,
  )
  perChain(
    'cambist_chain_look_age_seconds',
    'Time since blocks and mempool had all been looked at, by the wall clock.',
    (head, { wallMs }) => seconds(silenceMs(head, wallMs)),
  )
}

/** What an older estimate says is over: its node is away, or its asset is not watched any more. */
const ESTIMATE_MS_MAX = 10 * MINUTE_MS

function registerLedger(gauge: MakeGauge): void {
  gauge(
    'cambist_ledger_difference',
    'What the chain holds less what the books expect, in whole units of the currency; anything but 0 is a fault.',
    ['asset'],
    ({ ledger }, set) => {
      for (const { asset, difference } of ledger) set({ asset }, difference)
    },
  )
  gauge(
    'cambist_ledger_comparison_age_seconds',
    'Time since ledger and chain were last compared.',
    ['asset'],
    ({ ledger, nowMs }, set) => {
      for (const { asset, atMs } of ledger) set({ asset }, seconds(nowMs - atMs))
    },
  )
  gauge(
    'cambist_orphaned_payouts_owed',
    'What payouts that were final and lost their block have not paid again, in whole units of the currency.',
    ['asset'],
    ({ orphanedPayouts }, set) => {
      for (const { asset, amount } of orphanedPayouts) set({ asset }, amount)
    },
  )
  gauge(
    'cambist_orphaned_deposits',
    'What deposits that lost their block after their money may have left have not brought again, in whole units of the currency.',
    ['asset'],
    ({ orphanedDeposits }, set) => {
      for (const { asset, amount } of orphanedDeposits) set({ asset }, amount)
    },
  )
  gauge(
    'cambist_outflows_stopped',
    'Whether outflows of the chain are stopped because ledger and chain differ (1) or not (0).',
    ['chain'],
    ({ heads, ledger }, set) => {
      for (const { chain } of heads) {
        set({ chain }, ledger.some((one) => one.chain === chain && isStopping(one.differingCount)) ? 1 : 0)
      }
    },
  )
  gauge(
    'cambist_reserve_spendable',
    'What could be paid out of an asset, in whole units of the currency.',
    ['asset'],
    ({ reserves }, set) => {
      for (const { asset, spendable } of reserves) set({ asset }, spendable)
    },
  )
  gauge(
    'cambist_fee_above_cap',
    'Whether payouts are refused at present, for a fee above its cap or what EOS takes, so that the asset is not quoted (1), or not (0); absent while nobody asks.',
    ['asset'],
    ({ reserves, nowMs }, set) => {
      const fresh = reserves.filter(({ atMs }) => nowMs - atMs < ESTIMATE_MS_MAX)
      for (const { asset, isUnpayable } of fresh) set({ asset }, isUnpayable ? 1 : 0)
    },
  )
}

function registerMails(gauge: MakeGauge): void {
  gauge(
    'cambist_mails',
    'Mails that wait, and those of the last 30 days that were refused for good or given up.',
    ['state'],
    ({ mails }, set) => {
      for (const state of ['waiting', 'refused', 'given_up']) set({ state }, 0)
      for (const { state, count } of mails) set({ state }, count)
    },
  )
  gauge(
    'cambist_mail_oldest_age_seconds',
    'Time since the oldest mail that waits was written down; 0 when there is none.',
    ['state'],
    ({ mails, nowMs }, set) => {
      const oldest = mails.find(({ state }) => state === 'waiting')?.oldestAtMs ?? nowMs
      set({ state: 'waiting' }, seconds(nowMs - oldest))
    },
  )
  gauge(
    'cambist_mail_accepted_age_seconds',
    'Time since the mail server last accepted a mail; absent when it accepted none in the last 30 days.',
    [],
    ({ mailAcceptance: { lastAtMs }, nowMs }, set) => {
      if (lastAtMs !== null) set({}, seconds(nowMs - lastAtMs))
    },
  )
}

function registerUntold(gauge: MakeGauge): void {
  gauge(
    'cambist_orders_untold',
    'Orders of which something happened that has not been handed on to webhooks and mails.',
    [],
    ({ untold }, set) => set({}, untold.count),
  )
  gauge(
    'cambist_order_untold_age_seconds',
    'Time since the first event that has not been handed on happened; 0 when there is none.',
    [],
    ({ untold, nowMs }, set) => set({}, seconds(nowMs - (untold.oldestAtMs ?? nowMs))),
  )
}

function registerWebhooks(gauge: MakeGauge): void {
  gauge(
    'cambist_webhooks_waiting',
    'Webhook deliveries that no receiver has yet and that are not given up.',
    [],
    ({ webhooks }, set) => set({}, webhooks.count),
  )
  gauge(
    'cambist_webhook_oldest_age_seconds',
    'Time since the oldest event happened that waits for a receiver; 0 when there is none.',
    [],
    ({ webhooks, nowMs }, set) => set({}, seconds(nowMs - (webhooks.oldestAtMs ?? nowMs))),
  )
}

function registerPrices(registry: Registry, prices: PriceAges): void {
  new Gauge({
    name: 'cambist_price_age_seconds',
    help: 'Age of the price that quotes are made from; absent while there is none.',
    labelNames: ['currency'],
    registers: [registry],
    collect() {
      this.reset()
      for (const currency of prices.currencies) {
        const ageMs = prices.ageMs(currency)
        if (ageMs !== null) this.set({ currency }, seconds(ageMs))
      }
    },
  })
}

function seconds(durationMs: number): number {
  return durationMs / SECOND_MS
}
