import { ABI, Serializer } from '@wharfkit/antelope'
import type { ContractKind } from './entries.ts'

type Fields = Readonly<Record<string, string>>

/** The part of an ABI that this simulator knows: actions, and what their data holds. */
function abiOf(actions: Readonly<Record<string, Fields>>, structs: Readonly<Record<string, Fields>> = {}) {
  const named = Object.entries({ ...structs, ...actions })
  return ABI.from({
    version: 'eosio::abi/1.2',
    structs: named.map(([name, fields]) => ({
      name,
      base: '',
      fields: Object.entries(fields).map(([field, type]) => ({ name: field, type })),
    })),
    actions: Object.keys(actions).map((name) => ({ name, type: name, ricardian_contract: '' })),
  })
}

const transfer = { from: 'name', to: 'name', quantity: 'asset', memo: 'string' }

/** https://github.com/AntelopeIO/reference-contracts: `eosio.token` and `eosio.system` */
const abis: Readonly<Record<ContractKind, ABI>> = {
  token: abiOf({ transfer }),
  system: abiOf(
    { newaccount: { creator: 'name', name: 'name', owner: 'authority', active: 'authority' } },
    {
      authority: {
        threshold: 'uint32',
        keys: 'key_weight[]',
        accounts: 'permission_level_weight[]',
        waits: 'wait_weight[]',
      },
      key_weight: { key: 'public_key', weight: 'uint16' },
      permission_level: { actor: 'name', permission: 'name' },
      permission_level_weight: { permission: 'permission_level', weight: 'uint16' },
      wait_weight: { wait_sec: 'uint32', weight: 'uint16' },
    },
  ),
  liar: abiOf({ transfer }),
  forwarder: abiOf({ forward: { to: 'name' } }),
  payer: abiOf({ pay: { to: 'name', quantity: 'asset', memo: 'string' } }),
  refuser: abiOf({}),
}

export function abiFor(contract: ContractKind): ABI {
  return abis[contract]
}

/** The data of an action in the words of its contract; undefined when they do not fit. */
export function paramsOf(
  contract: ContractKind | undefined,
  name: string,
  data: string,
): Readonly<Record<string, unknown>> | undefined {
  if (contract === undefined) return undefined
  const abi = abis[contract]
  if (!abi.actions.some((action) => String(action.name) === name)) return undefined
  try {
    return Serializer.objectify(Serializer.decode({ data, type: name, abi }))
  } catch {
    return undefined
  }
}

export function encodeAction(contract: ContractKind, name: string, params: object): string {
  return Serializer.encode({ object: params, type: name, abi: abis[contract] }).hexString
}
