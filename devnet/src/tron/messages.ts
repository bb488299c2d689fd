import type { Message, Schema } from './protobuf.ts'

/** https://github.com/tronprotocol/protocol: core/Tron.proto and core/contract/*.proto, as far as this simulator acts on them. */
const any = { type_url: { id: 1, kind: 'text' }, value: { id: 2, kind: 'hex' } } as const

const contract = {
  type: { id: 1, kind: 'int' },
  parameter: { id: 2, kind: any },
  Permission_id: { id: 5, kind: 'int' },
} as const

export const rawSchema = {
  ref_block_bytes: { id: 1, kind: 'hex' },
  ref_block_num: { id: 3, kind: 'int' },
  ref_block_hash: { id: 4, kind: 'hex' },
  expiration: { id: 8, kind: 'int' },
  data: { id: 10, kind: 'hex' },
  contract: { id: 11, kind: contract, many: true },
  timestamp: { id: 14, kind: 'int' },
  fee_limit: { id: 18, kind: 'int' },
} as const
export type Raw = Message<typeof rawSchema>

/** `raw_data` stays bytes: they are what is hashed and signed. */
export const transactionSchema = {
  raw_data: { id: 1, kind: 'hex' },
  signature: { id: 2, kind: 'hex', many: true },
} as const

export const headerSchema = {
  timestamp: { id: 1, kind: 'int' },
  txTrieRoot: { id: 2, kind: 'hex' },
  parentHash: { id: 3, kind: 'hex' },
  number: { id: 7, kind: 'int' },
  witness_address: { id: 9, kind: 'hex' },
  version: { id: 10, kind: 'int' },
  accountStateRoot: { id: 11, kind: 'hex' },
} as const
export type Header = Message<typeof headerSchema>

const abiParameter = {
  indexed: { id: 1, kind: 'int' },
  name: { id: 2, kind: 'text' },
  type: { id: 3, kind: 'text' },
} as const

const abiEntry = {
  anonymous: { id: 1, kind: 'int' },
  constant: { id: 2, kind: 'int' },
  name: { id: 3, kind: 'text' },
  inputs: { id: 4, kind: abiParameter, many: true },
  outputs: { id: 5, kind: abiParameter, many: true },
  type: { id: 6, kind: 'int' },
  payable: { id: 7, kind: 'int' },
  stateMutability: { id: 8, kind: 'int' },
} as const

const smartContract = {
  origin_address: { id: 1, kind: 'hex' },
  abi: { id: 3, kind: { entrys: { id: 1, kind: abiEntry, many: true } } },
  bytecode: { id: 4, kind: 'hex' },
  call_value: { id: 5, kind: 'int' },
  consume_user_resource_percent: { id: 6, kind: 'int' },
  name: { id: 7, kind: 'text' },
  origin_energy_limit: { id: 8, kind: 'int' },
} as const
export type AbiEntry = Message<typeof abiEntry>
export type SmartContract = Message<typeof smartContract>

/** The kinds of transaction that are run here, by their number on the wire. */
export const contractSchemas = {
  AccountCreateContract: {
    owner_address: { id: 1, kind: 'hex' },
    account_address: { id: 2, kind: 'hex' },
  },
  TransferContract: {
    owner_address: { id: 1, kind: 'hex' },
    to_address: { id: 2, kind: 'hex' },
    amount: { id: 3, kind: 'int' },
  },
  TransferAssetContract: {
    asset_name: { id: 1, kind: 'hex' },
    owner_address: { id: 2, kind: 'hex' },
    to_address: { id: 3, kind: 'hex' },
    amount: { id: 4, kind: 'int' },
  },
  CreateSmartContract: {
    owner_address: { id: 1, kind: 'hex' },
    new_contract: { id: 2, kind: smartContract },
  },
  TriggerSmartContract: {
    owner_address: { id: 1, kind: 'hex' },
    contract_address: { id: 2, kind: 'hex' },
    call_value: { id: 3, kind: 'int' },
    data: { id: 4, kind: 'hex' },
    call_token_value: { id: 5, kind: 'int' },
    token_id: { id: 6, kind: 'int' },
  },
} as const satisfies Record<string, Schema>
export type ContractType = keyof typeof contractSchemas

export const contractNumbers: Readonly<Record<ContractType, bigint>> = {
  AccountCreateContract: 0n,
  TransferContract: 1n,
  TransferAssetContract: 2n,
  CreateSmartContract: 30n,
  TriggerSmartContract: 31n,
}

/** What a transaction does, told apart by `type`. */
export type Action = {
  [Type in ContractType]: { readonly type: Type } & Message<(typeof contractSchemas)[Type]>
}[ContractType]
export type ActionOf<Type extends ContractType> = Extract<Action, { type: Type }>

export function typeOfNumber(number: bigint): ContractType | undefined {
  const found = Object.entries(contractNumbers).find(([, each]) => each === number)
  return found?.[0] as ContractType | undefined
}

export const ANY_URL = 'type.googleapis.com/protocol.'

/** Enumerations of the ABI as Java spells them in JSON, by their number. */
export const abiTypes = ['', 'Constructor', 'Function', 'Event', 'Fallback', 'Receive', 'Error']
export const abiMutabilities = ['', 'Pure', 'View', 'Nonpayable', 'Payable']
