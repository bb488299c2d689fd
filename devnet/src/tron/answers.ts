import type { Included } from '../simulated/chain.ts'
import { abiJson } from './abi.ts'
import { GENESIS_ID, genesisHeader } from './blocks.ts'
import type { Answer } from './command.ts'
import { decodeRaw, type TronTransaction } from './decode_transaction.ts'
import { type Action, ANY_URL, type Raw, type SmartContract } from './messages.ts'
import type { Tron, TronBlock } from './rules.ts'

/** As java-tron spells a message in JSON: what is empty or zero is not there, and a 64-bit integer is a number. */
function spell(message: object): Answer {
  const entries = Object.entries(message).filter(
    ([, value]) => value !== undefined && value !== 0n && value !== '',
  )
  return Object.fromEntries(
    entries.map(([name, value]) => [name, typeof value === 'bigint' ? Number(value) : value]),
  )
}

export function transactionJson({ id, rawHex, signatures }: TronTransaction): Answer {
  return {
    ...(signatures.length > 0 && { signature: signatures }),
    txID: id,
    raw_data: rawJson(rawHex),
    raw_data_hex: rawHex,
  }
}

export function rawJson(rawHex: string): Answer {
  const { raw, action, permission } = decodeRaw(rawHex)
  const { contract: _, ...rest } = raw as Raw
  const { type, ...value } = action
  const parameter = { value: valueJson(value), type_url: ANY_URL + type }
  const contract = { parameter, type, ...(permission > 0n && { Permission_id: Number(permission) }) }
  return { contract: [contract], ...spell(rest) }
}

function valueJson(value: Omit<Action, 'type'>): Answer {
  if (!('new_contract' in value)) return spell(value)
  const { abi, ...made } = value.new_contract as SmartContract
  return { ...spell(value), new_contract: { ...spell(made), ...(abi && { abi: abiJson(abi.entrys ?? []) }) } }
}

export function includedJson({ tx, result }: Included<Tron>): Answer {
  return { ret: [{ contractRet: result.contractRet }], ...transactionJson(tx) }
}

/** `isStranger`: the first block is another one. */
export function blockJson(block: TronBlock, hasTransactions: boolean, isStranger: boolean): Answer {
  const { header, hash, signature } = block.seal
  const other = (id: string) => (isStranger && id === GENESIS_ID ? `${id.slice(0, 16)}${'f'.repeat(48)}` : id)
  const raw = block.height === 0 ? genesisHeader : { ...header, parentHash: other(block.parentHash) }
  return {
    blockID: other(hash),
    block_header: {
      raw_data: spell(raw),
      ...(signature !== '' && { witness_signature: signature }),
    },
    ...(hasTransactions && block.included.length > 0 && { transactions: block.included.map(includedJson) }),
  }
}

/** https://developers.tron.network/reference/gettransactioninfobyid */
export function infoJson({ tx, result }: Included<Tron>, block: TronBlock): Answer {
  const { contract, contractRet } = result
  const isContract = contract !== undefined
  return {
    id: tx.id,
    ...spell({ fee: result.fee, blockNumber: BigInt(block.height), blockTimeStamp: BigInt(block.timeMs) }),
    contractResult: [contract?.returned ?? ''],
    ...(isContract && { contract_address: contract.address }),
    receipt: {
      ...spell({ energy_fee: contract?.energyFee, energy_usage_total: contract?.energyUsed }),
      ...spell({ net_usage: result.netUsage, net_fee: result.netFee }),
      ...(isContract && { result: contractRet }),
    },
    ...(contract && contract.logs.length > 0 && contractRet === 'SUCCESS' && { log: contract.logs }),
    ...(contractRet !== 'SUCCESS' && { result: 'FAILED', resMessage: hexOfText(failureText(contractRet)) }),
    ...(contract &&
      contract.internal.length > 0 && { internal_transactions: contract.internal.map(internalJson) }),
  }
}

export function failureText(contractRet: string): string {
  return contractRet === 'REVERT' ? 'REVERT opcode executed' : `${contractRet} while executing`
}

function internalJson(payment: NonNullable<Tron['result']['contract']>['internal'][number]): Answer {
  return {
    caller_address: `41${payment.from}`,
    transferTo_address: `41${payment.to}`,
    callValueInfo: [{ callValue: Number(payment.sun) }],
    note: hexOfText('call'),
    ...(payment.isRejected && { rejected: true }),
  }
}

function hexOfText(text: string): string {
  return Buffer.from(text).toString('hex')
}
