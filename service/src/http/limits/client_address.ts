import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import { isIP } from 'node:net'
import { type AddressSet, addressSet, plainAddress } from './address_set.ts'

/**
 * Who is at the other end. X-Forwarded-For is read from the right, as far as the hops are our own proxies: what is
 * left of the first stranger is that stranger's word, and worth nothing.
 */
export type ClientAddress = (request: IncomingMessage) => string

export function clientAddress(trustedProxies: readonly string[]): ClientAddress {
  if (trustedProxies.length === 0) return peerOf
  const trusted = addressSet(trustedProxies)
  return (request) => lastStranger(peerOf(request), request.headers, trusted)
}

/** No host has it (RFC 1122, 3.2.1.3), and no list of addresses holds it but one of everybody. */
const UNREADABLE = '0.0.0.0'

/** What proxies write of the request that they hand on. */
const HANDED_ON = ['x-forwarded-for', 'x-forwarded-proto', 'x-real-ip', 'forwarded', 'via']

/** Whether somebody hands the request on who is no proxy of ours: then nobody knows who asks. */
export function handedOnByStranger(trustedProxies: readonly string[]): (request: IncomingMessage) => boolean {
  const trusted = addressSet(trustedProxies)
  return (request) => isHandedOn(request.headers) && !trusted.has(peerOf(request))
}

function isHandedOn(headers: IncomingHttpHeaders): boolean {
  return HANDED_ON.some((name) => headers[name] !== undefined)
}

function peerOf(request: IncomingMessage): string {
  return plainAddress(request.socket.remoteAddress ?? '')
}

function lastStranger(peer: string, headers: IncomingHttpHeaders, trusted: AddressSet): string {
  // A proxy of ours that hands nothing on asks for itself.
  if (!isHandedOn(headers)) return peer
  const hops = [headers['x-forwarded-for'] ?? []].flat().join(',').split(',').reverse()
  let known = peer
  for (const hop of hops) {
    if (!trusted.has(known)) return known
    const address = plainAddress(withoutPort(hop.trim()))
    // It asks for somebody whom it does not name (RFC 7239, 6.2: unknown), or not in this header: that is not the proxy itself.
    if (isIP(address) === 0) return UNREADABLE
    known = address
  }
  return known
}

/** Some proxies write the client's port behind its address, IPv6 in brackets. */
function withoutPort(hop: string): string {
  return /^(\d+(?:\.\d+){3})(?::\d+)?$/.exec(hop)?.[1] ?? /^\[([^\]]+)\](?::\d+)?$/.exec(hop)?.[1] ?? hop
}

/** IPv6 clients own at least a /64: counting single addresses would not limit them. */
export function limitedAs(address: string): string {
  return isIP(address) === 6 ? `${firstGroups(address)}/64` : address
}

function firstGroups(address: string): string {
  const [head = '', tail] = address.split('%')[0]?.split('::') ?? []
  const left = head === '' ? [] : head.split(':')
  const right = tail === undefined || tail === '' ? [] : tail.split(':')
  const gap =
    tail === undefined ? [] : new Array<string>(Math.max(0, 8 - left.length - right.length)).fill('0')
  return [...left, ...gap, ...right].slice(0, 4).join(':')
}
