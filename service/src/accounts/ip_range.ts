import { isIP } from 'node:net'
import { accept, type Outcome, refuse } from '../domain/outcome.ts'

/** ::ffff:0:0/96, how an IPv6 socket shows IPv4 callers; those are compared as IPv4. */
const MAPPED_IPV4 = '0'.repeat(80) + '1'.repeat(16)

/** An IPv4 or IPv6 address, or a CIDR range of them, in lower case. */
export function parseIpRange(text: string): Outcome<string> {
  const [address = '', prefix, ...rest] = text.trim().toLowerCase().split('/')
  const family = isIP(address)
  if (family === 0 || rest.length > 0 || address.includes('%')) {
    return refuse({
      code: 'ip_range_malformed',
      message: `${text} is not an IP address or a range such as 203.0.113.0/24`,
    })
  }
  if (family === 6 && ipv6Bits(address).startsWith(MAPPED_IPV4)) {
    return refuse({
      code: 'ip_range_malformed',
      message: `${text} is IPv4 in IPv6 clothes: write it as IPv4`,
    })
  }
  if (prefix === undefined) return accept(address)
  const bitsMax = family === 4 ? 32 : 128
  if (!/^\d{1,3}$/.test(prefix) || Number(prefix) > bitsMax) {
    return refuse({
      code: 'ip_range_malformed',
      message: `${text}: the prefix is a number from 0 to ${bitsMax}`,
    })
  }
  if (!isNetworkAddress(address, Number(prefix), family)) {
    return refuse({
      code: 'ip_range_malformed',
      message: `${text} has bits set beyond its prefix: give the first address of the range, or the address alone`,
    })
  }
  return accept(`${address}/${Number(prefix)}`)
}

/** `10.0.0.5/8` is a typing error more often than a wish for sixteen million addresses. */
function isNetworkAddress(address: string, prefix: number, family: number): boolean {
  const bits = family === 4 ? ipv4Bits(address) : ipv6Bits(address)
  return !bits.slice(prefix).includes('1')
}

function ipv4Bits(address: string): string {
  return address
    .split('.')
    .map((part) => Number(part).toString(2).padStart(8, '0'))
    .join('')
}

function ipv6Bits(address: string): string {
  // URL writes every form of an address the same way: hexadecimal groups and at most one `::`.
  const [head = '', tail = ''] = new URL(`http://[${address}]`).hostname.slice(1, -1).split('::')
  const toBits = (part: string) =>
    part
      .split(':')
      .filter((group) => group !== '')
      .map((group) => Number.parseInt(group, 16).toString(2).padStart(16, '0'))
      .join('')
  const before = toBits(head)
  const after = toBits(tail)
  return before + '0'.repeat(128 - before.length - after.length) + after
}
