import { secp256k1 } from '@noble/curves/secp256k1.js'
import { encodeDeployData, encodeFunctionData, type Hex } from 'viem'
import { type ContractName, compileContracts } from '../evm/compile_contracts.ts'
import type { Draft } from '../simulated/state.ts'
import { abiOf } from './abi.ts'
import { addressOfPublicKey, contractAddress, sha256Hex, toBase58 } from './addresses.ts'
import { execute } from './contracts.ts'
import { keys, newAccount, readContract, type TronEntry } from './entries.ts'
import type { Evm } from './evm.ts'

/** Holds everything at first, and owns the tokens. */
export const faucetKey = Buffer.from(sha256Hex(Buffer.from('faucet').toString('hex')), 'hex')
export const faucetAddress = addressOfPublicKey(secp256k1.getPublicKey(faucetKey, false))

/** Below 2^53 sun: JavaScript reads the numbers of a full node as they are. */
const ALL_SUN = 8_000_000_000_000_000n
const ALL_USDT = 1_000_000_000_000_000_000n

/** A TRC-10 token that calls itself as others are called. */
export const FALSE_TRC10 = { id: '1000001', name: 'USDT' } as const

/** What calls itself USDT and is not, what misbehaves as tokens do, and what pays in ways that are hard to see. */
const DEPLOYED = {
  LookalikeToken: [],
  FalseReturnToken: [],
  SpoofToken: [],
  /** A percent of each transfer is not delivered. The faucet holds them. */
  FeeOnTransferToken: [100n, 1_000_000_000_000n],
  RevertingToken: [],
  BurningToken: [],
  Payer: [],
} as const satisfies Partial<Record<ContractName, readonly bigint[]>>
export type DeployedName = keyof typeof DEPLOYED

export const addressOf = (name: 'USDT' | DeployedName) =>
  contractAddress(sha256Hex(Buffer.from(name).toString('hex')), faucetAddress)

const deployedNames = Object.keys(DEPLOYED) as DeployedName[]

/** Base58. They are the same on every chain of this simulator. */
export type Deployed = { readonly address: string }
export const tokens: { readonly USDT: Deployed } = { USDT: { address: toBase58(addressOf('USDT')) } }
export const contracts = Object.fromEntries(
  deployedNames.map((name) => [name, { address: toBase58(addressOf(name)) }]),
) as Readonly<Record<DeployedName, Deployed>>

export function fillGenesis(draft: Draft<TronEntry>, evm: Evm): void {
  draft.set(keys.account(faucetAddress), {
    ...newAccount(faucetAddress, ALL_SUN, 0),
    assets: { [FALSE_TRC10.id]: ALL_SUN },
  })
  draft.set(keys.asset(FALSE_TRC10.id), { ...FALSE_TRC10, owner: faucetAddress, supply: ALL_SUN })
  const { TronTether } = compileContracts()
  const owner = `0x${faucetAddress.slice(2)}` as Hex
  deploy(draft, evm, 'USDT', 'TronTether', encodeDeployData({ ...TronTether, args: [owner] }))
  call(
    draft,
    evm,
    addressOf('USDT'),
    encodeFunctionData({ ...TronTether, functionName: 'mint', args: [owner, ALL_USDT] }),
  )
  for (const each of deployedNames)
    deploy(draft, evm, each, each, encodeDeployData({ ...compileContracts()[each], args: DEPLOYED[each] }))
}

function deploy(
  draft: Draft<TronEntry>,
  evm: Evm,
  as: 'USDT' | DeployedName,
  name: ContractName,
  bytecode: Hex,
): void {
  const address = addressOf(as)
  call(draft, evm, address, '0x', bytecode.slice(2))
  const contract = readContract(draft, address)
  if (contract === undefined) throw new Error(`${name} was deployed`)
  const abi = abiOf(compileContracts()[name].abi)
  draft.set(keys.contract(address), { ...contract, name, abi, bytecode: bytecode.slice(2) })
}

function call(draft: Draft<TronEntry>, evm: Evm, to: string, data: Hex, code?: string): void {
  const { contractRet } = execute(
    evm,
    draft,
    {
      to,
      caller: faucetAddress,
      value: 0n,
      data: data.slice(2),
      energyMax: 10_000_000n,
      ...(code !== undefined && { code }),
    },
    { height: 0, timeMs: 0 },
  )
  if (contractRet !== 'SUCCESS') throw new Error(`the first block: ${contractRet}`)
}
