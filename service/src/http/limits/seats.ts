/**
 * Streams of one order that are followed by its token, wherever they ask from: one token and a few networks would
 * otherwise take every seat. Enough for the devices of everybody who is shown an order.
 */
export const STREAMS_PER_TOKEN = 20

/** How many streams may be open at once: in this process, of one caller, and of one order by its token. */
export type Seats = {
  /** `tokenOf` is the order whose token lets the caller in; null where a key does. Null: there is no seat. */
  take(who: string, tokenOf: string | null): { leave(): void } | null
}

export function seats(limits: { readonly streamsMax: number; readonly streamsPerCaller: number }): Seats {
  const ofCallers = tally(limits.streamsPerCaller)
  const ofTokens = tally(STREAMS_PER_TOKEN)
  let all = 0
  return {
    take: (who, tokenOf) => {
      if (all >= limits.streamsMax || !ofCallers.hasRoom(who)) return null
      if (tokenOf !== null && !ofTokens.hasRoom(tokenOf)) return null
      all += 1
      ofCallers.add(who, 1)
      if (tokenOf !== null) ofTokens.add(tokenOf, 1)
      let isLeft = false
      return {
        leave: () => {
          if (isLeft) return
          isLeft = true
          all -= 1
          ofCallers.add(who, -1)
          if (tokenOf !== null) ofTokens.add(tokenOf, -1)
        },
      }
    },
  }
}

/** Whoever has none is forgotten: names would fill the memory. */
function tally(max: number) {
  const taken = new Map<string, number>()
  const of = (name: string) => taken.get(name) ?? 0
  return {
    hasRoom: (name: string) => of(name) < max,
    add: (name: string, change: 1 | -1) => {
      const count = of(name) + change
      if (count === 0) taken.delete(name)
      else taken.set(name, count)
    },
  }
}
