import { createHash } from 'node:crypto'
import { base58 } from '@scure/base'
import { address, createKeyPairSignerFromPrivateKeyBytes } from '@solana/kit'
import { findAssociatedTokenPda } from '@solana-program/token'
import type { Draft } from '../simulated/state.ts'
import { keys, type SolanaEntry } from './entries.ts'
import { rentExemptMinimum, SYSTEM_PROGRAM, TOKEN_2022_PROGRAM, TOKEN_PROGRAM } from './programs.ts'
import { holdingData, mintData } from './token_accounts.ts'

const digest = (text: string) => createHash('sha256').update(`cambist devnet ${text}`).digest()

/** Of all chains of this simulator. */
export const GENESIS_HASH = base58.encode(digest('solana'))

/** Holds everything at first, and may make, freeze and thaw every token. */
export const faucetKey = digest('faucet')

/** As many as a JSON number says exactly. */
const ALL_LAMPORTS = 8_000_000_000_000_000n
const ALL_UNITS = 1_000_000_000_000_000n
const DECIMALS = 6

export type MintName = 'USDC' | 'Lookalike' | 'Token2022'

/** The same addresses on every chain of this simulator. Nobody has their keys. */
export const mints: Readonly<Record<MintName, { readonly address: string; readonly program: string }>> = {
  USDC: { address: base58.encode(digest('USDC')), program: TOKEN_PROGRAM },
  Lookalike: { address: base58.encode(digest('lookalike of USDC')), program: TOKEN_PROGRAM },
  Token2022: { address: base58.encode(digest('USDC of the program of 2022')), program: TOKEN_2022_PROGRAM },
}

export function faucetSigner() {
  return createKeyPairSignerFromPrivateKeyBytes(faucetKey)
}

/** Where somebody's units of a token lie, unless they chose another place. */
export async function holdingOf(owner: string, mint: MintName): Promise<string> {
  const { address: mintAddress, program } = mints[mint]
  const seeds = { owner: address(owner), mint: address(mintAddress), tokenProgram: address(program) }
  const [holding] = await findAssociatedTokenPda(seeds)
  return holding
}

export async function prepareGenesis(): Promise<(draft: Draft<SolanaEntry>) => void> {
  const { address: faucet } = await faucetSigner()
  const names = Object.keys(mints) as MintName[]
  const holdings = await Promise.all(names.map((name) => holdingOf(faucet, name)))
  return (draft) => {
    draft.set(keys.account(faucet), { lamports: ALL_LAMPORTS, owner: SYSTEM_PROGRAM, data: '' })
    for (const [index, name] of names.entries()) {
      const { address: mint, program: owner } = mints[name]
      put(draft, mint, owner, mintData(faucet, ALL_UNITS, DECIMALS))
      put(draft, holdings[index] ?? '', owner, holdingData(mint, faucet, ALL_UNITS))
    }
  }
}

function put(draft: Draft<SolanaEntry>, at: string, owner: string, data: string): void {
  const lamports = rentExemptMinimum(Buffer.from(data, 'base64').length)
  draft.set(keys.account(at), { lamports, owner, data })
}
