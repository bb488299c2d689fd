import { accept, type Outcome, refuse } from '../outcome.ts'
import { isPublicAddress } from './public_address.ts'

export const RECEIVER_URL_LENGTH_MAX = 2048
/** RFC 1035 §2.3.4, its last dot apart. Of foreign letters punycode makes more than stand in the URL. */
const HOST_LENGTH_MAX = 253

/** RFC 3986. What Node's parser mends (`https:x`, `a|b`) is not a URL yet, and would be echoed as one. */
const wholeUrl =
  /^https?:\/\/[\w\-.~%!$&'()*+,;=:@[\]]+(?:[/?#](?:[\w\-.~!$&'()*+,;=:@/?#]|%[0-9A-F]{2})*)?$/i

/** The sandbox's receivers are programs on the same machine. */
export const loopbackHosts: readonly string[] = ['localhost', '127.0.0.1', '[::1]']

/**
 * What a URL must be that events are sent to: the one rule for `callback_url`, for endpoints, and before every attempt.
 * Where a name leads to is asked of every attempt anew (channels/webhook). The refusal's message follows the words "the
 * URL". `loopbackAllowed`: plain http to this machine, for the sandbox.
 */
export function readReceiverUrl(text: string, loopbackAllowed: boolean): Outcome<URL> {
  if (text.length > RECEIVER_URL_LENGTH_MAX) {
    return malformed(`must have at most ${RECEIVER_URL_LENGTH_MAX} characters`)
  }
  const url = wholeUrl.test(text) ? URL.parse(text) : null
  if (url === null) return malformed('must be an absolute https URL')
  if (url.username !== '' || url.password !== '') return malformed('must not carry a user name or password')
  // An empty one as well: endpoints are told apart by their text.
  if (text.includes('#')) return malformed('must not have a fragment')
  if (url.hostname.replace(/\.$/, '').length > HOST_LENGTH_MAX) {
    return malformed(`must have a host of at most ${HOST_LENGTH_MAX} characters`)
  }
  if (url.protocol === 'https:') return isInternal(url.hostname) ? notPublic : accept(url)
  if (loopbackAllowed && isLoopback(url)) return accept(url)
  return malformed('must be an absolute https URL')
}

/** Plain http to this machine. */
export function isLoopback(url: URL): boolean {
  return url.protocol === 'http:' && loopbackHosts.includes(url.hostname)
}

/**
 * Host and port. Of a URL that was taken before hosts had a limit no more than one may have: an index holds no longer ones,
 * and nothing is sent there anyhow.
 */
export function hostOf(text: string): string {
  return (URL.parse(text)?.host ?? text).slice(0, HOST_LENGTH_MAX + '.:65535'.length)
}

/** The address that a URL names itself: the parser has written it as everybody writes it. Null for a name. */
export function literalAddress(hostname: string): string | null {
  if (hostname.startsWith('[')) return hostname.slice(1, -1)
  return /^[\d.]+$/.test(hostname) ? hostname : null
}

function isInternal(hostname: string): boolean {
  const address = literalAddress(hostname)
  // Names that mean this machine wherever they are asked (RFC 6761 §6.3).
  return address === null ? /(^|\.)localhost\.?$/.test(hostname) : !isPublicAddress(address)
}

const notPublic = malformed('must not lead to an address that is not public')

function malformed(message: string): Outcome<never> {
  return refuse({ code: 'url_malformed', message })
}
