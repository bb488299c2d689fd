import { createHash } from 'node:crypto'
import { classicAddressToXAddress, encodeAccountID } from 'ripple-address-codec'
import { decode } from 'ripple-binary-codec'
import { base58Of } from '../../../src/chains/tron/address.ts'
import type { DatedTx } from './dated_node.ts'

/** A payment of XRP, or what only uses up a sequence; signed by whom it names. */
export function readXrpTx(bytes: string): DatedTx | null {
  try {
    const tx = decode(bytes) as Record<string, unknown>
    const last = Number(tx.LastLedgerSequence)
    const pays = tx.TransactionType === 'Payment'
    return {
      txHash: sha512Half(`54584E00${bytes}`),
      from: String(tx.Account),
      sequence: Number(tx.Sequence),
      payment: pays ? { to: placeOf(tx), tag: tagOf(tx), units: BigInt(String(tx.Amount)) } : null,
      fee: BigInt(String(tx.Fee)),
      isInTime: ({ height }) => height <= last,
    }
  } catch {
    return null // the library throws on whatever is no transaction
  }
}

/** As the chain spells it: with a tag, the X-address. */
function placeOf({ Destination, DestinationTag }: Record<string, unknown>): string {
  if (DestinationTag === undefined) return String(Destination)
  return classicAddressToXAddress(String(Destination), Number(DestinationTag), false)
}

function tagOf({ DestinationTag }: Record<string, unknown>): string | null {
  return DestinationTag === undefined ? null : String(DestinationTag)
}

function sha512Half(hex: string): string {
  return createHash('sha512').update(Buffer.from(hex, 'hex')).digest('hex').slice(0, 64).toUpperCase()
}

/** What a transfer of TRX costs here. */
export const TRX_FEE = 268_000n

/** A transfer of TRX: https://github.com/tronprotocol/protocol, core/Tron.proto, Transaction */
export function readTronTx(bytes: string): DatedTx | null {
  const raw = fieldsOf(Buffer.from(bytes, 'hex')).get(1)
  if (!(raw instanceof Uint8Array)) return null
  const outer = fieldsOf(raw)
  const [untilMs, contract] = [outer.get(8), outer.get(11)]
  if (typeof untilMs !== 'bigint' || !(contract instanceof Uint8Array)) return null
  const parameter = fieldsOf(contract).get(2)
  const value = parameter instanceof Uint8Array ? fieldsOf(parameter).get(2) : undefined
  const transfer = value instanceof Uint8Array ? fieldsOf(value) : new Map<number, Field>()
  const [from, to, units] = [1, 2, 3].map((field) => transfer.get(field))
  if (!(from instanceof Uint8Array) || !(to instanceof Uint8Array) || typeof units !== 'bigint') return null
  const addressOf = (address: Uint8Array) => base58Of(Buffer.from(address).toString('hex'))
  return {
    txHash: createHash('sha256').update(raw).digest('hex'),
    from: addressOf(from),
    sequence: null,
    payment: { to: addressOf(to), tag: null, units },
    fee: TRX_FEE,
    isInTime: ({ parentTimeMs }) => parentTimeMs < untilMs,
  }
}

type Field = bigint | Uint8Array

/** The last of each field of a protobuf message; only the kinds that a transfer has. */
function fieldsOf(message: Uint8Array): Map<number, Field> {
  const fields = new Map<number, Field>()
  for (let at = 0; at < message.length; ) {
    const [tag, afterTag] = varintAt(message, at)
    const [number, afterNumber] = varintAt(message, afterTag)
    const isBytes = (tag & 7n) === 2n
    at = isBytes ? afterNumber + Number(number) : afterNumber
    fields.set(Number(tag >> 3n), isBytes ? message.subarray(afterNumber, at) : number)
  }
  return fields
}

function varintAt(message: Uint8Array, start: number): readonly [bigint, number] {
  let value = 0n
  for (let at = start; at < message.length; at += 1) {
    const byte = message[at] ?? 0
    value |= BigInt(byte & 0x7f) << BigInt(7 * (at - start))
    if (byte < 0x80) return [value, at + 1]
  }
  return [value, message.length]
}

/** Addresses of people outside, whose keys nobody has. */
export function xrpAddress(of: string): string {
  return encodeAccountID(digest(of))
}

export function tronAddress(of: string): string {
  return base58Of(`41${Buffer.from(digest(of)).toString('hex')}`)
}

function digest(of: string): Uint8Array {
  return createHash('sha256').update(of).digest().subarray(0, 20)
}
