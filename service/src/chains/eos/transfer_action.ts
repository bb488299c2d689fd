import { EOS_MEMO_BYTES_MAX } from '../../domain/payouts/eos_transfer.ts'

/** What a call of a token contract's `transfer` says. Names in hex, as the chain writes them. */
export type TransferAction = {
  readonly from: string
  readonly to: string
  /** In the smallest unit of the token. */
  readonly units: bigint
  /** Eight bytes in hex: the decimals, and the code. */
  readonly symbol: string
  /** '' when it is longer than the token contract takes: it names nobody. */
  readonly memo: string
}

/** `4,EOS` */
export const EOS_SYMBOL = '04454f5300000000'

/**
 * Decoded here and not by the library: that gives up on memos that are no UTF-8, which anybody may send, and the money
 * arrives all the same. Null: this is not what a `transfer` looks like. What follows the memo the contract does not read.
 * Nothing in the answer is a piece of the text that was given, which would be kept with it.
 * https://github.com/AntelopeIO/reference-contracts/blob/main/contracts/eosio.token/include/eosio.token/eosio.token.hpp
 */
export function readTransfer(data: string): TransferAction | null {
  if (!/^(?:[0-9a-f]{2}){33,}$/.test(data)) return null
  const bytes = Buffer.from(data, 'hex')
  const memo = readText(bytes, 32)
  if (memo === null) return null
  return {
    from: bytes.toString('hex', 0, 8),
    to: bytes.toString('hex', 8, 16),
    units: bytes.readBigInt64LE(16),
    symbol: bytes.toString('hex', 24, 32),
    memo,
  }
}

/**
 * Its length comes first, in groups of seven bits, the lowest first. Anybody may write it in more bytes than it takes, and the contract
 * keeps 32 bits of what they come to (`<<` counts modulo 32, there as here): what is paid arrives all the same.
 * https://github.com/AntelopeIO/cdt/blob/main/libraries/eosiolib/core/eosio/varint.hpp
 */
function readText(bytes: Buffer, from: number): string | null {
  let length = 0
  for (let at = from, shift = 0; at < bytes.length; shift += 7) {
    const byte = bytes.readUInt8(at)
    at += 1
    length = (length | ((byte & 0x7f) << shift)) >>> 0
    if (byte >= 0x80) continue
    if (at + length > bytes.length) return null
    return length > EOS_MEMO_BYTES_MAX ? '' : bytes.toString('utf8', at, at + length)
  }
  return null
}

/** `USDT` of `0455534454000000`; what is none is told as it stands. */
export function codeOf(symbol: string): string {
  const code = Buffer.from(symbol.slice(2), 'hex').toString('latin1').replace(/\0+$/, '')
  return /^[A-Z]{1,7}$/.test(code) ? code : symbol
}
