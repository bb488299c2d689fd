import { CommandRefused } from '../command_refused.ts'
import { type AssetId, assetOf, assets, isAssetId } from '../domain/catalog/assets.ts'
import { parseDecimal } from '../domain/money/decimal.ts'
import { show } from '../engine/books/audit_order.ts'
import {
  type BookedDifference,
  type BooksPlace,
  bookDifference,
  type Word,
} from '../engine/books/book_difference.ts'
import { operatorHere } from './operator_here.ts'
import { readReason } from './read_reason.ts'
import { toJson } from './table.ts'

export type BookOptions = { readonly because: string; readonly json?: boolean }

type World = {
  open(): Promise<BooksPlace & { close(): Promise<void> }>
  print(text: string): void
}

/** `ledger book`: refuses by throwing, and says what was booked. */
export async function book(
  world: World,
  asset: string,
  amount: string,
  { because, json }: BookOptions,
): Promise<void> {
  const word = readWord(asset, amount, because)
  const { close, ...place } = await world.open()
  try {
    const booked = await bookDifference(place, word)
    if (!booked.ok) throw new CommandRefused(booked.rejection.message)
    world.print(json ? toJson(booked.value) : describe(booked.value))
  } finally {
    await close()
  }
}

function readWord(asset: string, amount: string, because: string): Word {
  const id = readAsset(asset)
  const units = readUnits(id, amount)
  return { asset: id, units, because: readReason(because), by: operatorHere() }
}

/** As `ledger audit` names it; of a currency that is on one network alone its code does. */
function readAsset(text: string): AssetId {
  if (isAssetId(text)) return text
  const ofCurrency = assets.filter(({ currency }) => currency === text)
  const [only] = ofCurrency
  if (only !== undefined && ofCurrency.length === 1) return only.id
  const names = (ofCurrency.length > 0 ? ofCurrency : assets).map(({ id }) => id)
  throw new CommandRefused(`${text} is not one of ${names.join(', ')}`)
}

function readUnits(asset: AssetId, text: string): bigint {
  const [, sign = '', size = ''] = /^([+-]?)(.*)$/s.exec(text) ?? []
  const parsed = parseDecimal(size, assetOf(asset).decimals)
  if (!parsed.ok) throw new CommandRefused(`${text}: an amount ${parsed.rejection.message}, with a sign`)
  if (parsed.value === 0n) throw new CommandRefused('0 changes nothing.')
  return sign === '-' ? -parsed.value : parsed.value
}

function describe({ asset, units, height, entryKey, coinsLeft, coinsBack, auditChain }: BookedDifference) {
  const { chain } = assetOf(asset)
  return [
    `Booked ${show(asset, units)} against capital, as ${entryKey}: books and chain agree about it at block ${height}.`,
    ...(coinsLeft > 0 ? [`Coins that are spent and that no outflow of ours spent: ${coinsLeft}`] : []),
    ...(coinsBack > 0 ? [`Coins that were so, and are unspent again: ${coinsBack}`] : []),
    `Outflows of ${chain} go on with the next comparison, unless another asset of it differs.`,
    `It is in the audit log: cambist audit show ${auditChain}`,
  ].join('\n')
}
