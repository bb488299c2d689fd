import type { EvmReceipt } from './decode.ts'

/** keccak256("Transfer(address,address,uint256)"), https://eips.ethereum.org/EIPS/eip-20 */
const TRANSFER_TOPIC = '0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef'

/**
 * Tells of coin that moves as a contract does of its token (https://eips.ethereum.org/EIPS/eip-7708). What moved is read from the
 * transaction and its traces, where this event is or is not.
 */
const SYSTEM_ADDRESS = `0x${'f'.repeat(39)}e`

/** What a contract claims in an ERC-20 Transfer event; any contract may claim anything. Addresses in lowercase. */
export type TokenMove = {
  readonly contract: string
  readonly from: string
  readonly to: string
  readonly units: bigint
  /** Place of the log within its transaction. */
  readonly ordinal: number
}

/**
 * Transfer events of a transaction that succeeded. An NFT's Transfer has a fourth topic and no amount, and is
 * none of ours; a transfer of nothing, or to oneself, brings no one anything.
 */
export function tokenMoves(receipt: EvmReceipt): readonly TokenMove[] {
  if (!receipt.isSuccess) return []
  return receipt.logs.flatMap(({ contract, topics, data }, ordinal) => {
    const [topic, fromTopic, toTopic] = topics
    if (contract === SYSTEM_ADDRESS || topic !== TRANSFER_TOPIC || topics.length !== 3 || data.length !== 66)
      return []
    const from = addressIn(fromTopic)
    const to = addressIn(toTopic)
    const units = BigInt(data)
    if (from === null || to === null || from === to || units === 0n) return []
    return [{ contract, from, to, units, ordinal }]
  })
}

/** keccak256("transfer(address,uint256)"), first four bytes. */
const TRANSFER_SELECTOR = '0xa9059cbb'

/** Of no listed token there is that much. A call that asks for more waits like any other, and fails. */
const UNITS_MAX = 2n ** 128n

/** The recipient and units of a plain `transfer` call, or null for any other call, and for one that nobody can pay. */
export function transferCall(input: string): { to: string; units: bigint } | null {
  if (!input.startsWith(TRANSFER_SELECTOR) || input.length !== 10 + 2 * 64) return null
  const to = addressIn(`0x${input.slice(10, 74)}`)
  const units = BigInt(`0x${input.slice(74)}`)
  return to === null || units > UNITS_MAX ? null : { to, units }
}

function addressIn(word: string | undefined): string | null {
  if (word === undefined || !/^0x0{24}[0-9a-f]{40}$/.test(word)) return null
  return `0x${word.slice(26)}`
}
