/** How many streams may be open at once: in this process, and of one caller. */
export type Seats = {
  /** Null: there is none. */
  take(who: string): { leave(): void } | null
}

export function seats(limits: { readonly streamsMax: number; readonly streamsPerCaller: number }): Seats {
  const taken = new Map<string, number>()
  let all = 0
  return {
    take: (who) => {
      const own = taken.get(who) ?? 0
      if (all >= limits.streamsMax || own >= limits.streamsPerCaller) return null
      all += 1
      taken.set(who, own + 1)
      let isLeft = false
      return {
        leave: () => {
          if (isLeft) return
          isLeft = true
          all -= 1
          const left = (taken.get(who) ?? 1) - 1
          if (left === 0) taken.delete(who)
          else taken.set(who, left)
        },
      }
    },
  }
}
