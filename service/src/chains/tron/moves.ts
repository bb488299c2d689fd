import { type Fields, isObject } from '../replies.ts'
import { addressIn, hashIn, integerIn, listIn, objectIn, strangeUnitsIn, sunIn, textIn } from './replies.ts'
import { NoAnswer } from './rpc.ts'

/** What a transaction moved, as its block says. Addresses in hex. */
export type Move = {
  readonly id: string
  readonly txHash: string
  readonly from: string
  readonly to: string
  /** The token's contract in hex, `TRC10.<number>` for a token without a contract, null for TRX. */
  readonly token: string | null
  /** Read only where it matters, because a stranger may move more than a JSON number can say. */
  readonly units: () => bigint
}

/** What a transaction took from its sender beside what it moved, also when it failed. Null: a shielded one names nobody. */
export type Cost = { readonly owner: string | null; readonly sun: bigint }

export type Moves = { readonly moves: readonly Move[]; readonly costs: readonly Cost[] }

/** keccak256("Transfer(address,address,uint256)"), https://eips.ethereum.org/EIPS/eip-20 */
const TRANSFER_TOPIC = 'ddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef'

/** `infos` are those of `transactions`, in the same order. */
export function readMoves(transactions: readonly unknown[], infos: readonly unknown[]): Moves {
  if (transactions.length !== infos.length) throw new NoAnswer('block', 'the results are not its own')
  const found = transactions.map((transaction, index) =>
    readTransaction(objectIn(transaction, 'transaction'), objectIn(infos[index], 'transaction info')),
  )
  return { moves: found.flatMap(({ moves }) => moves), costs: found.map(({ cost }) => cost) }
}

function readTransaction(tx: Fields, info: Fields): { readonly moves: readonly Move[]; readonly cost: Cost } {
  const txHash = hashIn(tx.txID, 'transaction txID')
  if (hashIn(info.id, 'transaction info id') !== txHash)
    throw new NoAnswer('block', 'the results are not its own')
  const action = actionOf(tx)
  const cost = {
    owner: ownerOf(action),
    sun: sunIn(info.fee, 'transaction info fee'),
  }
  if (!hasSucceeded(tx, info)) return { moves: [], cost }
  return {
    moves: [...directMoves(txHash, action), ...callMoves(txHash, info), ...logMoves(txHash, info)],
    cost,
  }
}

/** Both have to say so: what the block says became of it, and what its receipt says. */
export function hasSucceeded(tx: Fields, info: Fields): boolean {
  const [ret] = listIn(tx.ret, 'transaction ret')
  const receipt = isObject(info.receipt) ? info.receipt : {}
  const isRun = receipt.result === undefined || receipt.result === 'SUCCESS'
  return isObject(ret) && ret.contractRet === 'SUCCESS' && info.result !== 'FAILED' && isRun
}

/**
 * What a call may take, we say, and how long it may, its witness. A coin takes neither, and a listed token runs nothing of whom it
 * pays: an emptied balance is what a payee adds at most, and fee limits have room for it.
 * https://github.com/tronprotocol/java-tron, Tron.proto, contractResult
 */
const OUR_FAULTS: ReadonlySet<unknown> = new Set(['OUT_OF_ENERGY', 'OUT_OF_TIME'])

export function isOurFault(tx: Fields): boolean {
  const [ret] = listIn(tx.ret, 'transaction ret')
  return isObject(ret) && OUR_FAULTS.has(ret.contractRet)
}

type Action = { readonly type: string; readonly value: Fields }

export function actionOf(tx: Fields): Action {
  const [contract] = listIn(objectIn(tx.raw_data, 'transaction raw_data').contract, 'raw_data contract')
  const { type, parameter } = objectIn(contract, 'raw_data contract')
  const { value } = objectIn(parameter, 'contract parameter')
  return { type: textIn(type, 'contract type'), value: objectIn(value, 'contract value') }
}

/** A `ShieldedTransferContract` has none, and every other contract one (java-tron, protocol/core/contract). */
function ownerOf({ value }: Action): string | null {
  return value.owner_address === undefined ? null : addressIn(value.owner_address, 'owner_address')
}

/** What the transaction itself moves; a TRC-10 token is one of TRON's own, without a contract, whatever it is named. */
export function directMoves(txHash: string, { type, value }: Action): readonly Move[] {
  const units = (name: string) => () => sunIn(value[name], name)
  switch (type) {
    case 'TransferContract': {
      const from = addressIn(value.owner_address, 'owner_address')
      const to = addressIn(value.to_address, 'to_address')
      return [{ id: `${txHash}:trx`, txHash, from, to, token: null, units: units('amount') }]
    }
    case 'TransferAssetContract': {
      const from = addressIn(value.owner_address, 'owner_address')
      const to = addressIn(value.to_address, 'to_address')
      const token = `TRC10.${Buffer.from(textIn(value.asset_name, 'asset_name'), 'hex').toString()}`
      const strange = () => strangeUnitsIn(value.amount, 'amount')
      return [{ id: `${txHash}:trc10`, txHash, from, to, token, units: strange }]
    }
    case 'TriggerSmartContract': {
      const from = addressIn(value.owner_address, 'owner_address')
      const to = addressIn(value.contract_address, 'contract_address')
      if (value.call_value === undefined) return []
      return [{ id: `${txHash}:value`, txHash, from, to, token: null, units: units('call_value') }]
    }
    default:
      return []
  }
}

const hexOfText = (text: string) => Buffer.from(text).toString('hex')

/**
 * What a node calls the internal transactions that move TRX to whom they name. Every other one freezes, delegates or votes, or
 * brings back a contract's own to itself; `withdrawExpireUnfreezeWhileSuiciding` is in the amount of its `suicide` already.
 * One that is not known is no proof of money. https://github.com/tronprotocol/java-tron, Program.java
 */
const MOVING_NOTES: ReadonlySet<unknown> = new Set(['call', 'create', 'suicide'].map(hexOfText))

/** TRX that a contract sent on; `rejected` ones were undone together with the call that they were in. */
function callMoves(txHash: string, info: Fields): readonly Move[] {
  return listIn(info.internal_transactions, 'internal_transactions').flatMap((call, index): Move[] => {
    const inner = objectIn(call, 'internal call')
    if (inner.rejected === true || !MOVING_NOTES.has(inner.note)) return []
    const { caller_address, transferTo_address, callValueInfo } = inner
    return listIn(callValueInfo, 'callValueInfo').flatMap((part): Move[] => {
      const { callValue, tokenId } = objectIn(part, 'callValueInfo')
      if (callValue === undefined || callValue === 0 || tokenId !== undefined) return []
      const [from, to] = [
        addressIn(caller_address, 'caller_address'),
        addressIn(transferTo_address, 'transferTo_address'),
      ]
      const units = () => sunIn(callValue, 'callValue')
      return [{ id: `${txHash}:call:${index}`, txHash, from, to, token: null, units }]
    })
  })
}

/** What contracts say in an ERC-20 Transfer event; any contract may say anything. An NFT's has a fourth topic. */
export function logMoves(txHash: string, info: Fields): readonly Move[] {
  return listIn(info.log, 'log').flatMap((log, ordinal): Move[] => {
    const { address, topics, data } = objectIn(log, 'log')
    const words = listIn(topics, 'log topics')
    const [topic, from, to] = words
    if (topic !== TRANSFER_TOPIC || words.length !== 3 || typeof data !== 'string') return []
    if (!/^[0-9a-f]{64}$/.test(data) || /^0*$/.test(data)) return []
    const ends = [addressOfWord(from), addressOfWord(to)]
    const [sender, payee] = ends
    if (sender == null || payee == null || sender === payee) return []
    const token = `41${textIn(address, 'log address')}`.slice(-42).toLowerCase()
    const units = () => BigInt(`0x${data}`)
    return [{ id: `${txHash}:log:${ordinal}`, txHash, from: sender, to: payee, token, units }]
  })
}

function addressOfWord(word: unknown): string | null {
  return typeof word === 'string' && /^0{24}[0-9a-f]{40}$/.test(word) ? `41${word.slice(24)}` : null
}

/** The height that a block's id begins with. */
export function heightOfId(id: string): number {
  return Number.parseInt(id.slice(0, 16), 16)
}

/** What a header says of itself: height and time are left out of the first block. */
export function readHeader(block: Fields) {
  const raw = objectIn(objectIn(block.block_header, 'block_header').raw_data, 'block_header raw_data')
  const hash = hashIn(block.blockID, 'block blockID')
  const height = integerIn(raw.number, 'block number')
  if (heightOfId(hash) !== height) throw new NoAnswer('block', 'its id is of another height')
  return {
    height,
    hash,
    parentHash: hashIn(raw.parentHash, 'block parentHash'),
    timeMs: integerIn(raw.timestamp, 'block timestamp'),
  }
}
