import type { View } from '../simulated/chain.ts'
import type { Stage } from '../simulated/simulated_network.ts'
import { parseAddress } from './addresses.ts'
import type { Evm } from './evm.ts'
import { solidHeight, type Tron } from './rules.ts'

export type Params = Readonly<Record<string, unknown>>
export type Answer = Record<string, unknown>
export type TronNode = Stage<Tron> & { readonly evm: Evm }

/** A question is answered on the head (/wallet) or on what is solid (/walletsolidity). */
export type Asked = {
  readonly node: TronNode
  readonly view: View<Tron>
  readonly params: Params
  readonly isSolid: boolean
}

/** What java-tron answers when something in it throws. */
export class CommandError extends Error {
  readonly exception: string
  constructor(exception: string, message: string) {
    super(message)
    this.exception = exception
  }
}

export function solidView(node: TronNode): View<Tron> {
  return node.chain.view(solidHeight(node.told().head))
}

export function addressIn(params: Params, name: string): string {
  const address = parseAddress(params[name])
  if (address === undefined)
    throw new CommandError('java.lang.IllegalArgumentException', `invalid ${name}: ${params[name]}`)
  return address
}

export function amountIn(params: Params, name: string): bigint {
  const value = params[name] ?? 0
  if (!/^-?\d+$/.test(String(value)))
    throw new CommandError('java.lang.NumberFormatException', `invalid ${name}: ${value}`)
  return BigInt(String(value))
}

export function hexIn(params: Params, name: string): string {
  const value = String(params[name] ?? '').toLowerCase()
  if (!/^([0-9a-f]{2})*$/.test(value))
    throw new CommandError('org.bouncycastle.util.encoders.DecoderException', `invalid ${name}`)
  return value
}

export function messageHex(text: string): string {
  return Buffer.from(text).toString('hex')
}
