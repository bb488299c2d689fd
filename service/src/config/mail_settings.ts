import { type Explorer, type Explorers, explorerText } from '../domain/catalog/explorers.ts'
import { type ChainId, chainIds } from '../domain/catalog/networks.ts'
import { type Environment, refuseHash } from './environment.ts'
import { explorerVariable } from './variables.ts'

export type MailSettings = {
  readonly smtp: {
    readonly host: string
    readonly port: number
    readonly security: 'tls' | 'starttls' | 'none'
    readonly auth: { readonly user: string; readonly pass: string } | null
  }
  readonly fromAddress: string
  readonly fromName: string
  readonly explorers: Explorers
}

/** Null when no mail server is set: then the service runs and sends no mails. */
export function readMail(from: Environment): MailSettings | null {
  const explorers = readExplorers(from)
  const url = from.url('CAMBIST_SMTP_URL', ['smtp:', 'smtps:'])
  if (url === null) return null
  refuseHash(from, 'CAMBIST_SMTP_URL')
  from.required('CAMBIST_MAIL_FROM', 'because CAMBIST_SMTP_URL is set')
  from.required('CAMBIST_BASE_URL', 'because mails link to it (CAMBIST_SMTP_URL is set)')
  return { smtp: readSmtp(from, url), ...readSender(from), explorers }
}

function readSmtp(from: Environment, text: string): MailSettings['smtp'] {
  const url = URL.parse(text)
  const wrong = (message: string) => from.report('CAMBIST_SMTP_URL', message)
  if (url === null) return { host: '', port: 0, security: 'starttls', auth: null }
  const { protocol, hostname, port, username, password, pathname, search } = url
  const isTls = protocol === 'smtps:'
  if (hostname === '' || !['', '/'].includes(pathname)) wrong('must be smtp://user:password@host:port')
  if (!['', '?tls=none'].includes(search)) wrong('takes one option: ?tls=none')
  if (isTls && search !== '') wrong('smtps:// is TLS from the first byte; ?tls=none contradicts it')
  const isPlain = search === '?tls=none'
  const [user, pass] = [decode(username), decode(password)]
  if (user === null || pass === null) wrong('has a % that stands for no character')
  return {
    host: hostname.replace(/^\[|\]$/g, ''),
    port: port === '' ? (isTls ? 465 : 587) : Number.parseInt(port, 10),
    security: isTls ? 'tls' : isPlain ? 'none' : 'starttls',
    auth: username === '' ? null : { user: user ?? '', pass: pass ?? '' },
  }
}

function decode(text: string): string | null {
  try {
    return decodeURIComponent(text)
  } catch {
    return null
  }
}

/** `Cambist <orders@exchange.example.org>`, or the address alone. */
function readSender(from: Environment): Pick<MailSettings, 'fromAddress' | 'fromName'> {
  const text = from.text('CAMBIST_MAIL_FROM') ?? ''
  const [, name = '', inner] = /^\s*"?([^"<>]*?)"?\s*<([^<>]*)>\s*$/.exec(text) ?? []
  const address = (inner ?? text).trim()
  const isAddress = /^[^\s@<>",;:()[\]\\]{1,64}@[A-Za-z0-9.-]{1,190}$/.test(address)
  if (text !== '' && (!isAddress || /\p{Cc}/u.test(name))) {
    from.report('CAMBIST_MAIL_FROM', 'must be an address, or a name and an <address>')
  }
  return { fromAddress: address, fromName: name === '' ? 'Cambist' : name }
}

function readExplorers(from: Environment): Explorers {
  return Object.fromEntries(chainIds.map((chain) => [chain, readExplorer(from, chain)])) as Explorers
}

/** `none`, or a URL with {tx} in it and perhaps one with {address}. */
function readExplorer(from: Environment, chain: ChainId): Explorer | null {
  const name = explorerVariable(chain)
  const entries = from.list(name)
  if (entries.length === 1 && entries[0] === 'none') return null
  const [tx = '', address = null] = entries
  const isUrl = (text: string) => ['https:', 'http:'].includes(URL.parse(text)?.protocol ?? '')
  const isRight =
    entries.length <= 2 &&
    isUrl(tx) &&
    tx.includes('{tx}') &&
    (address === null || (isUrl(address) && address.includes('{address}')))
  if (!isRight) from.report(name, `must be none, or URLs such as ${explorerText('BTC')}`)
  return { tx, address }
}
