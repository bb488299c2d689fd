/**
 * First addresses and prefix lengths of IPv4 that is no host of the public internet (IANA's registry of special
 * purposes, and what was one once).
 */
const notPublic: readonly (readonly [string, number])[] = [
  ['0.0.0.0', 8],
  ['10.0.0.0', 8],
  ['100.64.0.0', 10],
  ['127.0.0.0', 8],
  ['169.254.0.0', 16],
  ['172.16.0.0', 12],
  ['192.0.0.0', 24],
  ['192.0.2.0', 24],
  ['192.31.196.0', 24],
  ['192.52.193.0', 24],
  ['192.88.99.0', 24],
  ['192.168.0.0', 16],
  ['192.175.48.0', 24],
  ['198.18.0.0', 15],
  ['198.51.100.0', 24],
  ['203.0.113.0', 24],
  // Multicast, what is reserved, and broadcast.
  ['224.0.0.0', 3],
]

const refusedIpv4 = notPublic.map(([first, bits]) => ({ first: ipv4Of(first) ?? 0, size: 2 ** (32 - bits) }))

/**
 * Whether an address, as text, is one that a host of the public internet can have. What is not written as resolvers
 * and WHATWG's URL write addresses is none.
 */
export function isPublicAddress(text: string): boolean {
  const ipv4 = ipv4Of(text)
  if (ipv4 !== null) return !refusedIpv4.some(({ first, size }) => ipv4 >= first && ipv4 < first + size)
  return isPublicIpv6(text)
}

function ipv4Of(text: string): number | null {
  if (!/^(?:(?:0|[1-9]\d{0,2})(?:\.(?!$)|$)){4}$/.test(text)) return null
  const parts = text.split('.').map((part) => Number.parseInt(part, 10))
  return parts.every((part) => part < 256) ? parts.reduce((sum, part) => sum * 256 + part, 0) : null
}

/**
 * Global unicast is 2000::/3; everything else is refused without being named (loopback, link-local, mapped and translated
 * IPv4, …). All that is refused within it is told by the first 32 bits.
 */
function isPublicIpv6(text: string): boolean {
  const groups = text.split(':')
  const isWritten =
    groups.length > 2 && groups.length < 9 && groups.every((group) => /^[0-9a-f]{0,4}$/i.test(group))
  // One that begins with zeros left out is not global unicast.
  if (!isWritten || groups[0] === '') return false
  const high = Number.parseInt(groups[0] ?? '', 16)
  // An empty second group begins the run of zeros.
  const low = Number.parseInt(`0${groups[1]}`, 16)
  if (high < 0x2000 || high > 0x3fff) return false
  // 2001::/23 protocol assignments (Teredo among them), 2001:db8::/32 and 3fff::/20 documentation, 2002::/16 6to4.
  if (high === 0x2001) return low >= 0x0200 && low !== 0x0db8
  return high !== 0x2002 && !(high === 0x3fff && low < 0x1000)
}
