import { getAddress } from 'viem/utils'
import { NodeNonsense } from './json_rpc.ts'

/** The address of no account: of what a block gives by itself, and of a call that moved no value where one below it did. */
export const NOBODY = `0x${'0'.repeat(40)}`

/** What nodes answer, read strictly: anything of another type is an error with a name, never a NaN or undefined. */
export type EvmTx = {
  readonly hash: string
  readonly from: string
  /** Null when the transaction creates a contract. Lowercase, as all addresses here until they are shown to others. */
  readonly to: string | null
  readonly wei: bigint
  readonly input: string
  readonly blockHash: string | null
}

export type EvmHeader = {
  readonly height: number
  readonly hash: string
  readonly parentHash: string
  readonly timeMs: number
  /** Null before EIP-1559. */
  readonly baseFeePerGasWei: bigint | null
}

export type EvmLog = { readonly contract: string; readonly topics: readonly string[]; readonly data: string }

export type EvmReceipt = {
  readonly txHash: string
  readonly blockHash: string
  readonly height: number
  readonly isSuccess: boolean
  readonly gasUsed: bigint
  readonly effectiveGasPriceWei: bigint
  /** Place within the transaction is the index here; block-wide indexes move in a reorg. */
  readonly logs: readonly EvmLog[]
}

export type Fields = Readonly<Record<string, unknown>>

export function fields(value: unknown, what: string): Fields {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw nonsense(what, 'an object', value)
  return value as Fields
}

export function list(value: unknown, what: string): readonly unknown[] {
  if (!Array.isArray(value)) throw nonsense(what, 'a list', value)
  return value
}

export function quantity(value: unknown, what: string): bigint {
  if (typeof value !== 'string' || !/^0x[0-9a-f]{1,64}$/i.test(value))
    throw nonsense(what, 'a quantity', value)
  return BigInt(value)
}

/** A quantity that must be small enough to count with: heights, nonces, seconds. */
export function count(value: unknown, what: string): number {
  const whole = quantity(value, what)
  if (whole > BigInt(Number.MAX_SAFE_INTEGER)) throw nonsense(what, 'a countable quantity', value)
  return Number.parseInt(whole.toString(), 10)
}

export function hash(value: unknown, what: string): string {
  if (typeof value !== 'string' || !/^0x[0-9a-f]{64}$/i.test(value)) throw nonsense(what, 'a hash', value)
  return value.toLowerCase()
}

export function lowerAddress(value: unknown, what: string): string {
  if (typeof value !== 'string' || !/^0x[0-9a-f]{40}$/i.test(value)) throw nonsense(what, 'an address', value)
  return value.toLowerCase()
}

export function bytes(value: unknown, what: string): string {
  if (typeof value !== 'string' || !/^0x(?:[0-9a-f]{2})*$/i.test(value)) throw nonsense(what, 'bytes', value)
  return value.toLowerCase()
}

/** EIP-55 text, as our address table stores it. */
export function checksummed(lower: string): string {
  return getAddress(lower as `0x${string}`)
}

export function decodeHeader(value: unknown): EvmHeader {
  const block = fields(value, 'block')
  return {
    height: count(block.number, 'block.number'),
    hash: hash(block.hash, 'block.hash'),
    parentHash: hash(block.parentHash, 'block.parentHash'),
    timeMs: count(block.timestamp, 'block.timestamp') * 1_000,
    baseFeePerGasWei:
      block.baseFeePerGas === undefined || block.baseFeePerGas === null
        ? null
        : quantity(block.baseFeePerGas, 'block.baseFeePerGas'),
  }
}

/** The transactions of a block that was asked for with full transactions. */
export function decodeBlockTxs(value: unknown): readonly EvmTx[] {
  return list(fields(value, 'block').transactions, 'block.transactions').map(decodeTx)
}

/** What a block itself gives: its tips to one address, and to others what validators withdraw. */
export type EvmRewards = {
  /** Null: the node does not name it. */
  readonly feeRecipient: string | null
  readonly withdrawals: readonly { readonly index: bigint; readonly to: string; readonly wei: bigint }[]
}

const WEI_PER_GWEI = 1_000_000_000n

/** https://eips.ethereum.org/EIPS/eip-4895: amounts are in gwei, and an index is given once. */
export function decodeRewards(value: unknown): EvmRewards {
  const { miner, withdrawals } = fields(value, 'block')
  return {
    feeRecipient: miner === undefined || miner === null ? null : lowerAddress(miner, 'block.miner'),
    withdrawals: list(withdrawals ?? [], 'block.withdrawals').map((one) => {
      const { index, address, amount } = fields(one, 'withdrawal')
      return {
        index: quantity(index, 'withdrawal.index'),
        to: lowerAddress(address, 'withdrawal.address'),
        wei: quantity(amount, 'withdrawal.amount') * WEI_PER_GWEI,
      }
    }),
  }
}

export function decodeTx(value: unknown): EvmTx {
  const tx = fields(value, 'transaction')
  return {
    hash: hash(tx.hash, 'transaction.hash'),
    from: lowerAddress(tx.from, 'transaction.from'),
    to: tx.to === null || tx.to === undefined ? null : lowerAddress(tx.to, 'transaction.to'),
    wei: quantity(tx.value, 'transaction.value'),
    input: bytes(tx.input, 'transaction.input'),
    blockHash:
      tx.blockHash === null || tx.blockHash === undefined
        ? null
        : hash(tx.blockHash, 'transaction.blockHash'),
  }
}

export function decodeReceipt(value: unknown): EvmReceipt {
  const receipt = fields(value, 'receipt')
  const status = quantity(receipt.status, 'receipt.status')
  if (status > 1n) throw nonsense('receipt.status', '0x0 or 0x1', receipt.status)
  // What a rollup takes for its place on another chain is beside the gas: a payout would cost more than is asked, and booked.
  if (quantity(receipt.l1Fee ?? '0x0', 'receipt.l1Fee') !== 0n)
    throw new NodeNonsense('the chain charges an L1 fee beside its gas: such rollups are not supported')
  const logs = list(receipt.logs, 'receipt.logs').map(decodeLog)
  // Of a payout whose logs a node has dropped it would follow that nothing was paid.
  if (logs.length === 0 && !isEmptyBloom(receipt.logsBloom))
    throw nonsense('receipt.logs', 'what its bloom is of', [])
  return {
    txHash: hash(receipt.transactionHash, 'receipt.transactionHash'),
    blockHash: hash(receipt.blockHash, 'receipt.blockHash'),
    height: count(receipt.blockNumber, 'receipt.blockNumber'),
    isSuccess: status === 1n,
    gasUsed: quantity(receipt.gasUsed, 'receipt.gasUsed'),
    effectiveGasPriceWei: quantity(receipt.effectiveGasPrice, 'receipt.effectiveGasPrice'),
    logs,
  }
}

/** One that is left out says nothing. */
function isEmptyBloom(bloom: unknown): boolean {
  return /^0x0*$/.test(bytes(bloom ?? '0x', 'receipt.logsBloom'))
}

function decodeLog(value: unknown): EvmLog {
  const log = fields(value, 'log')
  return {
    contract: lowerAddress(log.address, 'log.address'),
    topics: list(log.topics, 'log.topics').map((topic) => hash(topic, 'log.topics')),
    data: bytes(log.data, 'log.data'),
  }
}

/** A uint256 that a contract returned. Nothing at all comes back from an address without a contract. */
export function decodeWord(value: unknown, what: string): bigint {
  const word = bytes(value, what)
  if (word.length !== 66) throw nonsense(what, 'one 32-byte word', value)
  return BigInt(word)
}

function nonsense(what: string, expected: string, value: unknown): NodeNonsense {
  const shown = JSON.stringify(value) ?? 'nothing'
  return new NodeNonsense(`the node's ${what} is ${shown.slice(0, 80)} where ${expected} belongs`)
}
