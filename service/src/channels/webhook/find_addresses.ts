import { Resolver } from 'node:dns/promises'
import { isIPv4 } from 'node:net'
import { isPublicAddress } from '../../domain/webhooks/public_address.ts'
import { isLoopback, literalAddress } from '../../domain/webhooks/receiver_url.ts'

/** All addresses of a name, of both families; none when it has none. Rejects when nobody could be asked. */
export type ResolveHost = (hostname: string) => Promise<readonly string[]>

export type Found =
  | { readonly kind: 'addresses'; readonly addresses: readonly string[] }
  | { readonly kind: 'forbidden'; readonly why: string }
  | { readonly kind: 'failed'; readonly why: string }

/**
 * Of a name with more than these the rest is not tried: whoever answers for it may name thousands that are others', and a
 * connection that is refused makes room for the next at once.
 */
const ADDRESSES_MAX = 8

/**
 * Where a receiver's URL leads now. If any address of its name is not public, all of it is refused: whoever answers for a
 * name chooses which address we would take. What is answered here has to be what is connected to, because the next
 * question may be answered otherwise.
 */
export async function findAddresses(url: URL, resolve: ResolveHost): Promise<Found> {
  if (isLoopback(url)) {
    const addresses = url.hostname === 'localhost' ? ['127.0.0.1', '::1'] : [bare(url.hostname)]
    return { kind: 'addresses', addresses }
  }
  const literal = literalAddress(url.hostname)
  const addresses = literal === null ? withoutTranslations(await asked(url.hostname, resolve)) : [literal]
  if (addresses.length === 0) return { kind: 'failed', why: 'the name of the host does not resolve' }
  if (!addresses.every(isPublicAddress)) {
    return { kind: 'forbidden', why: 'the host has an address that is not public' }
  }
  return { kind: 'addresses', addresses: addresses.slice(0, ADDRESSES_MAX) }
}

/**
 * Without what a DNS64 resolver adds to each IPv4 address of a name that has no others: the same in 64:ff9b::/96 (RFC 6052 §2.1). It
 * says nothing that its IPv4 address does not, which stays and is judged. Any other address of that prefix stays as well, and is
 * not public.
 */
function withoutTranslations(addresses: readonly string[]): readonly string[] {
  const translations = new Set(addresses.filter(isIPv4).map(translationOf))
  return addresses.filter((address) => !translations.has(address.toLowerCase()))
}

/** As resolvers write it. */
function translationOf(ipv4: string): string {
  const [a = 0, b = 0, c = 0, d = 0] = ipv4.split('.').map(Number)
  return `64:ff9b::${(a * 256 + b).toString(16)}:${(c * 256 + d).toString(16)}`
}

/** Without the brackets of an IPv6 literal. */
function bare(hostname: string): string {
  return hostname.replace(/^\[|\]$/g, '')
}

async function asked(hostname: string, resolve: ResolveHost): Promise<readonly string[]> {
  try {
    return await resolve(hostname)
  } catch {
    return []
  }
}

const QUESTION_MS = 2_000

/**
 * Asks DNS itself, and neither the system's file of hosts nor its search list: a name means the same as everywhere else.
 * One family whose question fails is as if it had none; the other's addresses are all that is connected to.
 */
export function dnsResolver(servers: readonly string[] = []): ResolveHost {
  return async (hostname) => {
    const resolver = new Resolver({ timeout: QUESTION_MS, tries: 2 })
    if (servers.length > 0) resolver.setServers(servers)
    const answers = await Promise.allSettled([resolver.resolve4(hostname), resolver.resolve6(hostname)])
    return answers.flatMap((answer) => (answer.status === 'fulfilled' ? answer.value : []))
  }
}
