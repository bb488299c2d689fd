import { bytesOf, TOKEN_PROGRAM } from './address.ts'
import { inContext, lamportsIn, listIn, objectIn, textIn } from './replies.ts'
import { NoAnswer, type Rpc } from './rpc.ts'

export type Account = {
  readonly lamports: bigint
  /** The program that may change it. */
  readonly owner: string
  readonly data: Buffer
}

const AT_ONCE = 100

/** As they are in the newest final slot, which they are told with. Null: not there. */
export async function readAccounts(
  rpc: Rpc,
  addresses: readonly string[],
): Promise<{ readonly slot: number; readonly accounts: readonly (Account | null)[] }> {
  const options = { encoding: 'base64', commitment: 'finalized' }
  const { slot, value } = inContext(await rpc.call('getMultipleAccounts', addresses, options), 'accounts')
  const accounts = listIn(value, 'accounts').map((each) => (each === null ? null : readAccount(each)))
  if (accounts.length !== addresses.length) throw new NoAnswer('accounts', 'not as many as were asked for')
  return { slot, accounts }
}

/** As many as one question may be about. */
export function inPortions(addresses: readonly string[]): readonly (readonly string[])[] {
  const portions: (readonly string[])[] = []
  for (let at = 0; at < addresses.length; at += AT_ONCE) portions.push(addresses.slice(at, at + AT_ONCE))
  return portions
}

function readAccount(value: unknown): Account {
  const { lamports, owner, data } = objectIn(value, 'account')
  const [bytes] = listIn(data, 'account data')
  return {
    lamports: lamportsIn(lamports, 'account lamports'),
    owner: textIn(owner, 'account owner'),
    data: Buffer.from(textIn(bytes, 'account data'), 'base64'),
  }
}

export const HOLDING_BYTES = 165

export type Holding = { readonly units: bigint; readonly isFrozen: boolean }

/**
 * What somebody holds of a token in one account: https://github.com/solana-program/token, interface/src/state.rs. Undefined:
 * it is something else, or not theirs.
 */
export function readHolding(account: Account, mint: string, owner: string): Holding | undefined {
  const { data } = account
  if (account.owner !== TOKEN_PROGRAM || data.length !== HOLDING_BYTES) return undefined
  const isTheirs = data.subarray(0, 32).equals(bytesOf(mint)) && data.subarray(32, 64).equals(bytesOf(owner))
  const state = data[108]
  if (!isTheirs || (state !== 1 && state !== 2)) return undefined
  return { units: data.readBigUInt64LE(64), isFrozen: state === 2 }
}

const MINT_BYTES = 82

/** Undefined: it is no mint. */
export function decimalsOfMint({ owner, data }: Account): number | undefined {
  const isReady = owner === TOKEN_PROGRAM && data.length === MINT_BYTES && data[45] === 1
  return isReady ? data[44] : undefined
}
