import type { AssetId } from '../../domain/catalog/assets.ts'
import { amountOf, fromChainUnits, toChainUnits } from '../../domain/money/amount.ts'
import { larger } from '../../domain/money/larger.ts'
import { accept, type Outcome, refuse } from '../../domain/outcome.ts'
import type { Outflow } from '../../domain/payouts/intent.ts'
import { solanaFee, unitPriceWithin } from '../../domain/payouts/solana_fee.ts'
import type { DraftRejection, FeeBid, PayoutEstimate } from '../chain.ts'
import { type Account, readAccounts, readHolding } from './accounts.ts'
import { holdingOf, SYSTEM_PROGRAM } from './address.ts'
import type { Blocks } from './blocks.ts'
import { priorityWithin, type Rents, readUnitPrice, TOKEN_UNITS, TRANSFER_UNITS, withRoom } from './fees.ts'
import { isNodeTrouble, NoAnswer, type Rpc } from './rpc.ts'

export type Bidder = {
  readonly rpc: Rpc
  readonly blocks: Blocks
  readonly rents: () => Promise<Rents>
  readonly feeLamportsMax: bigint
  readonly reserveAddress: () => Promise<string> | string
  /** The mint of a token asset, or null for SOL; throws for an asset of another chain. */
  readonly mintOf: (asset: AssetId) => string | null
}

type Bid = Outcome<FeeBid, DraftRejection>

/** Looks at who is to be paid as the chain will, and prices it. */
export async function bid(bidder: Bidder, outflow: Outflow): Promise<Bid> {
  try {
    const { rpc, feeLamportsMax } = bidder
    const reserve = await bidder.reserveAddress()
    const mint = bidder.mintOf(outflow.asset)
    const owner = outflow.from?.address ?? reserve
    const units = mint === null ? TRANSFER_UNITS : TOKEN_UNITS
    // A token that leaves a deposit address is paid for by the reserve, which signs as well.
    const signatures = mint !== null && outflow.from !== undefined ? 2 : 1
    const left = priorityWithin(feeLamportsMax, signatures)
    if (!left.ok) return left
    const unitPriceMicroLamports = lower(
      await readUnitPrice(rpc, reserve),
      unitPriceWithin(left.value, units),
    )
    const feeLamports = solanaFee(signatures, units, unitPriceMicroLamports)
    const rents = await bidder.rents()
    const parts = { outflow, owner, reserve, feeLamports, rents }
    const problem =
      mint === null ? await coinProblem(rpc, parts) : await tokenProblem(rpc, { ...parts, mint })
    if (problem !== null) return refuse(problem)
    const reference = await readReference(bidder.blocks)
    const holdingRentLamports = rents.holding
    const price = { units, unitPriceMicroLamports, feeLamports, holdingRentLamports }
    return accept({ family: 'solana', ...price, reference })
  } catch (error) {
    if (isNodeTrouble(error)) return refuse({ code: 'network', message: error.message })
    throw error
  }
}

type Parts = {
  readonly outflow: Outflow
  readonly owner: string
  readonly reserve: string
  readonly feeLamports: bigint
  readonly rents: Rents
}

async function coinProblem(
  rpc: Rpc,
  { outflow, owner, feeLamports, rents }: Parts,
): Promise<DraftRejection | null> {
  const units = toChainUnits(amountOf(outflow.asset, outflow.units))
  const { accounts } = await readAccounts(rpc, [outflow.address, owner])
  const [payee = null, source = null] = accounts
  const stranger = strangerProblem(payee)
  if (stranger !== null) return stranger
  // What a deposit address holds is told to `draft`, and all of it goes: less its own fee, which leaves nothing behind.
  const arriving = outflow.from === undefined ? units : units - feeLamports
  if (payee === null && arriving < rents.account)
    return {
      code: 'destination',
      message: `the account is not there, and takes ${rents.account} lamports to be made`,
    }
  if (outflow.from !== undefined) return null
  return shortage(source, units + feeLamports + rents.account)
}

async function tokenProblem(
  rpc: Rpc,
  { outflow, owner, reserve, feeLamports, rents, mint }: Parts & { readonly mint: string },
): Promise<DraftRejection | null> {
  const units = toChainUnits(amountOf(outflow.asset, outflow.units))
  const [from, to] = [await holdingOf(owner, mint), await holdingOf(outflow.address, mint)]
  const { accounts } = await readAccounts(rpc, [outflow.address, reserve, from, to])
  const [payee = null, payer = null, source = null, target = null] = accounts
  const stranger = strangerProblem(payee)
  if (stranger !== null) return stranger
  const isThere = target !== null && !isPlain(target)
  const theirs = isThere ? readHolding(target, mint, outflow.address) : null
  // Whoever gave the account away would have somebody else paid.
  if (theirs === undefined)
    return { code: 'destination', message: 'where the token should lie is not its owner’s any more' }
  if (theirs?.isFrozen === true)
    return { code: 'destination', message: 'the account of the destination is frozen' }
  const ours = source === null ? undefined : readHolding(source, mint, owner)
  if (ours === undefined || ours.units < units)
    return { code: 'funds', message: `${ours?.units ?? 0n} of ${units} units of ${outflow.asset} are there` }
  if (ours.isFrozen) return { code: 'network', message: `the ${outflow.asset} of ${owner} are frozen` }
  const rent = isThere ? 0n : larger(rents.holding - (target?.lamports ?? 0n), 0n)
  return shortage(payer, feeLamports + rents.account + rent)
}

/**
 * Lamports alone, which anybody can send to any address. Where an account for a token is to be made, they count towards its rent:
 * https://github.com/solana-program/associated-token-account, create_pda_account
 */
function isPlain({ owner, data }: Account): boolean {
  return owner === SYSTEM_PROGRAM && data.length === 0
}

/** Programs, what others hold of a token, and the like: who pays there has to know them. */
function strangerProblem(payee: Account | null): DraftRejection | null {
  if (payee === null || isPlain(payee)) return null
  return { code: 'destination', message: `the address is an account of the program ${payee.owner}` }
}

function shortage(payer: Account | null, needed: bigint): DraftRejection | null {
  const held = payer?.lamports ?? 0n
  if (held >= needed) return null
  return { code: 'funds', message: `with fees ${needed} lamports are needed, the reserve holds ${held}` }
}

/** The newest final block: what refers to it can be in no other chain, and lives for 151 blocks from there on. */
async function readReference(blocks: Blocks) {
  const { height: slot, hash: blockhash, blockHeight } = await blocks.head()
  if (blockHeight === null) throw new NoAnswer('getSlot', 'the newest final slot was skipped')
  return { slot, blockhash, height: blockHeight }
}

/** No more than is ever bid. Nobody knows yet who is to be paid: of a token they may have nothing so far. */
export async function estimatePayout(
  { rpc, rents, feeLamportsMax, mintOf, reserveAddress }: Bidder,
  asset: AssetId,
): Promise<PayoutEstimate> {
  const unitPrice = await readUnitPrice(rpc, await reserveAddress())
  const isCoin = mintOf(asset) === null
  const fee = lower(withRoom(solanaFee(1, isCoin ? TRANSFER_UNITS : TOKEN_UNITS, unitPrice)), feeLamportsMax)
  const lamports = isCoin ? fee : fee + (await rents()).holding
  return {
    cost: fromChainUnits('SOL:SOL', lamports),
    isAboveFeeCap: !priorityWithin(feeLamportsMax, 1).ok,
  }
}

function lower(one: bigint, other: bigint): bigint {
  return one < other ? one : other
}
