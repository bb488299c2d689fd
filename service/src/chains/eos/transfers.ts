import { ABIDecoder, Name, Serializer } from '@wharfkit/antelope'
import { nativeAsset } from '../../domain/catalog/assets.ts'
import { fromChainUnits } from '../../domain/money/amount.ts'
import { EOS_TOKEN_CONTRACT } from '../../domain/payouts/eos_transfer.ts'
import type { FindOurs, Transfer } from '../chain.ts'
import { textOf } from './address.ts'
import type { Call, EosBlock } from './blocks.ts'
import { codeOf, EOS_SYMBOL } from './transfer_action.ts'

/** A name as the chain writes it, in hex. */
export function hexOfName(name: string): string {
  return Serializer.encode({ object: Name.from(name) }).hexString
}

function nameOfHex(hex: string): string {
  return String(Name.fromABI(new ABIDecoder(Buffer.from(hex, 'hex'))))
}

/**
 * What reached accounts of ours, by what `eosio.token` did when it ran itself: called by a transaction or by another contract,
 * that is all one. Which are ours say the addresses that were given out, and no setting, which may have been another then. Whose
 * it is says a memo that is exactly the number; with any other, and with none, it is the account's. Tokens
 * of other contracts are told as what they are, and any contract may say anything.
 */
export async function transfersToOurs(
  { transactions }: EosBlock,
  findOurs: FindOurs,
): Promise<readonly Transfer[]> {
  const arrivals = transactions.flatMap(({ id, calls }) => calls.flatMap((call) => arrivalOf(id, call)))
  if (arrivals.length === 0) return []
  const ours = await findOurs([...new Set(arrivals.flatMap(({ texts }) => texts))])
  return arrivals.flatMap(({ txHash, call, texts }): Transfer[] => {
    const to = texts.find((text) => ours.has(text))
    return to === undefined ? [] : [{ id: call.sequence, txHash, to, ...amountIn(call) }]
  })
}

type Arrival = {
  readonly txHash: string
  readonly call: Call
  /** Whom it may be for, as our table of addresses may have it: with the number in its memo, and without. */
  readonly texts: readonly string[]
}

function arrivalOf(txHash: string, call: Call): readonly Arrival[] {
  const { from, to, units, memo } = call.transfer
  if (units <= 0n || from === to) return []
  const account = nameOfHex(to)
  return [{ txHash, call, texts: [namedBy(account, memo), account] }]
}

function amountIn({ contract, transfer: { symbol, units } }: Call): Pick<Transfer, 'asset' | 'units'> {
  if (!isEos(contract, symbol)) return { asset: { unlisted: `${codeOf(symbol)}@${contract}` }, units }
  const asset = nativeAsset('EOS').id
  return { asset, units: fromChainUnits(asset, units).units }
}

function isEos(contract: string, symbol: string): boolean {
  return contract === EOS_TOKEN_CONTRACT && symbol === EOS_SYMBOL
}

/** A number is written in one way only; a note in words says nothing about whom the money is for. */
function namedBy(account: string, memo: string): string {
  return /^(0|[1-9]\d{0,9})$/.test(memo) ? textOf({ account, memo }) : account
}

/** By how much a block changed what these accounts hold of EOS; names in hex. */
export function movedIn({ transactions }: EosBlock, holders: ReadonlySet<string>): bigint {
  let sum = 0n
  for (const { contract, transfer } of transactions.flatMap(({ calls }) => calls)) {
    if (!isEos(contract, transfer.symbol)) continue
    if (holders.has(transfer.to)) sum += transfer.units
    if (holders.has(transfer.from)) sum -= transfer.units
  }
  return sum
}
