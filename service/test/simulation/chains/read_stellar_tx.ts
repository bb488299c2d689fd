import { createHash } from 'node:crypto'
import { type Memo, StrKey, Transaction } from '@stellar/stellar-sdk/base'
import { readPlace } from '../../../src/chains/stellar/address.ts'
import type { DatedTx } from './dated_node.ts'

/** Signatures are over it. */
export const PASSPHRASE = 'Standalone Network ; February 2017'
/** Sequences of an account begin at the ledger that made it, times 2^32; this node counts from nought. */
export const SEQUENCE_BASE = 2n ** 32n

/** A payment of lumens, or the account that it makes, or what only uses up a sequence. */
export function readStellarTx(bytes: string): DatedTx | null {
  try {
    const tx = new Transaction(Buffer.from(bytes, 'hex').toString('base64'), PASSPHRASE)
    const lastS = Number(tx.timeBounds?.maxTime)
    return {
      txHash: Buffer.from(tx.hash()).toString('hex'),
      from: tx.source,
      sequence: Number(BigInt(tx.sequence) - SEQUENCE_BASE) - 1,
      payment: paymentIn(tx),
      fee: BigInt(tx.fee),
      isInTime: ({ timeMs }) => Math.floor(timeMs / 1_000) <= lastS,
    }
  } catch {
    return null // the library throws on whatever is no transaction
  }
}

function paymentIn({ operations: [action], memo }: Transaction): DatedTx['payment'] {
  if (action?.type === 'bumpSequence') return null
  if (action?.type !== 'createAccount' && action?.type !== 'payment')
    throw new Error('nothing else is ever sent')
  const { destination: to } = action
  const creates = action.type === 'createAccount'
  const amount = action.type === 'createAccount' ? action.startingBalance : action.amount
  return { to, tag: tagOf(to, memo), units: stroopsOf(amount), creates }
}

/** Whoever shares an account tells an id, a text and a muxed address apart: `id 7`, `text 7`, `muxed 7`. */
function tagOf(to: string, { type, value }: Memo): string | null {
  const id = readPlace(to)?.id ?? null
  const said = [
    ...(id === null ? [] : [`muxed ${id}`]),
    ...(type === 'none'
      ? []
      : [`${type} ${typeof value === 'string' ? value : Buffer.from(value ?? []).toString()}`]),
  ]
  return said.length === 0 ? null : said.join(' and ')
}

/** The library writes all seven decimals. */
function stroopsOf(amount: string): bigint {
  return BigInt(amount.replace('.', ''))
}

/** The account of a person outside, whose key nobody has. */
export function stellarAddress(of: string): string {
  return StrKey.encodeEd25519PublicKey(createHash('sha256').update(of).digest())
}
