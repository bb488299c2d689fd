import { readHeads } from '../db/chain_heads.ts'
import * as figures from '../db/figures.ts'
import { HOUR_MS, MINUTE_MS, SECOND_MS } from '../domain/time.ts'
import { keptFor } from './kept.ts'
import type { World } from './world.ts'

export type GaugeWorld = Pick<World, 'db' | 'clock' | 'log'>

/** What the gauges show. `ended`: null when that could not be counted, or has not been yet. */
export type Readings = Awaited<ReturnType<typeof readLive>> & {
  readonly ended: Awaited<ReturnType<typeof countEnded>>
}

const FRESH_MS = SECOND_MS
/** However long a reading takes: figures of longer ago would say that all is well while it no longer is. */
const FRESH_MS_MAX = MINUTE_MS
const FRESH_WHOLE_TABLES_MS = MINUTE_MS
const FRESH_WHOLE_TABLES_MS_MAX = HOUR_MS
/** Whatever is read takes at most a hundredth of the time, as long as it may grow that old. */
const RESTS_PER_READING = 100
/** A scrape does not wait for whole tables; the next one tells what was counted meanwhile. */
const WHOLE_TABLES_WAIT_MS = SECOND_MS

/**
 * Reads the figures from the database at most once a second however many ask; what needs a whole table once a minute, or more seldom when
 * that takes long, and the others do not wait for it. Null: the database did not answer.
 */
export function gaugeReader(world: GaugeWorld): () => Promise<Readings | null> {
  const { clock, log } = world
  const kept = { clock, restsPerReading: RESTS_PER_READING }
  const live = keptFor({ ...kept, keepMs: FRESH_MS, keepMsMax: FRESH_MS_MAX }, async () => {
    try {
      return await readLive(world)
    } catch (error) {
      log.warn({ err: error }, 'the figures for metrics could not be read')
      return null
    }
  })
  let ended: Readings['ended'] = null
  const countAnew = keptFor(
    { ...kept, keepMs: FRESH_WHOLE_TABLES_MS, keepMsMax: FRESH_WHOLE_TABLES_MS_MAX },
    async () => {
      ended = await countEnded(world)
    },
  )
  return async () => {
    const now = await live()
    if (now === null) return null
    const isCounted = new AbortController()
    const counted = countAnew().then(() => isCounted.abort('counted'))
    await Promise.race([counted, clock.sleep(WHOLE_TABLES_WAIT_MS, isCounted.signal)])
    return { ...now, ended }
  }
}

/**
 * Null: they could not be counted. With very many it takes longer than a statement may; that says nothing about the other
 * figures, nor that the database is away, and is not tried again at once.
 */
async function countEnded({ db, log }: GaugeWorld) {
  try {
    return {
      orders: await figures.countFinishedOrders(db),
      outflows: await figures.countEndedOutflows(db),
    }
  } catch (error) {
    log.warn({ err: error }, 'what has ended could not be counted for metrics')
    return null
  }
}

async function readLive({ db, clock }: GaugeWorld) {
  return {
    orders: await figures.countUnfinishedOrders(db),
    outflows: await figures.countLiveOutflows(db),
    heads: await readHeads(db),
    addresses: await figures.countFreeAddresses(db),
    reserves: await figures.readReserveFigures(db),
    ledger: await figures.readLedgerFigures(db),
    orphanedPayouts: await figures.readOrphanedPayouts(db),
    orphanedDeposits: await figures.readOrphanedDeposits(db),
    mails: await figures.countMails(db),
    mailAcceptance: await figures.readMailAcceptance(db, clock.nowMs()),
    untold: await figures.readUntoldOrders(db),
    webhooks: await figures.readWaitingWebhooks(db),
    nowMs: clock.nowMs(),
    wallMs: clock.wallMs(),
  }
}
