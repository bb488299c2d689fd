import { BlockList, isIP } from 'node:net'

/** Addresses and CIDR ranges. Node's BlockList is only a set of them, whatever its name. */
export type AddressSet = { has(address: string): boolean }

type Family = 'ipv4' | 'ipv6'

/** An entry that is neither an address nor a range throws: it would silently let nobody in. */
export function addressSet(entries: readonly string[]): AddressSet {
  // Apart: a BlockList looks for IPv4 also where IPv6 has room for it (::ffff:0:0/96), and `::/0` would hold all of both.
  const lists = { ipv4: new BlockList(), ipv6: new BlockList() }
  for (const entry of entries) add(lists, entry)
  return {
    has: (address) => {
      const family = familyOf(address)
      return family !== null && lists[family].check(address, family)
    },
  }
}

function familyOf(address: string): Family | null {
  const family = isIP(address)
  return family === 0 ? null : family === 6 ? 'ipv6' : 'ipv4'
}

function add(lists: Readonly<Record<Family, BlockList>>, entry: string): void {
  const [text = '', bits] = entry.split('/')
  const address = plainAddress(text)
  const family = familyOf(address)
  if (family === null) throw new Error(`"${entry}" is not an IP address or CIDR range`)
  if (bits === undefined) {
    lists[family].addAddress(address, family)
    return
  }
  const prefix = /^\d{1,3}$/.test(bits) ? Number.parseInt(bits, 10) : Number.NaN
  if (!(prefix <= (family === 'ipv6' ? 128 : 32))) throw new Error(`"${entry}" is not a CIDR range`)
  lists[family].addSubnet(address, prefix, family)
}

/** An IPv4 address that came in through an IPv6 socket, as IPv4. */
export function plainAddress(address: string): string {
  return /^::ffff:\d+\.\d+\.\d+\.\d+$/i.test(address) ? address.slice(7) : address
}
