import type { Draft, State } from '../simulated/state.ts'
import { type IssuedAmount, isLower, type LedgerEntry, lineKey, type RippleState } from './entries.ts'

const DECIMALS = 20
const ONE = 10n ** BigInt(DECIMALS)
/** Nobody: the issuer that stands in the balance of a line, which belongs to both ends. */
const ACCOUNT_ONE = 'rrrrrrrrrrrrrrrrrrrrBZbvji'
/** What an issuer can always give and take of its own. */
const WITHOUT_END = 10n ** 60n

/** `1.5` in units of 10^-20. */
export function parseValue(text: string): bigint {
  const [, sign, whole = '', fraction = '', exponent = '0'] =
    /^(-?)(\d+)(?:\.(\d+))?(?:e([+-]?\d+))?$/i.exec(text) ?? []
  const shift = DECIMALS + Number(exponent) - fraction.length
  const digits = BigInt(whole + fraction)
  const units = shift >= 0 ? digits * 10n ** BigInt(shift) : digits / 10n ** BigInt(-shift)
  return sign === '-' ? -units : units
}

/** At most 15 digits count on the ledger; the rest is cut off. */
export function formatValue(units: bigint): string {
  const size = units < 0n ? -units : units
  const surplus = 10n ** BigInt(Math.max(0, size.toString().length - 15))
  const kept = (size / surplus) * surplus
  const fraction = (kept % ONE).toString().padStart(DECIMALS, '0').replace(/0+$/, '')
  const text = `${kept / ONE}${fraction === '' ? '' : `.${fraction}`}`
  return units < 0n && kept > 0n ? `-${text}` : text
}

export type Currency = Pick<IssuedAmount, 'currency' | 'issuer'>

export function holdingOf(
  state: State<LedgerEntry>,
  account: string,
  { currency, issuer }: Currency,
): bigint {
  if (account === issuer) return WITHOUT_END
  const line = state.get(lineKey(account, issuer, currency)) as RippleState | undefined
  if (line === undefined) return 0n
  const balance = parseValue(line.Balance.value)
  return isLower(account, issuer) ? balance : -balance
}

/** How much more of it the account takes: its limit towards the issuer less what it holds. */
export function roomOf(state: State<LedgerEntry>, account: string, of: Currency): bigint {
  if (account === of.issuer) return WITHOUT_END
  const line = state.get(lineKey(account, of.issuer, of.currency)) as RippleState | undefined
  if (line === undefined) return 0n
  const limit = isLower(account, of.issuer) ? line.LowLimit : line.HighLimit
  const room = parseValue(limit.value) - holdingOf(state, account, of)
  return room > 0n ? room : 0n
}

/** From one end of a line to another, through the issuer. Whoever calls has looked at `holdingOf` and `roomOf`. */
export function moveIssued(
  draft: Draft<LedgerEntry>,
  from: string,
  to: string,
  of: Currency,
  units: bigint,
): void {
  if (from !== of.issuer) changeHolding(draft, from, of, -units)
  if (to !== of.issuer) changeHolding(draft, to, of, units)
}

export function setLimit(draft: Draft<LedgerEntry>, account: string, limit: IssuedAmount): 'new' | 'old' {
  const { currency, issuer } = limit
  const key = lineKey(account, issuer, currency)
  const old = draft.get(key) as RippleState | undefined
  const line: RippleState = old ?? newLine(account, issuer, currency)
  const own = { currency, issuer: account, value: limit.value }
  draft.set(key, { ...line, ...(isLower(account, issuer) ? { LowLimit: own } : { HighLimit: own }) })
  return old === undefined ? 'new' : 'old'
}

function newLine(account: string, issuer: string, currency: string): RippleState {
  const [low, high] = isLower(account, issuer) ? [account, issuer] : [issuer, account]
  return {
    LedgerEntryType: 'RippleState',
    Balance: { currency, issuer: ACCOUNT_ONE, value: '0' },
    LowLimit: { currency, issuer: low, value: '0' },
    HighLimit: { currency, issuer: high, value: '0' },
    Flags: low === account ? 0x0001_0000 : 0x0002_0000,
  }
}

function changeHolding(draft: Draft<LedgerEntry>, account: string, of: Currency, units: bigint): void {
  const key = lineKey(account, of.issuer, of.currency)
  const line = draft.get(key) as RippleState | undefined
  if (line === undefined) throw new Error(`${account} has no line for ${of.currency}`)
  const change = isLower(account, of.issuer) ? units : -units
  const value = formatValue(parseValue(line.Balance.value) + change)
  draft.set(key, { ...line, Balance: { ...line.Balance, value } })
}
