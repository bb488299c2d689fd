import { Address, OutScript, Script, TEST_NETWORK } from '@scure/btc-signer'
import { OPNames } from '@scure/btc-signer/script.js'
import { toHex } from './transaction.ts'

/** Regtest shares testnet's version bytes but not its prefix. */
const REGTEST = { ...TEST_NETWORK, bech32: 'bcrt' }
export const addresses = Address(REGTEST)

/** In bitcoind's words (script/solver.cpp). */
export type ScriptType =
  | 'pubkey'
  | 'pubkeyhash'
  | 'scripthash'
  | 'witness_v0_keyhash'
  | 'witness_v0_scripthash'
  | 'witness_v1_taproot'
  | 'anchor'
  | 'witness_unknown'
  | 'nulldata'
  | 'nonstandard'

const SHAPES: readonly (readonly [ScriptType, RegExp])[] = [
  ['pubkey', /^(21(02|03).{64}|4104.{128})ac$/],
  ['pubkeyhash', /^76a914.{40}88ac$/],
  ['scripthash', /^a914.{40}87$/],
  ['witness_v0_keyhash', /^0014.{40}$/],
  ['witness_v0_scripthash', /^0020.{64}$/],
  ['witness_v1_taproot', /^5120.{64}$/],
  ['anchor', /^51024e73$/],
]

export function scriptType(script: Uint8Array): ScriptType {
  const hex = toHex(script)
  const found = SHAPES.find(([, shape]) => shape.test(hex))
  if (found !== undefined) return found[0]
  const [version = 0, length = 0] = script
  const isProgram = script.length >= 4 && script.length <= 42 && length === script.length - 2
  if (version >= 0x51 && version <= 0x60 && isProgram) return 'witness_unknown'
  if (version === 0x6a && isPushOnly(script.subarray(1))) return 'nulldata'
  return 'nonstandard'
}

export function isPushOnly(script: Uint8Array): boolean {
  try {
    return Script.decode(script).every((item) => typeof item !== 'string')
  } catch {
    return false
  }
}

export function scriptOfAddress(address: string): Uint8Array | undefined {
  try {
    return OutScript.encode(addresses.decode(address))
  } catch {
    return undefined
  }
}

export function addressOfScript(script: Uint8Array): string | undefined {
  const type = scriptType(script)
  if (type === 'nulldata' || type === 'nonstandard' || type === 'pubkey') return undefined
  try {
    return addresses.encode(OutScript.decode(script) as Parameters<typeof addresses.encode>[0])
  } catch {
    return undefined
  }
}

/** Readable, roughly as bitcoind prints it. */
export function asm(script: Uint8Array): string {
  try {
    return Script.decode(script)
      .map((item) => (typeof item === 'object' ? toHex(item) : typeof item === 'number' ? item : spell(item)))
      .join(' ')
  } catch {
    return '[error]'
  }
}

function spell(name: string): string {
  return Object.values(OPNames).includes(name as never) && !name.startsWith('OP_') ? `OP_${name}` : name
}

/** Can never be spent, so it is no coin. */
export function isUnspendable(script: Uint8Array): boolean {
  return script[0] === 0x6a || script.length > 10_000
}
