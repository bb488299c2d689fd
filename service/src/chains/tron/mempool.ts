import type { FindOurs, Transfer } from '../chain.ts'
import type { Fields } from '../replies.ts'
import { actionOf, directMoves, type Move } from './moves.ts'
import { hashIn, isEmpty, listIn, objectIn, textIn } from './replies.ts'
import type { Rpc } from './rpc.ts'
import { type Listed, transfersToOurs } from './transfers.ts'

/** keccak256("transfer(address,uint256)"), first four bytes; the payee and the units follow. */
const TRANSFER_CALL = /^a9059cbb0{24}([0-9a-f]{40})([0-9a-f]{64})$/

/** Of no listed token there is that much. A call that asks for more waits like any other, and fails. */
const UNITS_MAX = 2n ** 128n

const REMEMBERED = 10_000

/**
 * Each takes a question of its own, and on the main network 150 more a second wait: asked for all of them, a node that is
 * 20 ms away would keep the watcher for 9 s out of every 3. Who is not told of here is told of by the block, 3 s later at most.
 */
const ASKED_A_LOOK = 10

/** Tells what waits, each once, as much as a look can ask for; a plain `transfer` of a listed token will say so in its first log. */
export function mempoolReader(rpc: Rpc, listed: Listed) {
  let told = new Set<string>()
  return async (findOurs: FindOurs, again: ReadonlySet<string> = new Set()): Promise<readonly Transfer[]> => {
    const answer = objectIn(await rpc.get('wallet/gettransactionlistfrompending'), 'pending')
    const hashes = listIn(answer.txId, 'pending txId').map((hash) => hashIn(hash, 'pending txId'))
    const [returning, others] = [
      hashes.filter((hash) => again.has(hash)),
      hashes.filter((hash) => !again.has(hash)),
    ]
    const fresh = [...returning, ...others.filter((hash) => !told.has(hash))].slice(0, ASKED_A_LOOK)
    const moves = await Promise.all(fresh.map((hash) => movesOf(rpc, hash, listed)))
    const transfers = await transfersToOurs(moves.flat(), listed, findOurs)
    told = new Set([...told, ...fresh].slice(-REMEMBERED))
    return transfers
  }
}

async function movesOf(rpc: Rpc, hash: string, { tokens }: Listed): Promise<readonly Move[]> {
  const tx = await readPending(rpc, hash)
  if (tx === null) return []
  const action = actionOf(tx)
  if (action.type !== 'TriggerSmartContract')
    return directMoves(hash, action).filter(({ token }) => token === null)
  const token = textIn(action.value.contract_address, 'contract_address').toLowerCase()
  const [, payee, word] = TRANSFER_CALL.exec(String(action.value.data ?? '')) ?? []
  if (payee === undefined || !tokens.has(token)) return []
  const from = textIn(action.value.owner_address, 'owner_address').toLowerCase()
  const [to, units] = [`41${payee}`, BigInt(`0x${word}`)]
  if (to === from || units === 0n || units > UNITS_MAX) return []
  return [{ id: `${hash}:log:0`, txHash: hash, from, to, token, units: () => units }]
}

/** Null when it does not wait, or no longer. */
export async function readPending(rpc: Rpc, hash: string): Promise<Fields | null> {
  const answer = await rpc.get('wallet/gettransactionfrompending', { value: hash })
  if (isEmpty(answer)) return null
  const tx = objectIn(answer, 'pending transaction')
  return hashIn(tx.txID, 'pending transaction txID') === hash ? tx : null
}
