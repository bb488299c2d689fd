import type { Draft } from '../simulated/state.ts'
import type { XrpFields } from './decode_transaction.ts'
import {
  type AccountRoot,
  accountFlags,
  accountKey,
  type CurrencyAmount,
  type IssuedAmount,
  type LedgerEntry,
  type Offer,
  readAccount,
  readAll,
} from './entries.ts'
import { formatValue, holdingOf, moveIssued, parseValue, roomOf } from './issued.ts'
import { RESERVE_BASE, reserveOf } from './reserves.ts'

const TF_PARTIAL_PAYMENT = 0x0002_0000

export type Paid = { readonly code: string; readonly delivered?: CurrencyAmount }
type Payment = XrpFields & { readonly Destination: string; readonly Amount: CurrencyAmount }

/** What is wrong with a payment whatever the ledger says, or undefined. */
export function checkPayment(fields: XrpFields): string | undefined {
  const { Account, Destination, Amount, SendMax, DeliverMin } = fields
  if (Destination === undefined || Amount === undefined) return 'temMALFORMED'
  for (const amount of [Amount, SendMax, DeliverMin]) {
    if (amount === undefined) continue
    if (unitsOf(amount) <= 0n) return 'temBAD_AMOUNT'
    if (typeof amount !== 'string' && amount.currency === 'XRP') return 'temBAD_CURRENCY'
  }
  const isDirect = typeof Amount === 'string' && SendMax === undefined
  if (Destination === Account && (isDirect || SendMax === undefined)) return 'temREDUNDANT'
  if (typeof Amount === 'string' && typeof SendMax === 'string') return 'temBAD_SEND_XRP_MAX'
  if (isDirect && isPartial(fields)) return 'temBAD_SEND_XRP_PARTIAL'
  if (DeliverMin !== undefined && !isPartial(fields)) return 'temBAD_AMOUNT'
  return undefined
}

/** https://xrpl.org/docs/references/protocol/transactions/types/payment: the order of the checks is rippled's. */
export function pay(fields: XrpFields, draft: Draft<LedgerEntry>, ledgerIndex: number): Paid {
  const payment = fields as Payment
  const destination = readAccount(draft, payment.Destination)
  const refusal = destination === undefined ? refusalOfNew(payment) : refusalOf(payment, destination)
  if (refusal !== undefined) return { code: refusal }
  const { Amount, SendMax } = payment
  if (typeof Amount === 'string' && SendMax === undefined) return payDrops(payment, draft, ledgerIndex)
  if (typeof Amount === 'string') return payThroughOffers(payment, draft, ledgerIndex)
  if (typeof SendMax === 'string') return { code: 'tecPATH_DRY' }
  return payIssued(payment, draft, Amount)
}

/** Enough XRP makes an account of an address that has none. */
function refusalOfNew(payment: Payment): string | undefined {
  if (typeof payment.Amount !== 'string') return 'tecNO_DST'
  if (isPartial(payment)) return 'telNO_DST_PARTIAL'
  return BigInt(payment.Amount) < RESERVE_BASE ? 'tecNO_DST_INSUF_XRP' : undefined
}

/** What the destination has asked of those who pay it. */
export function refusalOf(fields: XrpFields, destination: AccountRoot): string | undefined {
  const { DestinationTag, Account } = fields
  if (isSet(destination, accountFlags.requireDestTag) && DestinationTag === undefined)
    return 'tecDST_TAG_NEEDED'
  if (isSet(destination, accountFlags.depositAuth) && Account !== destination.Account)
    return 'tecNO_PERMISSION'
  return undefined
}

function payDrops(payment: Payment, draft: Draft<LedgerEntry>, ledgerIndex: number): Paid {
  const drops = BigInt(payment.Amount as string)
  const source = readAccount(draft, payment.Account)
  if (source === undefined) return { code: 'tefINTERNAL' }
  const fee = BigInt(payment.Fee)
  const reserve = reserveOf(source.OwnerCount)
  // The fee is paid already, and may come out of the reserve.
  if (BigInt(source.Balance) + fee < drops + (reserve > fee ? reserve : fee))
    return { code: 'tecUNFUNDED_PAYMENT' }
  moveDrops(draft, payment.Account, payment.Destination, drops, ledgerIndex)
  return { code: 'tesSUCCESS' }
}

export function moveDrops(
  draft: Draft<LedgerEntry>,
  from: string,
  to: string,
  drops: bigint,
  ledgerIndex: number,
): void {
  const source = readAccount(draft, from)
  if (source === undefined) throw new Error(`${from} has no account`)
  draft.set(accountKey(from), { ...source, Balance: String(BigInt(source.Balance) - drops) })
  const destination: AccountRoot = readAccount(draft, to) ?? {
    LedgerEntryType: 'AccountRoot',
    Account: to,
    Balance: '0',
    Flags: 0,
    OwnerCount: 0,
    // A deleted account that comes back must not repeat its old transactions.
    Sequence: ledgerIndex,
  }
  draft.set(accountKey(to), { ...destination, Balance: String(BigInt(destination.Balance) + drops) })
}

function payIssued(payment: Payment, draft: Draft<LedgerEntry>, amount: IssuedAmount): Paid {
  const { Account, Destination, SendMax } = payment
  // Naming an end of the payment as issuer means whatever issuer that end trusts; here it is that end.
  const limits = [
    parseValue(amount.value),
    holdingOf(draft, Account, amount),
    roomOf(draft, Destination, amount),
  ]
  if (SendMax !== undefined) limits.push(unitsOf(SendMax))
  const delivered = limits.reduce((least, limit) => (limit < least ? limit : least))
  if (delivered <= 0n) return { code: 'tecPATH_DRY' }
  const value = { ...amount, value: formatValue(delivered) }
  const code = verdictOn(payment, delivered)
  if (code === 'tesSUCCESS') moveIssued(draft, Account, Destination, amount, delivered)
  return { code, delivered: value }
}

/** XRP for what somebody issued, bought from the offers that stand in the ledger, the cheapest first. */
function payThroughOffers(payment: Payment, draft: Draft<LedgerEntry>, ledgerIndex: number): Paid {
  const { Account, Destination, Amount, SendMax } = payment
  const budget = SendMax as IssuedAmount
  const held = holdingOf(draft, Account, budget)
  let drops = BigInt(Amount as string)
  let units = held < parseValue(budget.value) ? held : parseValue(budget.value)
  for (const { key, entry } of offersFor(draft, budget)) {
    const price = parseValue(entry.TakerPays.value)
    const onOffer = BigInt(entry.TakerGets)
    const affordable = (onOffer * units) / price
    const taken = [drops, onOffer, affordable].reduce((least, one) => (one < least ? one : least))
    if (taken === 0n) continue
    const cost = (price * taken + onOffer - 1n) / onOffer
    moveIssued(draft, Account, entry.Account, budget, cost)
    moveDrops(draft, entry.Account, Destination, taken, ledgerIndex)
    shrink(draft, key, entry, taken, cost)
    drops -= taken
    units -= cost
  }
  const delivered = BigInt(Amount as string) - drops
  if (delivered === 0n) return { code: 'tecPATH_DRY' }
  return { code: verdictOn(payment, delivered), delivered: String(delivered) }
}

function offersFor(draft: Draft<LedgerEntry>, { currency, issuer }: IssuedAmount) {
  const price = ({ TakerPays, TakerGets }: Offer) => [parseValue(TakerPays.value), BigInt(TakerGets)] as const
  return readAll(draft, 'Offer')
    .filter(({ entry }) => entry.TakerPays.currency === currency && entry.TakerPays.issuer === issuer)
    .sort((one, other) => {
      const [[pays, gets], [otherPays, otherGets]] = [price(one.entry), price(other.entry)]
      return pays * otherGets < otherPays * gets ? -1 : 1
    })
}

function shrink(draft: Draft<LedgerEntry>, key: string, offer: Offer, taken: bigint, cost: bigint): void {
  const left = BigInt(offer.TakerGets) - taken
  if (left > 0n) {
    const value = formatValue(parseValue(offer.TakerPays.value) - cost)
    draft.set(key, { ...offer, TakerGets: String(left), TakerPays: { ...offer.TakerPays, value } })
    return
  }
  draft.delete(key)
  const owner = readAccount(draft, offer.Account)
  if (owner !== undefined)
    draft.set(accountKey(offer.Account), { ...owner, OwnerCount: owner.OwnerCount - 1 })
}

function verdictOn(payment: Payment, delivered: bigint): string {
  if (delivered === unitsOf(payment.Amount)) return 'tesSUCCESS'
  if (!isPartial(payment)) return 'tecPATH_PARTIAL'
  const isTooLittle = payment.DeliverMin !== undefined && delivered < unitsOf(payment.DeliverMin)
  return isTooLittle ? 'tecPATH_PARTIAL' : 'tesSUCCESS'
}

function unitsOf(amount: CurrencyAmount): bigint {
  return typeof amount === 'string' ? BigInt(amount) : parseValue(amount.value)
}

function isPartial({ Flags = 0 }: XrpFields): boolean {
  return (Flags & TF_PARTIAL_PAYMENT) !== 0
}

function isSet(account: AccountRoot, flag: number): boolean {
  return (account.Flags & flag) !== 0
}
