import type { Fields } from '../../replies.ts'
import type { Horizon } from '../horizon.ts'

/** By path, up to its query; what throws is how it fails, and null is what Horizon does not have. */
export type Script = Readonly<Record<string, (path: string) => unknown>>

/** A Horizon that answers by a script. */
export function scriptedHorizon(script: Script, submit: () => unknown = () => ({})): Horizon {
  return {
    get: async (path) => {
      const [name = ''] = path.split('?')
      const answer = script[name]
      if (answer === undefined) throw new Error(`nobody expected ${path}`)
      return answer(path) as Fields | null
    },
    submit: async () => submit() as Fields,
  }
}

/** One page, and nothing behind it. */
export function pageOf(...records: readonly Fields[]): (path: string) => Fields {
  const numbered = records.map((record, at) => ({ paging_token: String(at + 1), ...record }))
  return (path) => {
    const isFirst = !path.includes('cursor=') || path.includes('cursor=0')
    return { ...selfOf(path), _embedded: { records: isFirst ? numbered : [] } }
  }
}

/** What a page says of itself. */
export function selfOf(path: string): Fields {
  return { _links: { self: { href: `http://horizon.example.org${path}` } } }
}

export const hashOf = (height: number) => height.toString(16).padStart(64, '0')

/** Closed at 1,000 seconds and its height, in 1970. */
export const ledgerAt = (height: number) => ({
  sequence: height,
  hash: hashOf(height),
  prev_hash: hashOf(height - 1),
  closed_at: new Date((1_000 + height) * 1_000).toISOString().replace('.000', ''),
  base_reserve_in_stroops: 5_000_000,
  base_fee_in_stroops: 100,
})
