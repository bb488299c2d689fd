/** What was done, and what it took the process under test. */
export type Work = {
  readonly count: number
  readonly cpuMicroseconds: number
  /** By the wall. */
  readonly seconds: number
}

/**
 * Runs the contenders one after the other, round after round, and gives the sum of each: whatever else the machine
 * does meets all of them alike. What the first round brings is thrown away, for it compiles.
 */
export async function inTurns<Name extends string>(
  contenders: Readonly<Record<Name, () => Promise<Work>>>,
  rounds = 6,
): Promise<Record<Name, Work>> {
  const names = Object.keys(contenders) as Name[]
  const sums = new Map<Name, Work>()
  for (let round = 0; round <= rounds; round += 1) {
    for (const name of names) {
      const work = await contenders[name]()
      if (round > 0) sums.set(name, plus(sums.get(name), work))
    }
  }
  return Object.fromEntries(sums) as Record<Name, Work>
}

function plus(sum: Work | undefined, work: Work): Work {
  if (sum === undefined) return work
  return {
    count: sum.count + work.count,
    cpuMicroseconds: sum.cpuMicroseconds + work.cpuMicroseconds,
    seconds: sum.seconds + work.seconds,
  }
}

export function microsecondsEach({ count, cpuMicroseconds }: Work): number {
  return cpuMicroseconds / count
}
