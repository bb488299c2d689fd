import { BlockList, isIP } from 'node:net'
import type { Environment } from './environment.ts'
import type { VariableName } from './variables.ts'

export type RateLimits = {
  readonly unitsPerMinute: number
  readonly burstPerSecond: number
  readonly createUnits: number
  readonly streamsMax: number
  readonly streamsPerCaller: number
}

export type MailLimits = { readonly mailsPerEmail: number; readonly mailsPerAddress: number }

export function readMailLimits(from: Environment): MailLimits {
  return {
    mailsPerEmail: from.integer('CAMBIST_MAIL_LIMIT_PER_EMAIL', 1, 1_000),
    mailsPerAddress: from.integer('CAMBIST_MAIL_LIMIT_PER_ADDRESS', 1, 1_000_000),
  }
}

const logLevels = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'] as const
export type LogLevel = (typeof logLevels)[number]

export function readRateLimits(from: Environment): RateLimits {
  const limits = {
    unitsPerMinute: from.integer('CAMBIST_RATE_LIMIT_UNITS_PER_MINUTE', 1, 10_000_000),
    burstPerSecond: from.integer('CAMBIST_RATE_LIMIT_BURST_PER_SECOND', 1, 1_000_000),
    createUnits: from.integer('CAMBIST_RATE_LIMIT_CREATE_UNITS', 1, 10_000_000),
    streamsMax: from.integer('CAMBIST_STREAMS_MAX', 0, 1_000_000),
    streamsPerCaller: from.integer('CAMBIST_STREAMS_PER_CALLER', 0, 1_000_000),
  }
  if (limits.createUnits > limits.unitsPerMinute) {
    from.report(
      'CAMBIST_RATE_LIMIT_CREATE_UNITS',
      `is more than the ${limits.unitsPerMinute} units of a minute: no order could ever be created`,
    )
  }
  return limits
}

export function readLogLevel(from: Environment): LogLevel {
  return from.oneOf('CAMBIST_LOG_LEVEL', logLevels)
}

/** IP addresses and CIDR ranges. */
export function readAddresses(from: Environment, name: VariableName): readonly string[] {
  const entries = from.list(name)
  // Most likely of variables that were not set; without addresses, anybody may read what the list is to guard.
  if (from.isSet(name) && entries.length === 0) from.report(name, 'names no address; unset it, or name some')
  for (const entry of entries) {
    if (!isAddressOrRange(entry))
      from.report(name, `${entry} is not an IP address or CIDR range such as 10.0.0.0/8`)
    // Whoever calls is compared as IPv4.
    else if (isMappedIpv4(entry)) from.report(name, `${entry} is IPv4 in IPv6 clothes: write it as IPv4`)
  }
  return entries
}

function isAddressOrRange(text: string): boolean {
  const [address = '', prefix, ...rest] = text.split('/')
  const family = isIP(address)
  if (family === 0 || rest.length > 0) return false
  if (prefix === undefined) return true
  if (!/^\d{1,3}$/.test(prefix)) return false
  try {
    new BlockList().addSubnet(address, Number(prefix), family === 4 ? 'ipv4' : 'ipv6')
    return true
  } catch {
    return false // a prefix longer than the address
  }
}

const mappedIpv4 = new BlockList()
mappedIpv4.addSubnet('::ffff:0:0', 96, 'ipv6')

/** ::ffff:0:0/96, how an IPv6 socket shows IPv4 callers. */
function isMappedIpv4(text: string): boolean {
  const [address = ''] = text.split('/')
  return isIP(address) === 6 && mappedIpv4.check(address, 'ipv6')
}

/** Where clients reach us, without a slash at the end; paths are appended to it. */
export function readBaseUrl(from: Environment, isRequired: boolean, isMainnet: boolean): string | null {
  if (!isRequired && !from.isSet('CAMBIST_BASE_URL')) return null
  if (isRequired) from.required('CAMBIST_BASE_URL', 'by the role api')
  const url = from.url('CAMBIST_BASE_URL', isMainnet ? ['https:'] : ['https:', 'http:'])
  if (url === null) return null
  const { origin, username, password, pathname, search, hash } = new URL(url)
  // Pages and forms of ours link from the root, and every link is appended.
  if (username + password + search + hash !== '' || !/^\/*$/.test(pathname)) {
    from.report(
      'CAMBIST_BASE_URL',
      'must be no more than scheme, host and port: what we serve begins at the root',
    )
    return null
  }
  return origin
}
