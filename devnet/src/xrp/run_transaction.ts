import { deriveAddress } from 'ripple-keypairs'
import { type Draft, draftOn, takeOver } from '../simulated/state.ts'
import type { XrpFields, XrpTransaction } from './decode_transaction.ts'
import { accountFlags, accountKey, type LedgerEntry, offerKey, readAccount } from './entries.ts'
import { setLimit } from './issued.ts'
import { type Metadata, metadataOf } from './metadata.ts'
import { checkPayment, moveDrops, type Paid, pay, refusalOf } from './payment.ts'
import { BASE_FEE, RESERVE_INCREMENT, reserveOf } from './reserves.ts'

export type XrpPlace = { readonly height: number; readonly index: number }

/** `metadata` is there when the transaction belongs into the ledger, which with a `tec` code means: for its fee only. */
export type Outcome = { readonly code: string; readonly metadata?: Metadata }

/** So many ledgers after an account's sequence: old transactions of it can no longer come back. */
const DELETABLE_AFTER = 256

/** Private networks have ids above this, and their transactions must name it. */
const PUBLIC_NETWORK_ID_MAX = 1024

/**
 * https://xrpl.org/docs/references/protocol/transactions/transaction-results: `tem` never gets in, `tef`, `tel` and `ter` are in no
 * ledger now and may be later, `tec` gets in and is charged.
 */
export function runTransaction(
  tx: XrpTransaction,
  draft: Draft<LedgerEntry>,
  place: XrpPlace,
  networkId: number,
): Outcome {
  const { fields } = tx
  const refusal = checkForm(fields, networkId) ?? checkSender(fields, draft, place.height)
  if (refusal !== undefined) return { code: refusal }
  const entered = draftOn(draft)
  chargeFee(entered, fields)
  const acted = draftOn(entered)
  const { code, delivered }: Paid = tx.failWith ? { code: tx.failWith } : act(fields, acted, place.height)
  if (code === 'tesSUCCESS') takeOver(entered, acted.changes())
  else if (!code.startsWith('tec')) return { code }
  const metadata = metadataOf(tx, entered, draft, place, code, delivered)
  takeOver(draft, entered.changes())
  return { code, metadata }
}

/** Whether what fails so in one ledger may be in a later one. */
export function mayGetIn(code: string): boolean {
  return /^te[flr]/.test(code) && !OVER.has(code)
}

/** Its sequence is used, or its last ledger is closed. */
const OVER = new Set(['tefPAST_SEQ', 'tefMAX_LEDGER'])

function checkForm(fields: XrpFields, networkId: number): string | undefined {
  if (networkId <= PUBLIC_NETWORK_ID_MAX) {
    if (fields.NetworkID !== undefined) return 'telNETWORK_ID_MAKES_TX_NON_CANONICAL'
  } else if (fields.NetworkID === undefined) return 'telREQUIRES_NETWORK_ID'
  else if (fields.NetworkID !== networkId) return 'telWRONG_NETWORK'
  if (BigInt(fields.Fee) < 0n) return 'temBAD_FEE'
  if (fields.TicketSequence !== undefined) return 'tefNO_TICKET'
  const action = actions[fields.TransactionType]
  return action === undefined ? 'temDISABLED' : action.check(fields)
}

function checkSender(fields: XrpFields, draft: Draft<LedgerEntry>, ledgerIndex: number): string | undefined {
  const sender = readAccount(draft, fields.Account)
  if (sender === undefined) return 'terNO_ACCOUNT'
  if (fields.Sequence > sender.Sequence) return 'terPRE_SEQ'
  if (fields.Sequence < sender.Sequence) return 'tefPAST_SEQ'
  if (ledgerIndex > (fields.LastLedgerSequence ?? Number.POSITIVE_INFINITY)) return 'tefMAX_LEDGER'
  const feeMin = fields.TransactionType === 'AccountDelete' ? RESERVE_INCREMENT : BASE_FEE
  if (BigInt(fields.Fee) < feeMin) return 'telINSUF_FEE_P'
  if (BigInt(fields.Fee) > BigInt(sender.Balance)) return 'terINSUF_FEE_B'
  return deriveAddress(fields.SigningPubKey) === fields.Account ? undefined : 'tefBAD_AUTH'
}

function chargeFee(draft: Draft<LedgerEntry>, { Account, Fee }: XrpFields): void {
  const sender = readAccount(draft, Account)
  if (sender === undefined) return
  const Balance = String(BigInt(sender.Balance) - BigInt(Fee))
  draft.set(accountKey(Account), { ...sender, Balance, Sequence: sender.Sequence + 1 })
}

type Action = {
  /** What is wrong with it whatever the ledger says. */
  check(fields: XrpFields): string | undefined
  act(fields: XrpFields, draft: Draft<LedgerEntry>, ledgerIndex: number): Paid
}

const actions: Readonly<Record<string, Action>> = {
  Payment: { check: checkPayment, act: pay },
  AccountSet: { check: () => undefined, act: setAccount },
  TrustSet: { check: checkTrust, act: setTrust },
  OfferCreate: { check: checkOffer, act: createOffer },
  AccountDelete: { check: checkDeletion, act: deleteAccount },
}

function act(fields: XrpFields, draft: Draft<LedgerEntry>, ledgerIndex: number): Paid {
  return actions[fields.TransactionType]?.act(fields, draft, ledgerIndex) ?? { code: 'temUNKNOWN' }
}

/** https://xrpl.org/docs/references/protocol/transactions/types/accountset#accountset-flags */
const SETTABLE: Readonly<Record<number, number>> = {
  1: accountFlags.requireDestTag,
  3: accountFlags.disallowXrp,
  8: accountFlags.defaultRipple,
  9: accountFlags.depositAuth,
}

function setAccount(fields: XrpFields, draft: Draft<LedgerEntry>): Paid {
  const account = readAccount(draft, fields.Account)
  if (account === undefined) return { code: 'tefINTERNAL' }
  const on = SETTABLE[fields.SetFlag ?? 0] ?? 0
  const off = SETTABLE[fields.ClearFlag ?? 0] ?? 0
  draft.set(accountKey(fields.Account), { ...account, Flags: (account.Flags | on) & ~off })
  return { code: 'tesSUCCESS' }
}

function checkTrust({ Account, LimitAmount }: XrpFields): string | undefined {
  if (LimitAmount === undefined) return 'temMALFORMED'
  if (LimitAmount.currency === 'XRP') return 'temBAD_CURRENCY'
  return LimitAmount.issuer === Account ? 'temDST_IS_SRC' : undefined
}

function setTrust({ Account, LimitAmount }: XrpFields, draft: Draft<LedgerEntry>): Paid {
  if (LimitAmount === undefined) return { code: 'temMALFORMED' }
  if (readAccount(draft, LimitAmount.issuer) === undefined) return { code: 'tecNO_DST' }
  if (setLimit(draft, Account, LimitAmount) === 'old') return { code: 'tesSUCCESS' }
  return own(draft, Account, 'tecNO_LINE_INSUF_RESERVE')
}

/** Only offers of XRP: they are there so that a payment can deliver less XRP than it says. */
function checkOffer({ TakerPays, TakerGets }: XrpFields): string | undefined {
  return typeof TakerGets === 'string' && typeof TakerPays === 'object' ? undefined : 'temDISABLED'
}

function createOffer(fields: XrpFields, draft: Draft<LedgerEntry>): Paid {
  const { Account, Sequence, TakerPays, TakerGets } = fields
  if (typeof TakerPays !== 'object' || typeof TakerGets !== 'string') return { code: 'temDISABLED' }
  draft.set(offerKey(Account, Sequence), {
    LedgerEntryType: 'Offer',
    Account,
    Sequence,
    TakerPays,
    TakerGets,
    Flags: 0,
  })
  return own(draft, Account, 'tecINSUF_RESERVE_OFFER')
}

/** One entry more that the account has to keep a reserve for. */
function own(draft: Draft<LedgerEntry>, account: string, otherwise: string): Paid {
  const owner = readAccount(draft, account)
  if (owner === undefined) return { code: 'tefINTERNAL' }
  const OwnerCount = owner.OwnerCount + 1
  if (BigInt(owner.Balance) < reserveOf(OwnerCount)) return { code: otherwise }
  draft.set(accountKey(account), { ...owner, OwnerCount })
  return { code: 'tesSUCCESS' }
}

function checkDeletion({ Account, Destination }: XrpFields): string | undefined {
  if (Destination === undefined) return 'temMALFORMED'
  return Destination === Account ? 'temDST_IS_SRC' : undefined
}

/** All that is left goes to the destination: XRP that arrives and is no payment. */
function deleteAccount(fields: XrpFields, draft: Draft<LedgerEntry>, ledgerIndex: number): Paid {
  const { Account, Destination = '' } = fields
  const account = readAccount(draft, Account)
  const destination = readAccount(draft, Destination)
  if (account === undefined) return { code: 'tefINTERNAL' }
  if (destination === undefined) return { code: 'tecNO_DST' }
  const refusal = refusalOf(fields, destination)
  if (refusal !== undefined) return { code: refusal }
  if (account.OwnerCount > 0) return { code: 'tecHAS_OBLIGATIONS' }
  if (fields.Sequence + DELETABLE_AFTER > ledgerIndex) return { code: 'tecTOO_SOON' }
  moveDrops(draft, Account, Destination, BigInt(account.Balance), ledgerIndex)
  draft.delete(accountKey(Account))
  return { code: 'tesSUCCESS', delivered: account.Balance }
}
