import type { Chance } from '../../test/harness/chance.ts'
import { LISTED_TOKENS, ownProgram, paidIn } from './own_addresses.ts'

/** What a full node answers about one block, as JSON text. */
export type TronBlock = {
  readonly hash: string
  /** With its transactions, and without. */
  readonly whole: string
  readonly header: string
  readonly infos: string
  /** Its transactions as they waited before, by their ids, without those to us. */
  readonly waiting: ReadonlyMap<string, string>
}

/**
 * 12.6 million transactions on a busy day
 * (https://www.roscoeviewjournal.com/altcoins/trons-transaction-surge-retail-adoption-fuels-growth/797) are 437 in each of its
 * 28,800 blocks; 341.9 million in January 2026 (https://www.binance.bh/ar-AE/square/post/301872773592689) are 383.
 */
const TRANSACTIONS = 440

/** keccak256("Transfer(address,address,uint256)") */
const TRANSFER = 'ddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef'

type Json = Record<string, unknown>
type Place = { readonly height: number; readonly hash: string; readonly timeMs: number }
/** One transaction: its contract, what its info has beside the usual, and what became of it. */
type Action = { readonly type: string; readonly value: Json; readonly info: Json; readonly ret: string }

/**
 * A block as mainnet has them, with more transfers of USDT, because these are what is dear to read: 15 to 20 million a week
 * (as above) are some 90 in a block, here they are half of it. Then transfers of TRX, energy that is lent and taken back, and
 * calls of other contracts. Some have failed.
 */
export function makeTronBlock(chance: Chance, parentHash: string, height: number): TronBlock {
  const hash = height.toString(16).padStart(16, '0') + hex(chance, 24)
  const place = { height, hash, timeMs: 1_800_000_000_000 + height * 3_000 }
  const ours = paidIn(height).map((index, ordinal) => {
    const to = ownProgram('TRX', index).toString('hex')
    return ordinal < 2 ? tokenTransfer(chance, LISTED_TOKENS.TRX, to) : trxTransfer(chance, to)
  })
  const others = Array.from({ length: TRANSACTIONS - ours.length }, () => someAction(chance))
  const both = chance.shuffled([...others, ...ours]).map((action) => {
    const txID = hex(chance, 32)
    const isOurs = ours.includes(action)
    const transaction = transactionOf(chance, action, txID, place)
    return { isOurs, txID, transaction, info: infoOf(action, txID, place) }
  })
  const header = headerOf(chance, parentHash, place)
  return {
    hash,
    header: JSON.stringify(header),
    whole: JSON.stringify({ ...header, transactions: both.map(({ transaction }) => transaction) }),
    infos: JSON.stringify(both.map(({ info }) => info)),
    waiting: new Map(
      both
        .filter(({ isOurs }) => !isOurs)
        .map(({ txID, transaction: { ret: _ret, ...sent } }) => [txID, JSON.stringify(sent)]),
    ),
  }
}

function headerOf(chance: Chance, parentHash: string, { height, hash, timeMs }: Place): Json {
  return {
    blockID: hash,
    block_header: {
      raw_data: {
        ...(height > 0 && { number: height }),
        txTrieRoot: hex(chance, 32),
        witness_address: address(chance),
        parentHash,
        version: 34,
        timestamp: timeMs,
      },
      witness_signature: hex(chance, 65),
    },
  }
}

function someAction(chance: Chance): Action {
  const dice = chance.below(100)
  if (dice < 50) return tokenTransfer(chance, LISTED_TOKENS.TRX, hex(chance, 20))
  if (dice < 70) return trxTransfer(chance, hex(chance, 20))
  if (dice < 90) return lent(chance)
  return dice < 93 ? failedCall(chance) : swap(chance)
}

function tokenTransfer(chance: Chance, token: string, to: string): Action {
  const from = hex(chance, 20)
  const data = word(chance.between(1, 2 ** 31).toString(16))
  return {
    type: 'TriggerSmartContract',
    value: { data: `a9059cbb${word(to)}${data}`, owner_address: `41${from}`, contract_address: token },
    info: {
      contract_address: token,
      receipt: { energy_usage: 64_285, energy_usage_total: 64_285, net_usage: 345, result: 'SUCCESS' },
      log: [{ address: token.slice(2), topics: [TRANSFER, word(from), word(to)], data }],
    },
    ret: 'SUCCESS',
  }
}

function trxTransfer(chance: Chance, to: string): Action {
  const amount = chance.between(1, 2 ** 40)
  return {
    type: 'TransferContract',
    value: { amount, owner_address: address(chance), to_address: `41${to}` },
    info: { receipt: { net_usage: 268 } },
    ret: 'SUCCESS',
  }
}

function lent(chance: Chance): Action {
  return {
    type: chance.below(2) === 0 ? 'DelegateResourceContract' : 'UnDelegateResourceContract',
    value: {
      owner_address: address(chance),
      receiver_address: address(chance),
      resource: 'ENERGY',
      balance: chance.between(1, 2 ** 40),
    },
    info: { receipt: { net_usage: 280 } },
    ret: 'SUCCESS',
  }
}

/** Two pools, and TRX that goes through them. */
function swap(chance: Chance): Action {
  const owner = hex(chance, 20)
  const moved = () => ({
    address: hex(chance, 20),
    topics: [TRANSFER, word(owner), word(hex(chance, 20))],
    data: word(chance.between(1, 2 ** 31).toString(16)),
  })
  const said = () => ({
    address: hex(chance, 20),
    topics: [hex(chance, 32), word(owner)],
    data: hex(chance, 160),
  })
  const inner = () => ({
    hash: hex(chance, 32),
    caller_address: address(chance),
    transferTo_address: address(chance),
    callValueInfo: [{ callValue: chance.between(1, 2 ** 31) }],
    note: '63616c6c',
  })
  const router = address(chance)
  return {
    type: 'TriggerSmartContract',
    value: {
      data: hex(chance, 260),
      owner_address: `41${owner}`,
      contract_address: router,
      call_value: chance.between(1, 2 ** 31),
    },
    info: {
      contract_address: router,
      receipt: { energy_usage_total: 220_000, energy_fee: 22_000_000, net_usage: 560, result: 'SUCCESS' },
      log: [moved(), said(), moved(), said(), moved(), moved()],
      internal_transactions: [inner(), { ...inner(), callValueInfo: [{}] }, inner()],
    },
    ret: 'SUCCESS',
  }
}

function failedCall(chance: Chance): Action {
  const { value } = tokenTransfer(chance, LISTED_TOKENS.TRX, hex(chance, 20))
  const receipt = {
    energy_fee: 6_400_000,
    energy_usage_total: 15_000,
    net_usage: 345,
    result: 'OUT_OF_ENERGY',
  }
  return {
    type: 'TriggerSmartContract',
    value,
    info: { receipt, result: 'FAILED', resMessage: hex(chance, 60) },
    ret: 'OUT_OF_ENERGY',
  }
}

function transactionOf(chance: Chance, { type, value, ret }: Action, txID: string, { timeMs }: Place): Json {
  return {
    ret: [{ contractRet: ret }],
    signature: [hex(chance, 65)],
    txID,
    raw_data: {
      contract: [{ parameter: { value, type_url: `type.googleapis.com/protocol.${type}` }, type }],
      ref_block_bytes: hex(chance, 2),
      ref_block_hash: hex(chance, 8),
      expiration: timeMs + 60_000,
      fee_limit: 100_000_000,
      timestamp: timeMs - 3_000,
    },
    raw_data_hex: hex(chance, 210),
  }
}

function infoOf({ info }: Action, id: string, { height, timeMs }: Place): Json {
  return { id, fee: 345_000, blockNumber: height, blockTimeStamp: timeMs, contractResult: [''], ...info }
}

function word(text: string): string {
  return text.padStart(64, '0')
}

function address(chance: Chance): string {
  return `41${hex(chance, 20)}`
}

function hex(chance: Chance, count: number): string {
  return chance.bytes(count).toString('hex')
}
