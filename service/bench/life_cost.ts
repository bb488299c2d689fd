import type { LifeStage } from './life_stage.ts'
import { postgresCpuMicroseconds } from './postgres_cpu.ts'

/** What driving orders took, in microseconds of processor by who took them. */
export type LifeCost = {
  readonly ended: number
  readonly seconds: number
  readonly engines: number
  readonly api: number
  readonly postgres: number
  /** Of the benchmark itself: simulated chains and customers. */
  readonly chains: number
}

export async function measureLife(
  stage: LifeStage,
  postmaster: number,
  inFlight: number,
  durationMs: number,
): Promise<LifeCost> {
  const before = await stage.cpuMicroseconds()
  const postgresBefore = postgresCpuMicroseconds(postmaster)
  const { ended, seconds } = await stage.drive(inFlight, durationMs)
  const after = await stage.cpuMicroseconds()
  return {
    ended,
    seconds,
    engines: after.engines - before.engines,
    api: after.api - before.api,
    postgres: postgresCpuMicroseconds(postmaster) - postgresBefore,
    chains: after.chains - before.chains,
  }
}

export function addCosts(costs: readonly LifeCost[]): LifeCost {
  const sum = (of: (cost: LifeCost) => number) => costs.reduce((total, cost) => total + of(cost), 0)
  return {
    ended: sum(({ ended }) => ended),
    seconds: sum(({ seconds }) => seconds),
    engines: sum(({ engines }) => engines),
    api: sum(({ api }) => api),
    postgres: sum(({ postgres }) => postgres),
    chains: sum(({ chains }) => chains),
  }
}

/** Of the service and PostgreSQL, in milliseconds an order. */
export function millisecondsAnOrder({ ended, engines, api, postgres }: LifeCost): number {
  return (engines + api + postgres) / ended / 1_000
}

export function describeCost(cost: LifeCost): string {
  const each = (microseconds: number) => `${(microseconds / cost.ended / 1_000).toFixed(1)} ms`
  const busy = (cost.engines + cost.api + cost.postgres + cost.chains) / cost.seconds / 1e6
  return [
    `of processor an order: engine ${each(cost.engines)}, PostgreSQL ${each(cost.postgres)}, creating it ${each(cost.api)}`,
    `simulated chains and customers ${each(cost.chains)}`,
    `${busy.toFixed(2)} processors busy`,
    `${cost.ended} orders, ${(cost.ended / cost.seconds).toFixed(1)} a second`,
  ].join('; ')
}
