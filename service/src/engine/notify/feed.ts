import { findEventsSince, type OrderEvent } from '../../db/events.ts'
import { HOUR_MS, type InstantMs, SECOND_MS } from '../../domain/time.ts'
import { type Loop, startLoop } from '../loop.ts'
import type { World } from '../world.ts'

export type FeedEvent = OrderEvent

/** Whoever watches an order as it goes on. None of these may throw. */
export type Follower = {
  readonly orderId: string
  /** The last event that they have; 0 for none. */
  readonly after: number
  /** Each event once, in order. */
  tell(event: OrderEvent): void
  /** Nothing has happened for a while. */
  beat(): void
  /** Nothing more will be told: it has lasted long enough, or the process stops. */
  end(): void
}

/** What happens to orders, told to whoever follows them in this process. */
export type EventFeed = {
  /** What has happened to an order after the event with this sequence; of much, the first. Whoever follows is told the rest. */
  since(orderId: string, after: number): Promise<readonly FeedEvent[]>
  /** Gives what ends it. When the feed has closed, `end` is called before this returns. */
  follow(follower: Follower): () => void
  /** Ends everybody's, and whose comes later. Waits for no database. */
  close(): Promise<void>
}

/** How late an event may be told. Every look costs as many look-ups as there are places in orders where somebody is. */
const REST_MS = 500
const PLACES_A_LOOK = 1_000
/** Shorter than the idle timeouts of proxies, which begin at 30 s. */
const BEAT_MS = 15 * SECOND_MS
/** Then the client comes back and goes on where it was: nobody is followed who has gone without a word. */
const LIFE_MS = HOUR_MS

type Following = { readonly follower: Follower; after: number; beatMs: InstantMs; readonly endMs: InstantMs }

/** Reads the event log, as webhooks and mails do, so that all tell the same. */
export function openFeed(world: Pick<World, 'db' | 'clock' | 'log' | 'policy'>): EventFeed {
  const byOrder = new Map<string, Set<Following>>()
  const leave = (following: Following) => {
    const { orderId } = following.follower
    const others = byOrder.get(orderId)
    if (others?.delete(following) && others.size === 0) byOrder.delete(orderId)
  }
  const all = () => [...byOrder.values()].flatMap((followings) => [...followings])
  // Nobody follows most of the time: then there is nothing to look at.
  let loops: readonly Loop[] = []
  let isClosed = false
  const look = async () => {
    const places = [...byOrder].flatMap(([orderId, followings]) =>
      [...new Set([...followings].map(({ after }) => after))].map((after) => ({ orderId, after })),
    )
    for (let from = 0; from < places.length; from += PLACES_A_LOOK) {
      const events = await findEventsSince(world.db, places.slice(from, from + PLACES_A_LOOK))
      for (const event of events) tellAll(byOrder.get(event.orderId) ?? [], event, world.clock.wallMs())
    }
    endOld(all(), world.clock.wallMs(), leave)
    return false
  }
  // Apart from the looking, which waits for the database as long as that takes: a silence looks like a line that has died.
  const beat = async () => {
    beatSilent(all(), world.clock.wallMs())
    return false
  }
  return {
    since: (orderId, after) => findEventsSince(world.db, [{ orderId, after }]),
    follow: (follower) => {
      // Requests still arrive while the process stops: nobody would end them later.
      if (isClosed) {
        follower.end()
        return () => {}
      }
      const nowMs = world.clock.wallMs()
      const following = { follower, after: follower.after, beatMs: nowMs + BEAT_MS, endMs: nowMs + LIFE_MS }
      const others = byOrder.get(follower.orderId)
      if (others === undefined) byOrder.set(follower.orderId, new Set([following]))
      else others.add(following)
      if (loops.length === 0)
        loops = [startLoop(world, 'feed', REST_MS, look), startLoop(world, 'feed beats', REST_MS, beat)]
      return () => leave(following)
    },
    close: async () => {
      isClosed = true
      for (const following of all()) {
        leave(following)
        following.follower.end()
      }
      // Nobody is left to be told. A look under way waits for the database as long as that takes, and the door would stay open with it;
      // whoever closes the database waits for it.
      for (const loop of loops) void loop.stop()
    },
  }
}

/** To those who have the one before it: who came while others were looked for may be further behind, and is looked for next. */
function tellAll(followings: Iterable<Following>, event: OrderEvent, nowMs: InstantMs): void {
  for (const following of [...followings]) {
    if (event.sequence !== following.after + 1) continue
    following.after = event.sequence
    following.beatMs = nowMs + BEAT_MS
    following.follower.tell(event)
  }
}

/** Once the database has answered: without it nobody could come back. */
function endOld(
  followings: readonly Following[],
  nowMs: InstantMs,
  leave: (following: Following) => void,
): void {
  for (const following of followings) {
    if (nowMs < following.endMs) continue
    leave(following)
    following.follower.end()
  }
}

function beatSilent(followings: readonly Following[], nowMs: InstantMs): void {
  for (const following of followings) {
    if (nowMs < following.beatMs) continue
    following.beatMs = nowMs + BEAT_MS
    following.follower.beat()
  }
}
