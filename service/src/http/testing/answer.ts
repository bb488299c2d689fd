/** An answer as a test reads it. */
export type Answer = {
  readonly status: number
  readonly headers: Headers
  readonly bytes: Buffer
  readonly text: string
  /** Undefined when the answer is not JSON. */
  // biome-ignore lint/suspicious/noExplicitAny: tests look into answers of every shape
  readonly json: any
}
