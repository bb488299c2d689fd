import type { Abi } from 'viem'
import { type AbiEntry, abiMutabilities, abiTypes } from './messages.ts'

type Parameter = { readonly name?: string; readonly type: string; readonly indexed?: boolean }
type Item = {
  readonly type: string
  readonly name?: string
  readonly inputs?: readonly Parameter[]
  readonly outputs?: readonly Parameter[]
  readonly stateMutability?: string
}

/** What a compiler says of a contract, as TRON keeps it. */
export function abiOf(abi: Abi): AbiEntry[] {
  return (abi as readonly Item[]).map(({ type, name, inputs, outputs, stateMutability }) => ({
    type: numberOf(abiTypes, type),
    ...(name !== undefined && { name }),
    inputs: (inputs ?? []).map(parameterOf),
    outputs: (outputs ?? []).map(parameterOf),
    ...(stateMutability !== undefined && { stateMutability: numberOf(abiMutabilities, stateMutability) }),
  }))
}

function parameterOf({ name, type, indexed }: Parameter) {
  return { ...(name && { name }), type, ...(indexed && { indexed: 1n }) }
}

function numberOf(names: readonly string[], name: string): bigint {
  return BigInt(names.findIndex((each) => each.toLowerCase() === name.toLowerCase()))
}

export function abiJson(entries: readonly AbiEntry[]): Record<string, unknown> {
  return {
    entrys: entries.map(({ type, name, inputs = [], outputs = [], stateMutability, ...flags }) => ({
      ...(flags.anonymous && { anonymous: true }),
      ...(flags.constant && { constant: true }),
      ...(flags.payable && { payable: true }),
      ...(name !== undefined && { name }),
      ...(inputs.length > 0 && { inputs: inputs.map(parameterJson) }),
      ...(outputs.length > 0 && { outputs: outputs.map(parameterJson) }),
      type: abiTypes[Number(type ?? 0n)],
      ...(stateMutability && { stateMutability: abiMutabilities[Number(stateMutability)] }),
    })),
  }
}

function parameterJson({ indexed, ...rest }: NonNullable<AbiEntry['inputs']>[number]) {
  return { ...(indexed && { indexed: true }), ...rest }
}
