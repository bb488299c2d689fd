import { CutLine } from '../simulated/server.ts'
import { draftOn } from '../simulated/state.ts'
import { parseAddress } from './addresses.ts'
import { rawJson, transactionJson } from './answers.ts'
import { type Answer, type Asked, CommandError, hexIn, messageHex, type TronNode } from './command.ts'
import { fromWire, type TronTransaction, transactionOf } from './decode_transaction.ts'
import { BLOCK_STEP_MS } from './rules.ts'
import { runTransaction } from './run_transaction.ts'
import { Refused } from './transfers.ts'

/** https://developers.tron.network/reference/broadcasttransaction */
export function broadcastTransaction({ node, params }: Asked): Answer {
  return reply(node, () => readJson(params))
}

export function broadcastHex({ node, params }: Asked): Answer {
  const tx = fromWire(hexIn(params, 'transaction'))
  const { code = 'SUCCESS', message = '', ...answer } = reply(node, () => tx)
  return {
    ...answer,
    code,
    message: unhex(String(message)),
    transaction: JSON.stringify(transactionJson(tx)),
  }
}

function unhex(hex: string): string {
  return Buffer.from(hex, 'hex').toString()
}

type Json = Record<string, unknown>

/** The readable form has to say what the bytes say: a node makes its own bytes of it, and the signature would be of others. */
function readJson({ raw_data, raw_data_hex, signature }: Json): TronTransaction {
  if (typeof raw_data_hex !== 'string' || !/^([0-9a-f]{2})+$/i.test(raw_data_hex))
    throw new CommandError('org.tron.json.JSONException', 'raw_data_hex is not there')
  const tx = transactionOf(raw_data_hex, ((signature ?? []) as unknown[]).map(String))
  if (raw_data !== undefined && !says(raw_data, readable(tx)))
    throw new Refused('SIGERROR', 'Validate signature error: raw_data is not what raw_data_hex says')
  return tx
}

function readable(tx: TronTransaction): Json {
  try {
    return rawJson(tx.rawHex)
  } catch (error) {
    throw new Refused('OTHER_ERROR', (error as Error).message)
  }
}

/** What bytes cannot say (an empty field, the spelling of an ABI) is not compared. */
function says(given: unknown, told: unknown): boolean {
  if (typeof given === 'object' && given !== null && typeof told === 'object' && told !== null)
    return Object.entries(given).every(
      ([name, value]) =>
        name === 'new_contract' ||
        value === undefined ||
        value === '' ||
        value === 0 ||
        says(value, (told as Json)[name]),
    )
  return (parseAddress(given) ?? String(given).toLowerCase()) === String(told).toLowerCase()
}

function reply(node: TronNode, read: () => TronTransaction): Answer {
  let txid = {}
  try {
    const tx = read()
    txid = { txid: tx.id }
    submit(node, tx)
    return { result: true, ...txid }
  } catch (error) {
    if (!(error instanceof Refused)) throw error
    return { code: error.code, ...txid, message: messageHex(error.message) }
  }
}

/** Those are refused before anything runs; all others are what becomes of a transaction in its block. */
const REFUSALS = [
  'SIGERROR',
  'CONTRACT_VALIDATE_ERROR',
  'CONTRACT_EXE_ERROR',
  'BANDWITH_ERROR',
  'DUP_TRANSACTION_ERROR',
  'TAPOS_ERROR',
  'TOO_BIG_TRANSACTION_ERROR',
  'TRANSACTION_EXPIRATION_ERROR',
  'SERVER_BUSY',
  'NO_CONNECTION',
  'NOT_ENOUGH_EFFECTIVE_CONNECTION',
  'BLOCK_UNSOLIDIFIED',
  'OTHER_ERROR',
]

function submit(node: TronNode, given: TronTransaction): void {
  const trouble = node.troubles.takeSubmit()
  if (trouble === 'lose request') throw new CutLine()
  const failWith = typeof trouble === 'object' ? trouble.failWith : undefined
  if (failWith !== undefined && REFUSALS.includes(failWith)) throw new Refused(failWith, 'as asked for')
  if (node.troubles.now.isStranger) throw new Refused('TAPOS_ERROR', 'Tapos failed, different block hash')
  const tx = failWith === undefined ? given : { ...given, failWith }
  check(node, tx)
  if (trouble !== 'drop') node.chain.submit(tx)
  if (trouble === 'lose reply') throw new CutLine()
}

/** Throws Refused when the next block would not take it. */
export function check({ chain, evm }: Pick<TronNode, 'chain' | 'evm'>, tx: TronTransaction): void {
  if (chain.waiting.some(({ id }) => id === tx.id))
    throw new Refused('DUP_TRANSACTION_ERROR', 'Transaction already exists.')
  const { height, timeMs } = chain.head
  const place = { height: height + 1, timeMs: Math.max(Date.now(), timeMs + BLOCK_STEP_MS) }
  runTransaction(tx, draftOn(chain.open()), place, evm)
}
