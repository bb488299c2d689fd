/** What we use of autocannon, which ships no types. */
declare module 'autocannon' {
  type Request = {
    readonly method?: string
    readonly path: string
    readonly headers?: Readonly<Record<string, string>>
    readonly body?: string
  }
  export default function autocannon(options: {
    readonly url: string
    readonly connections: number
    /** Seconds. */
    readonly duration: number
    /** Called for every connection. */
    readonly setupClient: (client: { setRequests(requests: readonly Request[]): void }) => void
  }): Promise<{
    readonly requests: { readonly total: number }
    readonly non2xx: number
    readonly errors: number
    /** Seconds. */
    readonly duration: number
  }>
}
