import type { State } from '../simulated/state.ts'

/** What runs on an account. `token` is the code of the real token contract; the others are there for tests. */
export type ContractKind = 'system' | 'token' | 'liar' | 'forwarder' | 'payer' | 'refuser'

/** https://docs.antelope.io/docs/latest/guides/keys-and-permissions */
export type Authority = {
  readonly threshold: number
  readonly keys: readonly { readonly key: string; readonly weight: number }[]
  readonly accounts: readonly {
    readonly permission: { readonly actor: string; readonly permission: string }
    readonly weight: number
  }[]
  readonly waits: readonly never[]
}

export type Account = {
  readonly createdAtMs: number
  readonly contract?: ContractKind
  readonly owner: Authority
  readonly active: Authority
}

/** In the smallest unit of the token. */
export type Balance = { readonly units: bigint }
export type Token = {
  readonly precision: number
  readonly issuer: string
  readonly supply: bigint
  readonly supplyMax: bigint
}
/** Whom a forwarder tells of every transfer that it is told of. */
export type Forwarding = { readonly to: string }
/** By which transactions name a block: https://docs.antelope.io/docs/latest/advanced-topics/transactions-protocol */
export type BlockReference = { readonly id: string }
export type Sequence = { readonly last: number }

export type EosEntry = Account | Balance | Token | Forwarding | BlockReference | Sequence

export const keys = {
  account: (name: string) => `account:${name}`,
  balance: (contract: string, owner: string, code: string) => `balance:${contract}:${owner}:${code}`,
  token: (contract: string, code: string) => `token:${contract}:${code}`,
  forwarding: (name: string) => `forwarding:${name}`,
  /** A transaction has room for 16 bits of a block's number. */
  block: (height: number) => `block:${height & 0xffff}`,
  sequence: 'sequence',
} as const

/** Made of the hash of a word: nobody has the private half. */
const NOBODY = 'PUB_K1_5eKDZ32SDKnJ7fxroPi3jc9iNfkzWyrbnMoUeKxoJCGFMRWKYa'

/** Accounts of nobody's are there from the beginning, so that there is always somebody to pay to. */
const OUTSIDER = /^anyone[a-z1-5]{6}$/
export const OUTSIDER_PREFIX = 'anyone'

export function readAccount(state: State<EosEntry>, name: string): Account | undefined {
  const found = state.get(keys.account(name)) as Account | undefined
  if (found !== undefined || !OUTSIDER.test(name)) return found
  const nobody = authorityOf(NOBODY)
  return { createdAtMs: 0, owner: nobody, active: nobody }
}

export function readBalance(state: State<EosEntry>, contract: string, owner: string, code: string) {
  return state.get(keys.balance(contract, owner, code)) as Balance | undefined
}

export function readToken(state: State<EosEntry>, contract: string, code: string): Token | undefined {
  return state.get(keys.token(contract, code)) as Token | undefined
}

export function authorityOf(key: string): Authority {
  return { threshold: 1, keys: [{ key, weight: 1 }], accounts: [], waits: [] }
}
