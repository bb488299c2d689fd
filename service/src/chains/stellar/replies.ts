import { type Fields, readersOf } from '../replies.ts'
import { type Horizon, NoAnswer } from './horizon.ts'

export const { hashIn, integerIn, listIn, objectIn, textIn } = readersOf(NoAnswer)

export function optionalTextIn(value: unknown, what: string): string | null {
  return value === undefined ? null : textIn(value, what)
}

/** Numbers of 64 bits are written as text. */
export function bigintIn(value: unknown, what: string): bigint {
  const text = typeof value === 'number' ? String(value) : value
  if (typeof text !== 'string' || !/^\d{1,20}$/.test(text))
    throw new NoAnswer(what, 'it should be a whole number')
  return BigInt(text)
}

/**
 * Amounts are decimals with seven digits after the point; a stroop is the last of them. Contracts count tokens in 128 bits,
 * which are 32 digits before the point (CAP-46-6).
 */
export function stroopsIn(value: unknown, what: string): bigint {
  const [, whole, fraction] = /^(\d{1,32})\.(\d{7})$/.exec(textIn(value, what)) ?? []
  if (whole === undefined || fraction === undefined)
    throw new NoAnswer(what, 'it should be an amount with seven decimals')
  return BigInt(whole + fraction)
}

export function secondsIn(value: unknown, what: string): number {
  const ms = Date.parse(textIn(value, what))
  if (Number.isNaN(ms)) throw new NoAnswer(what, 'it should be a time')
  return Math.floor(ms / 1_000)
}

const PAGE = 200

/**
 * Everything that a collection holds from `cursor` on, oldest first, until a page is empty: one that is merely short may
 * have been cut by whoever stands between.
 */
export async function readAll(horizon: Horizon, path: string, cursor = 0n): Promise<readonly Fields[]> {
  const found: Fields[] = []
  for (let after = cursor; ; ) {
    const join = path.includes('?') ? '&' : '?'
    const page = await horizon.get(`${path}${join}order=asc&limit=${PAGE}&cursor=${after}`)
    if (page === null) throw new NoAnswer(path, 'it is not there')
    if (!isPageOf(page, path, after)) throw new NoAnswer(path, 'it is another page')
    const records = recordsIn(page, path)
    if (records.length === 0) return found
    for (const record of records) {
      const token = bigintIn(record.paging_token, `${path} paging_token`)
      if (token <= after) throw new NoAnswer(path, 'its pages do not go on')
      after = token
      found.push(record)
    }
  }
}

/** Requests have no ids, and another page, or an empty one, would hide what this one holds: a page says what it is of. */
function isPageOf({ _links: links }: Fields, path: string, cursor: bigint): boolean {
  const { href } = objectIn(objectIn(links, `${path} _links`).self, `${path} self`)
  const self = URL.parse(textIn(href, `${path} self`))
  const [name = ''] = path.split('?')
  const isOurs = self?.pathname.endsWith(name) === true
  return isOurs && self.searchParams.get('cursor') === String(cursor)
}

export function recordsIn(page: Fields, what: string): readonly Fields[] {
  const { records } = objectIn(page._embedded, `${what} _embedded`)
  return listIn(records, `${what} records`).map((record) => objectIn(record, `${what} record`))
}
