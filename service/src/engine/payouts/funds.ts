import type { Chain, DraftRejection, Funds } from '../../chains/chain.ts'
import { takeChangeAddress } from '../../db/addresses.ts'
import { readHead } from '../../db/chain_heads.ts'
import type { ClaimedOutflow } from '../../db/claim_outflows.ts'
import { lockSpendableCoins } from '../../db/coins.ts'
import type { Sql } from '../../db/database.ts'
import { findLeavingOutflows, sumLeavingOutflows } from '../../db/leaving_outflows.ts'
import { lockAccount, takeNonce } from '../../db/nonces.ts'
import { assert } from '../../domain/assert.ts'
import { chainFacts } from '../../domain/catalog/networks.ts'
import type { KeyPath } from '../../domain/payouts/intent.ts'
import { heldDeep } from '../deep_height.ts'
import { reserveAddress, spendableBalance } from '../reserves.ts'
import type { SigningWorld } from '../world.ts'
import type { KeepClaim } from './claim.ts'
import { type FeePurse, readFeePurse } from './fee_cover.ts'
import { excludesByTime } from './over.ts'
import { findOutbid } from './plan_filler.ts'
import { readFillerFunds } from './take_back.ts'

/** What an account chain says of the account that signs. Null: a coin chain, whose coins are in the database. */
export type Purse = {
  readonly key: KeyPath
  readonly address: string
  /** Null where accounts have none. */
  readonly minedNonce: number | null
  /** Of the reserve, in the outflow's asset; of a deposit address, in native coin, which has to pay for the gas. */
  readonly held: bigint
  /** Outflows of the reserve, noted before `held` was asked, so `held` may or may not include their money. */
  readonly leaving: readonly string[]
  /** Where the reserve pays the fee, and has to have it when the transaction is in a block. */
  readonly fees: FeePurse | null
} | null

/** Null on a coin chain. Asks nodes: not to be called in a transaction. */
export async function readPurse(
  world: SigningWorld,
  chain: Chain,
  outflow: ClaimedOutflow,
  keep: KeepClaim,
): Promise<Purse> {
  if (chain.model !== 'account') return null
  const { from } = outflow
  const address = await reserveAddress(world.db, chain)
  const fees = await readFeePurse(world.db, chain, outflow, address)
  await keep()
  if (from !== undefined) {
    const held = await heldDeep(world.db, chain, from.address)
    await keep()
    return { ...from, minedNonce: await minedNonce(chain, from.address), held, leaving: [], fees }
  }
  const leaving = await findLeavingOutflows(world.db, outflow.asset, await balanceHeight(world.db, chain))
  const held = await spendableBalance(chain, outflow.asset, [address])
  await keep()
  const key = { purpose: 'reserve', index: 0 } as const
  return { key, address, minedNonce: await minedNonce(chain, address), held, leaving, fees }
}

/** The block that a balance which is asked for now is of at the least; one more that is counted as leaving only makes one wait. */
async function balanceHeight(sql: Sql, { id, balanceLagBlocks = 0 }: Chain): Promise<number> {
  const head = await readHead(sql, id)
  assert(head !== null, 'a chain that pays is watched')
  return head.block.height + 1 - chainFacts[id].confirmations - balanceLagBlocks
}

async function minedNonce(chain: Chain, address: string): Promise<number | null> {
  return excludesByTime(chain) ? null : chain.minedNonce(address)
}

/**
 * What a first attempt is drafted out of: the nonce is taken, the account or the coins are locked. Throws `DraftRefused` where the reserve
 * does not hold what is to leave, or no change address is ready.
 */
export async function takeFunds(
  world: SigningWorld,
  chain: Chain,
  outflow: ClaimedOutflow,
  purse: Purse,
  tx: Sql,
): Promise<Funds> {
  if (purse !== null) {
    const { key, address, minedNonce, held } = purse
    if (minedNonce === null) {
      if (outflow.from !== undefined) return { model: 'timed', from: key, held }
      await lockAccount(tx, chain.id, address)
      await requireCover(tx, outflow, purse)
      return { model: 'timed', from: key }
    }
    const nonce = outflow.nonce ?? (await takeNonce(tx, chain.id, address, minedNonce))
    if (outflow.from !== undefined) return { model: 'account', from: key, nonce, heldWei: held }
    await requireCover(tx, outflow, purse)
    const outbids = outflow.kind === 'filler' ? await findOutbid(tx, chain.id, nonce) : null
    return { model: 'account', from: key, nonce, ...(outbids !== null && { outbids }) }
  }
  if (outflow.fills !== null) return readFillerFunds(tx, outflow)
  const head = await readHead(tx, chain.id)
  assert(head !== null, 'a chain that pays is watched')
  const coins = await lockSpendableCoins(tx, chain.id, head.block.height, chainFacts[chain.id].confirmations)
  const change = await takeChangeAddress(tx, chain.family, chain.id, world.clock.nowMs())
  if (change === null) throw new DraftRefused({ code: 'network', message: 'no change address is ready yet' })
  return { model: 'coins', coins, change }
}

/**
 * A node looks at the last block only: payouts that wait for the next one are still in the balance it tells, and one
 * payout too many would be mined and fail there. Those that are mined and not final yet count twice, which only ever
 * makes one wait. Asked after the nonce was taken or the account locked, because that makes the others wait for
 * this one.
 */
async function requireCover(
  tx: Sql,
  outflow: ClaimedOutflow,
  { held, leaving }: NonNullable<Purse>,
): Promise<void> {
  if (outflow.units === 0n) return
  const left = held - (await sumLeavingOutflows(tx, outflow.asset, leaving))
  if (left >= outflow.units) return
  const message = `the reserve of ${outflow.asset} holds ${held} ledger units, of which ${held - left} are leaving`
  throw new DraftRefused({ code: 'funds', message })
}

/** Thrown so that whatever the transaction took is given back. */
export class DraftRefused extends Error {
  readonly rejection: DraftRejection

  constructor(rejection: DraftRejection) {
    super(rejection.message)
    this.rejection = rejection
  }
}
