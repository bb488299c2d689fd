import { base58 } from '@scure/base'
import { readAccount, type SolanaState } from './entries.ts'
import { TOKEN_2022_PROGRAM, TOKEN_PROGRAM } from './programs.ts'

/** https://github.com/solana-program/token: the sizes tell a mint from what somebody holds of it. */
export const MINT_BYTES = 82
export const TOKEN_ACCOUNT_BYTES = 165

export type TokenHolding = {
  readonly mint: string
  readonly owner: string
  readonly units: bigint
  readonly programId: string
}

/** Undefined when the account is nobody's holding of a token. */
export function readHolding(state: SolanaState, address: string): TokenHolding | undefined {
  const account = readAccount(state, address)
  if (account?.owner !== TOKEN_PROGRAM && account?.owner !== TOKEN_2022_PROGRAM) return undefined
  const data = Buffer.from(account.data, 'base64')
  // Byte 108 says whether it was made ready.
  if (data.length < TOKEN_ACCOUNT_BYTES || data[108] === 0) return undefined
  return {
    mint: base58.encode(data.subarray(0, 32)),
    owner: base58.encode(data.subarray(32, 64)),
    units: data.readBigUInt64LE(64),
    programId: account.owner,
  }
}

export function readMint(state: SolanaState, address: string) {
  const account = readAccount(state, address)
  const data = Buffer.from(account?.data ?? '', 'base64')
  if (data.length < MINT_BYTES) return undefined
  return { supply: data.readBigUInt64LE(36), decimals: data[44] ?? 0 }
}

/** As a node tells an amount of a token. */
export function uiAmount(units: bigint, decimals: number) {
  const digits = units.toString().padStart(decimals + 1, '0')
  const whole = digits.slice(0, digits.length - decimals)
  const fraction = digits.slice(digits.length - decimals).replace(/0+$/, '')
  const text = fraction === '' ? whole : `${whole}.${fraction}`
  return { amount: units.toString(), decimals, uiAmount: Number(text), uiAmountString: text }
}

export function mintData(authority: string, supply: bigint, decimals: number): string {
  const data = Buffer.alloc(MINT_BYTES)
  const key = base58.decode(authority)
  data.writeUInt32LE(1, 0)
  data.set(key, 4)
  data.writeBigUInt64LE(supply, 36)
  data[44] = decimals
  data[45] = 1
  data.writeUInt32LE(1, 46)
  data.set(key, 50)
  return data.toString('base64')
}

export function holdingData(mint: string, owner: string, units: bigint): string {
  const data = Buffer.alloc(TOKEN_ACCOUNT_BYTES)
  data.set(base58.decode(mint), 0)
  data.set(base58.decode(owner), 32)
  data.writeBigUInt64LE(units, 64)
  data[108] = 1
  return data.toString('base64')
}
