import type { IncomingMessage } from 'node:http'
import { parseCookie, stringifySetCookie } from 'cookie'
import type { HeaderList } from '../answers/answers.ts'

/** `session`: who is signed in. `browser`: which browser asked for a link, because only there it signs in. */
export type CookieName = 'session' | 'browser'

/** Cookies of one service; how they are protected depends on where clients reach it. */
export type Cookies = {
  read(request: IncomingMessage, name: CookieName): string | null
  /** As a header, name and value. */
  set(name: CookieName, value: string, maxAgeSeconds: number): HeaderList
  clear(name: CookieName): HeaderList
}

/**
 * Over https every cookie has the prefix `__Host-`: browsers take such a one only over https, for this host alone and all
 * of its paths, so that neither a neighbour's page nor a line in between can plant one. Plain http (the sandbox, a test
 * network) has no such protection to give, and there the prefix and `Secure` would only keep the cookie from working.
 */
export function cookiesOf(baseUrl: () => string): Cookies {
  const isSecure = () => baseUrl().startsWith('https:')
  const nameOf = (name: CookieName) => `${isSecure() ? '__Host-' : ''}cambist_${name}`
  const write = (name: CookieName, value: string, maxAge: number): HeaderList => [
    'Set-Cookie',
    stringifySetCookie({
      name: nameOf(name),
      value,
      maxAge,
      path: '/',
      httpOnly: true,
      secure: isSecure(),
      sameSite: 'lax',
    }),
  ]
  return {
    read: (request, name) => parseCookie(request.headers.cookie ?? '', asWritten)[nameOf(name)] ?? null,
    set: write,
    clear: (name) => write(name, '', 0),
  }
}

/** Nothing of ours has to be decoded, and thousands of values that cannot be take longer than all the rest of a request. */
const asWritten = { decode: (value: string) => value }
