import { BlockList, isIP } from 'node:net'

/** Addresses and CIDR ranges. Node's BlockList is only a set of them, whatever its name. */
export type AddressSet = { has(address: string): boolean }

/** An entry that is neither an address nor a range throws: it would silently let nobody in. */
export function addressSet(entries: readonly string[]): AddressSet {
  const list = new BlockList()
  for (const entry of entries) add(list, entry)
  return {
    has: (address) => {
      const family = isIP(address)
      return family !== 0 && list.check(address, family === 6 ? 'ipv6' : 'ipv4')
    },
  }
}

function add(list: BlockList, entry: string): void {
  const [text = '', bits] = entry.split('/')
  const address = plainAddress(text)
  const family = isIP(address)
  if (family === 0) throw new Error(`"${entry}" is not an IP address or CIDR range`)
  const type = family === 6 ? 'ipv6' : 'ipv4'
  if (bits === undefined) {
    list.addAddress(address, type)
    return
  }
  const prefix = /^\d{1,3}$/.test(bits) ? Number.parseInt(bits, 10) : Number.NaN
  if (!(prefix <= (family === 6 ? 128 : 32))) throw new Error(`"${entry}" is not a CIDR range`)
  list.addSubnet(address, prefix, type)
}

/** An IPv4 address that came in through an IPv6 socket, as IPv4. */
export function plainAddress(address: string): string {
  return /^::ffff:\d+\.\d+\.\d+\.\d+$/i.test(address) ? address.slice(7) : address
}
