import { type AssetId, nativeAsset } from '../../domain/catalog/assets.ts'
import { fromChainUnits } from '../../domain/money/amount.ts'
import type { FindOurs, Transfer } from '../chain.ts'
import { type Fields, isObject } from '../replies.ts'
import { type Spelling, TAG_MAX, textOf } from './address.ts'
import { dropsIn, hashIn, listIn, objectIn, textIn } from './replies.ts'
import { NoAnswer } from './rpc.ts'

/** An account that a successful transaction concerns. Nothing of it is read before it is known to be ours. */
type Arrival = {
  readonly tx: Fields
  readonly meta: Fields
  readonly account: string
  /** As our table of addresses may have it: with the tag that the transaction names, and without. */
  readonly texts: readonly string[]
  /** Its entry in the ledger, where the metadata says that its balance changed. */
  readonly root: Root | null
}

/** `before` is null when the transaction made the account. */
type Root = { readonly account: string; readonly before: Fields | null; readonly after: Fields }

/**
 * What really reached us: the balance that the validated metadata shows, of successful transactions only. Of a payment
 * it has to be what the payment says it delivered, because `Amount` is only what the sender wished
 * (https://xrpl.org/docs/concepts/payment-types/partial-payments). A tag that was never given to anybody, and none at all,
 * is the account itself. What concerns strangers alone is not read: anybody may write there what we do not know.
 */
export async function transfersToOurs(
  transactions: readonly unknown[],
  spelling: Spelling,
  findOurs: FindOurs,
): Promise<readonly Transfer[]> {
  const arrivals = transactions.flatMap((tx) => arrivalsIn(objectIn(tx, 'transaction'), spelling))
  const ours = await findOurs([...new Set(arrivals.flatMap(({ texts }) => texts))])
  return arrivals
    .filter(({ texts }) => texts.some((text) => ours.has(text)))
    .flatMap((arrival) => readArrival(arrival, spelling, ours))
}

function arrivalsIn(tx: Fields, spelling: Spelling): readonly Arrival[] {
  const meta = objectIn(tx.metaData ?? tx.meta, 'transaction metaData')
  if (textIn(meta.TransactionResult, 'transaction TransactionResult') !== 'tesSUCCESS') return []
  const { Destination: named, DestinationTag: tag } = tx
  const roots = changedRoots(meta).filter(({ account }) => account !== tx.Account)
  const root = roots.find(({ account }) => account === named) ?? null
  const others = roots.filter((each) => each !== root)
  const arrivals = others.map((each) => ({
    ...{ tx, meta, account: each.account, texts: [each.account], root: each },
  }))
  if (typeof named !== 'string') return arrivals
  const texts = isTag(tag) ? [textOf({ account: named, tag }, spelling), named] : [named]
  return [{ tx, meta, account: named, texts, root }, ...arrivals]
}

function changedRoots(meta: Fields): readonly Root[] {
  return listIn(meta.AffectedNodes, 'AffectedNodes').flatMap((node) => {
    const { CreatedNode, ModifiedNode } = objectIn(node, 'AffectedNodes')
    const made = isObject(CreatedNode) ? CreatedNode : null
    const changed = made ?? (isObject(ModifiedNode) ? ModifiedNode : null)
    if (changed === null || changed.LedgerEntryType !== 'AccountRoot') return []
    const after = made === null ? changed.FinalFields : changed.NewFields
    const before = made === null ? changed.PreviousFields : null
    // An entry may even come without its fields.
    if (!isObject(after) || before === undefined || (before !== null && !isObject(before))) return []
    // Without a previous balance it has not changed.
    if (before !== null && before.Balance === undefined) return []
    return [{ account: textIn(after.Account, 'Account'), before, after }]
  })
}

/** Strict: of what is ours, what cannot be read is an error and never nothing. */
function readArrival(
  { tx, meta, account, root }: Arrival,
  spelling: Spelling,
  ours: ReadonlySet<string>,
): readonly Transfer[] {
  const txHash = hashIn(tx.hash, 'transaction hash')
  const isNamed = account === tx.Destination
  const tagged = textOf({ account, tag: isNamed ? tagIn(tx.DestinationTag) : null }, spelling)
  const to = ours.has(tagged) ? tagged : account
  // Null: no payment to it, but a check, an escrow, a channel, an account's end, or somebody who took its offer.
  const delivered = isNamed && tx.TransactionType === 'Payment' ? deliveredIn(meta) : null
  const drops = root === null ? 0n : grownDrops(root)
  if (isObject(delivered)) {
    const { name, units } = readToken(delivered)
    const token: Transfer = { id: `${txHash}:token`, txHash, to, asset: { unlisted: name }, units }
    // XRP beside it comes of an offer of the account's own, of which the tag says nothing.
    const payee = ours.has(account) ? account : to
    return drops > 0n ? [coinTransfer(txHash, payee, drops), token] : [token]
  }
  if (drops <= 0n) return []
  const said = delivered === null ? drops : dropsIn(delivered, 'delivered_amount')
  if (said !== drops) throw new NoAnswer('ledger', `${txHash} delivered ${said} drops, and ${drops} arrived`)
  return [coinTransfer(txHash, to, drops)]
}

function coinTransfer(txHash: string, to: string, drops: bigint): Transfer {
  const native: AssetId = nativeAsset('XRP').id
  return { id: `${txHash}:xrp`, txHash, to, asset: native, units: fromChainUnits(native, drops).units }
}

/** What is zero is left out of the fields of a new entry: an account that begins with no XRP is an AMM's. */
function grownDrops({ before, after }: Root): bigint {
  if (before === null) return dropsIn(after.Balance ?? '0', 'Balance')
  return dropsIn(after.Balance, 'Balance') - dropsIn(before.Balance, 'Balance')
}

/** Old ledgers say `unavailable`: they are from before 2014, and nothing of ours is in them. */
function deliveredIn(meta: Fields): unknown {
  return meta.delivered_amount ?? meta.DeliveredAmount
}

function isTag(value: unknown): value is number {
  return Number.isInteger(value) && (value as number) >= 0 && (value as number) <= TAG_MAX
}

function tagIn(value: unknown): number | null {
  if (value !== undefined && !isTag(value)) throw new NoAnswer('ledger', 'a DestinationTag is none')
  return value ?? null
}

const TOKEN_DECIMALS = 15

/**
 * A token's decimal is at most 16 digits and an exponent; below 10^-15 of one it is not recorded. A multi-purpose token has
 * whole units, up to 2^63 - 1 (XLS-33).
 */
function readToken(token: Fields): { readonly name: string; readonly units: bigint } {
  const value = textIn(token.value, 'delivered_amount value')
  if (token.mpt_issuance_id !== undefined) {
    if (!/^\d{1,19}$/.test(value)) throw new NoAnswer('ledger', 'a delivered amount is no whole number')
    return { name: textIn(token.mpt_issuance_id, 'mpt_issuance_id'), units: BigInt(value) }
  }
  const name = `${textIn(token.currency, 'currency')}.${textIn(token.issuer, 'issuer')}`
  const parts = /^(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d{1,3}))?$/.exec(value)
  const [, whole = '', fraction = '', exponent = '0'] = parts ?? []
  if (parts === null) throw new NoAnswer('ledger', 'a delivered amount is no decimal')
  const shift = TOKEN_DECIMALS + Number.parseInt(exponent, 10) - fraction.length
  const digits = BigInt(whole + fraction)
  return { name, units: shift >= 0 ? digits * 10n ** BigInt(shift) : digits / 10n ** BigInt(-shift) }
}
