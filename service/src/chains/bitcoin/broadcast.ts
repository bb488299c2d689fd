import { assert } from '../../domain/assert.ts'
import type { SignedTx } from '../../domain/payouts/intent.ts'
import { bringBackParents } from './bring_back.ts'
import { lookup } from './lookup.ts'
import { NoAnswer, type Rpc, RpcRefusal } from './rpc.ts'

/** rpc/protocol.h: it does not decode; its inputs are missing or spent; the rules or this node's policy forbid it. */
const MALFORMED = -22
const INPUTS_GONE = -25
const FORBIDDEN = -26
const ALREADY_MINED = -27

/** Where its inputs are missing, what it spends is sent once more as well, as far as the node knows that from blocks that lost. */
export async function broadcast(rpc: Rpc, tx: SignedTx): Promise<'accepted' | 'refused' | 'unknown'> {
  const first = await send(rpc, tx)
  if (first !== 'inputs gone') return first
  const known = await refusedUnlessKnown(rpc, tx.txHash)
  if (known !== 'refused' || !(await bringBackParents(rpc, tx.bytes))) return known
  const second = await send(rpc, tx)
  return second === 'inputs gone' ? 'refused' : second
}

async function send(rpc: Rpc, tx: SignedTx): Promise<'accepted' | 'refused' | 'inputs gone' | 'unknown'> {
  const [outcome] = await rpc.batch([['sendrawtransaction', tx.bytes]]).catch(noAnswerAsEmpty)
  if (outcome === undefined) return 'unknown'
  if (outcome.ok) {
    assert(
      outcome.value === tx.txHash,
      `the bytes of ${tx.txHash} are a transaction the node calls ${outcome.value}`,
    )
    return 'accepted'
  }
  switch (outcome.rejection.code) {
    case ALREADY_MINED:
      return 'accepted'
    case INPUTS_GONE:
      return 'inputs gone'
    case FORBIDDEN:
      return refusedUnlessKnown(rpc, tx.txHash)
    case MALFORMED:
      return 'refused'
    default:
      return 'unknown' // warming up, out of memory: a no about the moment, not about the transaction
  }
}

/** A payout mined long ago, its outputs spent since, also has "inputs missing or spent". */
async function refusedUnlessKnown(rpc: Rpc, txHash: string): Promise<'accepted' | 'refused' | 'unknown'> {
  try {
    const status = await lookup(rpc, txHash)
    return status.where === 'absent' ? 'refused' : 'accepted'
  } catch (error) {
    if (error instanceof NoAnswer || error instanceof RpcRefusal) return 'unknown'
    throw error
  }
}

function noAnswerAsEmpty(error: unknown): readonly [] {
  if (error instanceof NoAnswer) return []
  throw error
}
