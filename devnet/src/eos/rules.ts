import type { Block, Rules, View } from '../simulated/chain.ts'
import type { Draft, State } from '../simulated/state.ts'
import { type Eos, type EosResult, sealBlock, slotTimeMs } from './blocks.ts'
import { SYSTEM_ACCOUNT, TOKEN_CONTRACT } from './contracts.ts'
import { type EosTransaction, sha256 } from './decode_transaction.ts'
import { authorityOf, type ContractKind, type EosEntry, keys } from './entries.ts'
import { Refusal } from './refusal.ts'
import { attemptOf, checkHeader, countOne, runTransaction } from './run_transaction.ts'

export type EosBlock = Block<Eos>

/** Whoever signs for another network signs for none here. */
export const CHAIN_ID = sha256(Buffer.from('cambist devnet eos').toString('hex'))

/** How far the last irreversible block is behind the head. On the main network it was 330, and is 2 or 3 today. */
export const REVERSIBLE_BLOCKS = 5
export const BLOCK_STEP_MS = 500

/** The key that every Antelope network starts with; its private half is public. */
export const GENESIS_KEY = 'PUB_K1_6MRyAjQq8ud7hVNYcfnVPJqcVpscN5So8BhtHuGYqET5BoDq63'
export const GENESIS_PRIVATE_KEY = '5KQwrPbwdL6PhXujxW37FSSQZ1JiwsST4cqQzDeyXtP79zkvFD3'

export const FAUCET = 'devnetfaucet'

/** What tests need that lies, errs or pays in ways that are hard to see. All belong to the genesis key. */
export const testContracts = {
  /** The code of the real token contract, and an EOS of its own. */
  fakeToken: 'eosiotokenns',
  /** Its action `transfer` takes any words, tells both sides, and moves nothing. */
  liar: 'liarcontract',
  /** `forward {to}`: from then on it tells `to` of every transfer that it is told of. */
  forwarder: 'forwarder111',
  /** `pay {to, quantity, memo}`: a true transfer, as an inline action. */
  payer: 'inlinepayer1',
  /** No transfer to it succeeds. */
  refuser: 'refusesmoney',
} as const

const GENESIS: readonly (readonly [name: string, contract?: ContractKind])[] = [
  [SYSTEM_ACCOUNT, 'system'],
  [TOKEN_CONTRACT, 'token'],
  [FAUCET],
  [testContracts.fakeToken, 'token'],
  [testContracts.liar, 'liar'],
  [testContracts.forwarder, 'forwarder'],
  [testContracts.payer, 'payer'],
  [testContracts.refuser, 'refuser'],
]

/** A billion, with four decimals. */
const PLENTY = 10_000_000_000_000n

export const eosRules: Rules<Eos> = {
  firstHeight: 1,
  blockStepMs: BLOCK_STEP_MS,
  afterReorg: 'transactions wait again',
  genesis: fillGenesis,
  run: (tx, draft, place) => {
    const timeMs = slotTimeMs(place.timeMs)
    if (tx.notBeforeMs !== undefined && timeMs < tx.notBeforeMs) return 'waits'
    try {
      if (tx.notBeforeMs === undefined) checkHeader(tx, draft, timeMs)
      if (tx.failsHard) return { included: failure(tx, draft) }
      return { included: { status: 'executed', traces: runTransaction(tx, draft, timeMs) } }
    } catch (error) {
      if (!(error instanceof Refusal)) throw error
      return tx.notBeforeMs === undefined ? 'void' : { included: failure(tx, draft) }
    }
  },
  seal: (block, draft) => {
    const seal = sealBlock(block, draft.changes(), countOne(draft))
    draft.set(keys.block(block.height), { id: seal.hash })
    return seal
  },
}

function failure(tx: EosTransaction, state: State<EosEntry>): EosResult {
  return { status: 'hard_fail', traces: attemptOf(tx, state) }
}

function fillGenesis(draft: Draft<EosEntry>): void {
  const authority = authorityOf(GENESIS_KEY)
  for (const [name, contract] of GENESIS) {
    const account = { createdAtMs: 0, owner: authority, active: authority }
    draft.set(keys.account(name), contract === undefined ? account : { ...account, contract })
  }
  for (const [contract, code] of [
    [TOKEN_CONTRACT, 'EOS'],
    [TOKEN_CONTRACT, 'SYS'],
    [testContracts.fakeToken, 'EOS'],
  ] as const) {
    const token = { precision: 4, issuer: FAUCET, supply: PLENTY, supplyMax: PLENTY * 10n }
    draft.set(keys.token(contract, code), token)
    draft.set(keys.balance(contract, FAUCET, code), { units: PLENTY })
  }
}

export function irreversibleHeight({ head }: View<Eos>): number {
  return Math.max(eosRules.firstHeight, head.height - REVERSIBLE_BLOCKS)
}
