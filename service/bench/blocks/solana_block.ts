import { createHash } from 'node:crypto'
import { base58 } from '@scure/base'
import { isOffCurveAddress } from '@solana/kit'
import type { Chance } from '../../test/harness/chance.ts'
import { LISTED_TOKENS, ownProgram, paidIn } from './own_addresses.ts'

/** What a node answers about one block, as JSON text: with its transactions, and without. */
export type SolanaBlock = { readonly hash: string; readonly whole: string; readonly header: string }

/** 3,500 to 4,000 in a second (https://explorer.solana.com) are so many in a slot of 0.4 seconds; six in ten are votes. */
const TRANSACTIONS = 1_600
const VOTES_IN_TEN = 6

const SYSTEM_PROGRAM = '1'.repeat(32)
const VOTE_PROGRAM = 'Vote111111111111111111111111111111111111111'
const TOKEN_PROGRAM = 'TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA'
const ASSOCIATED_PROGRAM = 'ATokenGPvbdGVxr1b2hvZbsiqW5xWH25efTNsLJA8knL'

/** The address of a key of ours: 12 bytes that are always the same, and the 20 of its own. */
export function ownSolanaAddress(index: number): string {
  return base58.encode(Buffer.concat([Buffer.alloc(12, 0x33), ownProgram('SOL', index)]))
}

/**
 * A block as mainnet has them, as `transactionDetails: 'accounts'` tells it: votes, transfers, and swaps that touch many
 * accounts and tokens. Some have failed.
 */
export function makeSolanaBlock(chance: Chance, parentHash: string, slot: number): SolanaBlock {
  const hash = address(chance)
  const ours = paidIn(slot).map((index, ordinal) => {
    const to = ownSolanaAddress(index)
    return ordinal < 2 ? tokenTransfer(chance, to) : transfer(chance, to)
  })
  const others = Array.from({ length: TRANSACTIONS - ours.length }, () => someTransaction(chance))
  const header = {
    blockHeight: slot,
    blockTime: 1_800_000_000 + Math.floor(slot * 0.4),
    blockhash: hash,
    parentSlot: Math.max(0, slot - 1),
    previousBlockhash: parentHash,
  }
  // Whoever leads a slot gets its fees.
  const fees = {
    pubkey: address(chance),
    lamports: 18_000_000,
    postBalance: 9_000_000_000,
    rewardType: 'Fee',
  }
  const transactions = chance.shuffled([...others, ...ours])
  return {
    hash,
    header: JSON.stringify(header),
    whole: JSON.stringify({ ...header, rewards: [{ ...fees, commission: null }], transactions }),
  }
}

type Key = { readonly pubkey: string; readonly lamports: readonly [before: number, after: number] }
type Token = { readonly at: number; readonly mint: string; readonly owner: string; readonly units: number }

function told(chance: Chance, keys: readonly Key[], before: readonly Token[], after: readonly Token[]) {
  const isFailed = before.length > 4 && chance.below(3) === 0
  const err = isFailed ? { InstructionError: [3, { Custom: 6_001 }] } : null
  const token = ({ at, mint, owner, units }: Token) => ({
    accountIndex: at,
    mint,
    owner,
    programId: TOKEN_PROGRAM,
    uiTokenAmount: {
      amount: `${units}`,
      decimals: 6,
      uiAmount: units / 1e6,
      uiAmountString: `${units / 1e6}`,
    },
  })
  return {
    meta: {
      err,
      fee: 5_000,
      preBalances: keys.map(({ lamports }) => lamports[0]),
      postBalances: keys.map(({ lamports }) => lamports[isFailed ? 0 : 1]),
      preTokenBalances: before.map(token),
      postTokenBalances: (isFailed ? before : after).map(token),
      status: isFailed ? { Err: err } : { Ok: null },
    },
    transaction: {
      accountKeys: keys.map(({ pubkey }, at) => ({
        pubkey,
        signer: at === 0,
        source: at < 20 ? 'transaction' : 'lookupTable',
        writable: at < keys.length / 2,
      })),
      signatures: [base58.encode(chance.bytes(64))],
    },
    version: keys.length > 20 ? 0 : 'legacy',
  }
}

function someTransaction(chance: Chance) {
  const dice = chance.below(10)
  if (dice < VOTES_IN_TEN) return vote(chance)
  if (dice < VOTES_IN_TEN + 1) return transfer(chance, address(chance))
  return dice < VOTES_IN_TEN + 2 ? tokenTransfer(chance, address(chance)) : swap(chance)
}

function payer(chance: Chance): Key {
  const lamports = chance.between(10_000_000, 2 ** 40)
  return { pubkey: address(chance), lamports: [lamports, lamports - 5_000] }
}

const still = (pubkey: string, lamports = 1): Key => ({ pubkey, lamports: [lamports, lamports] })

function vote(chance: Chance) {
  return told(chance, [payer(chance), still(address(chance), 27_000_000), still(VOTE_PROGRAM)], [], [])
}

function transfer(chance: Chance, to: string) {
  const lamports = chance.between(1_000_000, 2 ** 31)
  const keys = [payer(chance), { pubkey: to, lamports: [0, lamports] } as const, still(SYSTEM_PROGRAM)]
  return told(chance, keys, [], [])
}

function tokenTransfer(chance: Chance, owner: string) {
  const mint = LISTED_TOKENS.SOL
  const [from, units] = [payer(chance), chance.between(1_000_000, 2 ** 31)]
  const places = [still(address(chance), 2_039_280), still(holdingOf(owner, mint), 2_039_280)]
  const sender = { at: 1, mint, owner: from.pubkey }
  return told(
    chance,
    [from, ...places, still(mint), still(TOKEN_PROGRAM)],
    [{ ...sender, units: units * 2 }],
    [
      { ...sender, units },
      { at: 2, mint, owner, units },
    ],
  )
}

function swap(chance: Chance) {
  const keys = [payer(chance), ...Array.from({ length: 30 }, () => still(address(chance), 2_039_280))]
  const mint = address(chance)
  const tokens = Array.from({ length: 8 }, (_, place) => ({
    at: place + 1,
    mint: place % 2 === 0 ? mint : LISTED_TOKENS.SOL,
    owner: address(chance),
    units: chance.between(1_000_000, 2 ** 40),
  }))
  return told(
    chance,
    keys,
    tokens,
    tokens.map((token) => ({ ...token, units: token.units + 7 })),
  )
}

/** https://solana.com/docs/core/pda: the first address, counted down, that is no key. */
function holdingOf(owner: string, mint: string): string {
  const seeds = [owner, TOKEN_PROGRAM, mint].map((text) => base58.decode(text))
  for (let bump = 255; bump >= 0; bump -= 1) {
    const hashed = createHash('sha256')
    for (const part of [...seeds, Buffer.from([bump]), base58.decode(ASSOCIATED_PROGRAM)]) hashed.update(part)
    const found = base58.encode(hashed.update('ProgramDerivedAddress').digest())
    if (isOffCurveAddress(found as Parameters<typeof isOffCurveAddress>[0])) return found
  }
  throw new Error('there is none')
}

function address(chance: Chance): string {
  return base58.encode(chance.bytes(32))
}
