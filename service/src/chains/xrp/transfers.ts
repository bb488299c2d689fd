import { type AssetId, nativeAsset } from '../../domain/catalog/assets.ts'
import { fromChainUnits } from '../../domain/money/amount.ts'
import type { FindOurs, Transfer } from '../chain.ts'
import { type Place, type Spelling, textOf } from './address.ts'
import { dropsIn, hashIn, integerIn, listIn, objectIn, textIn } from './replies.ts'
import { type Fields, isObject, NoAnswer } from './rpc.ts'

/** XRP that an account has more of after a transaction than before. */
type Credit = {
  readonly txHash: string
  readonly place: Place
  readonly drops: bigint
  /** What a payment says that it delivered. Null: no payment, but a check, an escrow, a channel or an account's end. */
  readonly delivered: bigint | null
}

/** A payment of something else than XRP, delivered to an account. */
type Foreign = {
  readonly txHash: string
  readonly place: Place
  readonly name: string
  readonly units: bigint
}

/**
 * What really reached us: the balance that the validated metadata shows, of successful transactions only. Of a payment
 * it has to be what the payment says it delivered, because `Amount` is only what the sender wished
 * (https://xrpl.org/docs/concepts/payment-types/partial-payments). A tag that was never given to anybody, and none at all,
 * is the account itself.
 */
export async function transfersToOurs(
  transactions: readonly unknown[],
  spelling: Spelling,
  findOurs: FindOurs,
): Promise<readonly Transfer[]> {
  const found = transactions.map((transaction) => readTransaction(objectIn(transaction, 'transaction')))
  const credits = found.flatMap(({ credits }) => credits)
  const foreign = found.flatMap(({ foreign }) => foreign)
  const texts = [...credits, ...foreign].flatMap(({ place }) => [textOf(place, spelling), place.account])
  const ours = await findOurs([...new Set(texts)])
  const nameOf = (place: Place) => [textOf(place, spelling), place.account].find((text) => ours.has(text))
  const native: AssetId = nativeAsset('XRP').id
  return [
    ...credits.flatMap(({ txHash, place, drops, delivered }): Transfer[] => {
      const to = nameOf(place)
      if (to === undefined) return []
      if (delivered !== null && delivered !== drops)
        throw new NoAnswer('ledger', `${txHash} delivered ${delivered} drops, and ${drops} arrived`)
      return [{ id: `${txHash}:xrp`, txHash, to, asset: native, units: fromChainUnits(native, drops).units }]
    }),
    ...foreign.flatMap(({ txHash, place, name, units }): Transfer[] => {
      const to = nameOf(place)
      return to === undefined ? [] : [{ id: `${txHash}:token`, txHash, to, asset: { unlisted: name }, units }]
    }),
  ]
}

function readTransaction(tx: Fields): { readonly credits: Credit[]; readonly foreign: Foreign[] } {
  const meta = objectIn(tx.metaData ?? tx.meta, 'transaction metaData')
  if (textIn(meta.TransactionResult, 'transaction TransactionResult') !== 'tesSUCCESS')
    return { credits: [], foreign: [] }
  const txHash = hashIn(tx.hash, 'transaction hash')
  const named = { account: tx.Destination, tag: tagIn(tx.DestinationTag) }
  const isPayment = tx.TransactionType === 'Payment'
  const credits = grownAccounts(meta).flatMap(({ account, drops }): Credit[] => {
    if (account === tx.Account) return []
    const isNamed = account === named.account
    const delivered = isPayment && isNamed ? deliveredDrops(meta) : null
    return [{ txHash, place: { account, tag: isNamed ? named.tag : null }, drops, delivered }]
  })
  const token = isPayment && typeof named.account === 'string' ? meta.delivered_amount : undefined
  if (!isObject(token) || typeof named.account !== 'string') return { credits, foreign: [] }
  const place = { account: named.account, tag: named.tag }
  return { credits, foreign: [{ txHash, place, ...readToken(token) }] }
}

function grownAccounts(meta: Fields): { readonly account: string; readonly drops: bigint }[] {
  return listIn(meta.AffectedNodes, 'AffectedNodes').flatMap((node) => {
    const { CreatedNode, ModifiedNode } = objectIn(node, 'AffectedNodes')
    const made = isObject(CreatedNode) ? CreatedNode : null
    const changed = made ?? (isObject(ModifiedNode) ? ModifiedNode : null)
    if (changed === null || changed.LedgerEntryType !== 'AccountRoot') return []
    const after = made === null ? changed.FinalFields : changed.NewFields
    const before = made === null ? changed.PreviousFields : { Balance: '0' }
    // Without a previous balance it has not changed; an entry may even come without its fields.
    if (!isObject(after) || !isObject(before) || before.Balance === undefined) return []
    const drops = dropsIn(after.Balance, 'Balance') - dropsIn(before.Balance, 'Balance')
    return drops > 0n ? [{ account: textIn(after.Account, 'Account'), drops }] : []
  })
}

/** Old ledgers say `unavailable`: they are from before 2014, and nothing of ours is in them. */
function deliveredDrops(meta: Fields): bigint {
  return dropsIn(meta.delivered_amount ?? meta.DeliveredAmount, 'delivered_amount')
}

function tagIn(value: unknown): number | null {
  return value === undefined ? null : integerIn(value, 'DestinationTag')
}

const TOKEN_DECIMALS = 15

/** A token's decimal is at most 16 digits and an exponent; below 10^-15 of one it is not recorded. */
function readToken(token: Fields): { readonly name: string; readonly units: bigint } {
  if (token.mpt_issuance_id !== undefined) {
    const units = BigInt(integerIn(token.value, 'delivered_amount value'))
    return { name: textIn(token.mpt_issuance_id, 'mpt_issuance_id'), units }
  }
  const name = `${textIn(token.currency, 'currency')}.${textIn(token.issuer, 'issuer')}`
  const parts = /^(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d{1,3}))?$/.exec(
    textIn(token.value, 'delivered_amount value'),
  )
  const [, whole = '', fraction = '', exponent = '0'] = parts ?? []
  if (parts === null) throw new NoAnswer('ledger', 'a delivered amount is no decimal')
  const shift = TOKEN_DECIMALS + Number.parseInt(exponent, 10) - fraction.length
  const digits = BigInt(whole + fraction)
  return { name, units: shift >= 0 ? digits * 10n ** BigInt(shift) : digits / 10n ** BigInt(-shift) }
}
