import { Asset, extractBaseAddress } from '@stellar/stellar-sdk/base'
import { accountKey, dataKey, parseAmount, readAccount, readTrustLine, trustLineKey } from './entries.ts'
import { give, own, take } from './holdings.ts'
import { type Deal, type Fixed, isNewOffer, makeOffer, trade } from './offers.ts'
import type { Of, Scene } from './operation.ts'
import { reserveOf } from './reserves.ts'
import type { Done, KnownType } from './results.ts'

type Rule<Type extends KnownType> = {
  /** Whether it can be right at all, whatever the ledger says. */
  check(operation: Of<Type>, source: string): boolean
  /** Its changes count only with `op_success`. */
  act(operation: Of<Type>, scene: Scene): Done
}

/** https://developers.stellar.org/docs/learn/fundamentals/transactions/list-of-operations */
export const RULES: { readonly [Type in KnownType]: Rule<Type> } = {
  createAccount: {
    check: ({ startingBalance, destination }, source) =>
      parseAmount(startingBalance) >= 0n && destination !== source,
    act: createAccount,
  },
  payment: {
    check: ({ amount }) => parseAmount(amount) > 0n,
    act: ({ asset, amount, destination }, scene) => ({
      code: pay(scene, extractBaseAddress(destination), asset, parseAmount(amount)),
    }),
  },
  pathPaymentStrictSend: {
    check: ({ sendAmount, destMin }) => parseAmount(sendAmount) > 0n && parseAmount(destMin) > 0n,
    act: payThrough,
  },
  pathPaymentStrictReceive: {
    check: ({ sendMax, destAmount }) => parseAmount(sendMax) > 0n && parseAmount(destAmount) > 0n,
    act: payThrough,
  },
  manageSellOffer: { check: isNewOffer, act: makeOffer },
  changeTrust: {
    check: ({ line, limit }, source) =>
      'issuer' in line && !line.isNative() && line.issuer !== source && parseAmount(limit) >= 0n,
    act: changeTrust,
  },
  accountMerge: {
    check: ({ destination }, source) => extractBaseAddress(destination) !== source,
    act: mergeAccount,
  },
  manageData: { check: ({ name }) => name.length > 0, act: manageData },
  bumpSequence: { check: ({ bumpTo }) => BigInt(bumpTo) >= 0n, act: bumpSequence },
}

const SUCCESS: Done = { code: 'op_success' }

function createAccount({ destination, startingBalance }: Of<'createAccount'>, scene: Scene): Done {
  const { draft, height } = scene
  const balance = parseAmount(startingBalance)
  if (readAccount(draft, destination) !== undefined) return { code: 'op_already_exists' }
  if (balance < reserveOf(0)) return { code: 'op_low_reserve' }
  const code = take(draft, scene.source, Asset.native(), balance)
  if (code !== undefined) return { code }
  draft.set(accountKey(destination), {
    type: 'account',
    id: destination,
    balance,
    // An account that was merged and comes back must not repeat its old transactions.
    sequence: BigInt(height) << 32n,
    sequenceLedger: height,
    subentries: 0,
    ledger: height,
  })
  return SUCCESS
}

function pay(scene: Scene, destination: string, asset: Asset, units: bigint): string {
  const { draft, source } = scene
  if (readAccount(draft, destination) === undefined) return 'op_no_destination'
  if (asset.isNative() && destination === source) return 'op_success'
  return give(draft, destination, asset, units) ?? take(draft, source, asset, units) ?? 'op_success'
}

type PathPayment = Of<'pathPaymentStrictSend' | 'pathPaymentStrictReceive'>

function payThrough(operation: PathPayment, scene: Scene): Done {
  const { sendAsset, destAsset, path } = operation
  const { draft, source } = scene
  const destination = extractBaseAddress(operation.destination)
  if (readAccount(draft, destination) === undefined) return { code: 'op_no_destination' }
  const isOneWay = path.every((asset) => asset.equals(sendAsset) || asset.equals(destAsset))
  if (!isOneWay) return { code: 'op_too_few_offers' }
  const isSend = operation.type === 'pathPaymentStrictSend'
  const sides = { source, selling: destAsset, buying: sendAsset }
  const fixed = isSend
    ? { spend: parseAmount(operation.sendAmount) }
    : { receive: parseAmount(operation.destAmount) }
  const deal = sendAsset.equals(destAsset) ? sameAsset(fixed) : trade(draft, sides, fixed)
  if ('code' in deal) return deal
  const { spent, received, claims } = deal
  if (isSend && received < parseAmount(operation.destMin)) return { code: 'op_under_dest_min' }
  if (!isSend && spent > parseAmount(operation.sendMax)) return { code: 'op_over_source_max' }
  const wrong = give(draft, destination, destAsset, received) ?? take(draft, source, sendAsset, spent)
  return { code: wrong ?? 'op_success', received, spent, claims }
}

function sameAsset(fixed: Fixed): Deal {
  const units = 'spend' in fixed ? fixed.spend : fixed.receive
  return { spent: units, received: units, claims: [] }
}

function changeTrust({ line, limit }: Of<'changeTrust'>, { draft, source, height }: Scene): Done {
  const asset = line as Asset
  const key = trustLineKey(source, asset)
  const old = readTrustLine(draft, source, asset)
  const units = parseAmount(limit)
  if (units < (old?.balance ?? 0n) || (old === undefined && units === 0n)) return { code: 'op_invalid_limit' }
  if (readAccount(draft, asset.issuer ?? '') === undefined) return { code: 'op_no_issuer' }
  if (units === 0n) {
    draft.delete(key)
    own(draft, source, -1)
    return SUCCESS
  }
  if (old === undefined && !own(draft, source, 1)) return { code: 'op_low_reserve' }
  const { code, issuer = '' } = asset
  const balance = old?.balance ?? 0n
  draft.set(key, { type: 'trustline', account: source, code, issuer, balance, limit: units, ledger: height })
  return SUCCESS
}

function mergeAccount({ destination }: Of<'accountMerge'>, scene: Scene): Done {
  const { draft, source, height } = scene
  const account = readAccount(draft, source)
  const into = extractBaseAddress(destination)
  if (account === undefined || readAccount(draft, into) === undefined) return { code: 'op_no_account' }
  if (account.subentries > 0) return { code: 'op_has_sub_entries' }
  if (account.sequence >= BigInt(height) << 32n) return { code: 'op_seq_num_too_far' }
  draft.delete(accountKey(source))
  const native = readAccount(draft, into)
  if (native !== undefined)
    draft.set(accountKey(into), { ...native, balance: native.balance + account.balance })
  return { code: 'op_success', merged: account.balance }
}

function manageData({ name, value }: Of<'manageData'>, { draft, source, height }: Scene): Done {
  const key = dataKey(source, name)
  const old = draft.get(key)
  if (value === undefined) {
    if (old === undefined) return { code: 'op_data_name_not_found' }
    draft.delete(key)
    own(draft, source, -1)
    return SUCCESS
  }
  if (old === undefined && !own(draft, source, 1)) return { code: 'op_low_reserve' }
  const text = Buffer.from(value).toString('base64')
  draft.set(key, { type: 'data', account: source, name, value: text, ledger: height })
  return SUCCESS
}

function bumpSequence({ bumpTo }: Of<'bumpSequence'>, { draft, source, height }: Scene): Done {
  const account = readAccount(draft, source)
  const sequence = BigInt(bumpTo)
  if (account !== undefined && sequence > account.sequence)
    draft.set(accountKey(source), { ...account, sequence, sequenceLedger: height })
  return SUCCESS
}
