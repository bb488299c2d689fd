/** What a notifier of the proof is started with. */
export type ProcessSettings = {
  readonly databaseUrl: string
  readonly accountKeyHex: string
  readonly attemptMs: number
  readonly marginMs: number
  /** The service's clock: where it began, and how many times faster than the wall clock it runs. */
  readonly beganWallMs: number
  readonly speed: number
  readonly flaw: 'none' | 'notes first' | 'notes first and stands'
}

export function serviceTimeMs({ beganWallMs, speed }: ProcessSettings, wallMs: number): number {
  return Math.round(beganWallMs + (wallMs - beganWallMs) * speed)
}
