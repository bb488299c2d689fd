import { createHash } from 'node:crypto'

/** The 20 bytes that stand in an address of ours; the node and the watcher agree on them. */
export function ownProgram(chain: string, index: number): Buffer {
  return createHash('sha256').update(`${chain} ${index}`).digest().subarray(0, 20)
}

/** Where all share one account: that account, and the tag that tells a key apart. */
export const OWN_ACCOUNT = {
  XRP: 'rPT1Sjq2YGrBMTttX4GZHjKu9dyfzbpAYe',
  XLM: 'GA7QYNF7SOWQ3GLR2BGMZEHXAVIRZA4KVWLTJJFC7MGXUA74P7UJVSGZ',
  EOS: 'cambistswaps',
} as const

/** Of the main network; a node says it each time. */
export const EOS_CHAIN_ID = 'aca376f206b8fc25a6ed44dbdc66547c36c6c33e3a119ffbeaef943642f0e906'

export function ownTag(index: number): number {
  return index + 1
}

/** The tokens that are listed, in the order in which a block pays them. */
export const LISTED_TOKENS = {
  ETH: ['0x1111111111111111111111111111111111111111', '0x2222222222222222222222222222222222222222'],
  BNB: ['0x1111111111111111111111111111111111111111', '0x2222222222222222222222222222222222222222'],
  TRX: '41a614f803b6fd780986a42c78ec9c7f77e6ded13c',
  SOL: 'EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v',
} as const

/** Which keys are paid in a block. */
export const PAID_A_BLOCK = 3

export function paidIn(height: number): readonly number[] {
  return Array.from({ length: PAID_A_BLOCK }, (_, ordinal) => height * PAID_A_BLOCK + ordinal)
}
