import type { Stage } from '../simulated/simulated_network.ts'
import type { Mempool } from './mempool.ts'
import { codes, NodeError } from './node_error.ts'
import type { Bitcoin, Miner } from './rules.ts'
import type { Wallet } from './wallet.ts'

export type BitcoinNode = Stage<Bitcoin> & {
  readonly pool: Mempool
  readonly miner: Miner
  readonly wallet: Wallet
}
export type Params = readonly unknown[]
/** `params` by position, as a caller gave them. */
export type Command = (node: BitcoinNode, params: Params) => unknown

export function textIn(params: Params, at: number, name: string): string {
  const given = params[at]
  if (given === undefined || given === null) throw new NodeError(codes.misc, `${name} is required`)
  if (typeof given !== 'string') throw wrongType(at, name, given, 'string')
  return given
}

export function hashIn(params: Params, at: number, name: string): string {
  const given = textIn(params, at, name)
  if (given.length !== 64)
    throw new NodeError(codes.parameter, `${name} must be of length 64 (not ${given.length}, for '${given}')`)
  if (!/^[0-9a-f]{64}$/i.test(given))
    throw new NodeError(codes.parameter, `${name} must be hexadecimal string (not '${given}')`)
  return given.toLowerCase()
}

export function integerIn(params: Params, at: number, name: string): number {
  const given = params[at]
  if (given === undefined || given === null) throw new NodeError(codes.misc, `${name} is required`)
  if (typeof given !== 'number') throw wrongType(at, name, given, 'number')
  if (!Number.isInteger(given) || Math.abs(given) >= 2 ** 31)
    throw new NodeError(codes.misc, 'JSON integer out of range')
  return given
}

export function listIn(params: Params, at: number, name: string): readonly unknown[] {
  const given = params[at]
  if (!Array.isArray(given)) throw wrongType(at, name, given, 'array')
  return given
}

function wrongType(at: number, name: string, given: unknown, wanted: string): NodeError {
  const type = given === null ? 'null' : Array.isArray(given) ? 'array' : typeof given
  return new NodeError(
    codes.type,
    `Wrong type passed:\n{\n    "Position ${at + 1} (${name})": "JSON value of type ${type} is not of expected type ${wanted}"\n}`,
  )
}
