import { claimLines, findLanes, type Lane, type Places } from '../../db/webhook_lanes.ts'
import { beginAttempts, type ClaimedLine, freeLine, lockLine } from '../../db/webhook_lines.ts'
import type { Alarm } from '../alarms.ts'
import { type Loop, startLoop } from '../loop.ts'
import { deliver } from './deliver.ts'
import type { WebhookWorld } from './webhook_world.ts'

/** At most so many deliveries at once in a process: of one host, of one account, and in all. */
const OF_HOST_MAX = 10
const OF_ACCOUNT_MAX = 40
const AT_ONCE_MAX = 200
const LAST_ANSWERS_MS = 1_000

/** So many hosts of an account and in all are looked at at once, the following ones the next time. */
const LOOKED_AT_MAX = { ofAccount: 200, all: 4_000 } as const

/** What is handed on in this process rings; only what is due again, or comes from elsewhere, has to be looked for. */
export function idleRestMs({ policy }: Pick<WebhookWorld, 'policy'>): number {
  return 5 * policy.restMs
}

/** Tells receivers what waits for them. Any number of processes may: lines are claimed. */
export function startDelivering(world: WebhookWorld, alarm?: Alarm): Loop {
  const underWay = new Map<ClaimedLine, Promise<void>>()
  let leftOff: readonly Lane[] = []
  let isStopping = false
  let wake = (): void => {}
  const begin = async (): Promise<number> => {
    const lanes = await findLanes(world.db, leftOff, LOOKED_AT_MAX)
    leftOff = lanes.filter(({ isLast }) => isLast)
    const claimed = lanes.length === 0 ? [] : await claim(world, lanes, [...underWay.keys()])
    for (const work of claimed) {
      const ended = work
        .run(() => isStopping)
        .catch((error: unknown) => {
          // The claim runs out, and somebody tries again.
          world.log.warn({ order: work.line.orderId, err: error }, 'a webhook delivery failed on our side')
        })
        .finally(() => {
          underWay.delete(work.line)
          wake()
        })
      underWay.set(work.line, ended)
    }
    return claimed.length
  }
  const step = async (signal: AbortSignal) => {
    // Whatever ends from here on, while lines are being claimed too, is a place that is taken at once.
    const rest = new AbortController()
    wake = () => rest.abort()
    const begun = underWay.size < AT_ONCE_MAX ? await begin() : 0
    if (begun > 0) return true
    if ((underWay.size === 0 && leftOff.length === 0) || signal.aborted) return false
    await world.clock.sleep(world.policy.restMs, rest.signal)
    return true
  }
  const loop = startLoop(world, 'webhooks', idleRestMs(world), step, alarm)
  return {
    name: loop.name,
    stop: async () => {
      await loop.stop()
      await Promise.race([Promise.all(underWay.values()), world.clock.sleep(LAST_ANSWERS_MS)])
      isStopping = true
      await world.webhooks.channel.close()
      await Promise.all(underWay.values())
    },
  }
}

type Work = { readonly line: ClaimedLine; run(isStopping: () => boolean): Promise<void> }

/** Nothing of it waited. Locked before it is looked at once more: something may begin to wait at this moment. */
function letGo({ db }: WebhookWorld, line: ClaimedLine): Promise<void> {
  return db.transaction(async (tx) => {
    if (await lockLine(tx, line)) await freeLine(tx, line)
  })
}

async function claim(
  world: WebhookWorld,
  lanes: readonly Lane[],
  underWay: Places['underWay'],
): Promise<readonly Work[]> {
  const nowMs = world.clock.nowMs()
  const wallMs = world.clock.wallMs()
  const { attemptMs, marginMs } = world.webhooks.times
  const claimMs = attemptMs + marginMs
  const places = { all: AT_ONCE_MAX, ofHost: OF_HOST_MAX, ofAccount: OF_ACCOUNT_MAX, underWay }
  const lines = await claimLines(world.db, lanes, { nowMs, wallMs, claimMs }, places)
  if (lines.length === 0) return []
  const due = new Map(
    (await beginAttempts(world.db, lines, nowMs)).map((delivery) => [
      `${delivery.orderId} ${delivery.receiver}`,
      delivery,
    ]),
  )
  return lines.map((line) => ({
    line,
    run: async (isStopping) => {
      const delivery = due.get(`${line.orderId} ${line.receiver}`)
      if (delivery === undefined) return letGo(world, line)
      // The process may have stood still: whoever has the claim by now has told it.
      const isLate = world.clock.wallMs() - wallMs > marginMs / 2
      if (!isLate) await deliver(world, delivery, isStopping)
    },
  }))
}
