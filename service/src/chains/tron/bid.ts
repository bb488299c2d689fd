import type { AssetId } from '../../domain/catalog/assets.ts'
import { amountOf, fromChainUnits, toChainUnits } from '../../domain/money/amount.ts'
import { larger } from '../../domain/money/larger.ts'
import { accept, type Outcome, refuse } from '../../domain/outcome.ts'
import type { Outflow } from '../../domain/payouts/intent.ts'
import type { DraftRejection, FeeBid, PayoutEstimate } from '../chain.ts'
import { isObject } from '../replies.ts'
import { hexOf } from './address.ts'
import { callConstantly, heldUnits, readAccount, wordOf } from './balance.ts'
import type { Blocks } from './blocks.ts'
import { bytesCost, CALL_BYTES, type Prices, readPrices, TRANSFER_BYTES } from './fees.ts'
import { integerIn, objectIn, sunIn } from './replies.ts'
import { isNodeTrouble, NoAnswer, NodeRefusal, type Rpc } from './rpc.ts'

/** Long enough for whatever comes between drafting and a block: a signer elsewhere, a node that was away, full blocks. */
const LIFE_MS = 180_000
const SOLID_WITHIN_MS = 3_600_000

export type Bidder = {
  readonly rpc: Rpc
  readonly blocks: Blocks
  readonly feeLimitSunMax: bigint
  readonly reserveAddress: () => Promise<string> | string
  /** The contract of a token asset in hex, or null for TRX; throws for an asset of another chain. */
  readonly contractOf: (asset: AssetId) => string | null
}

type Bid = Outcome<FeeBid, DraftRejection>

/** Looks at who is to be paid as the chain will, simulates the call of a token, and prices it. */
export async function bid(bidder: Bidder, outflow: Outflow): Promise<Bid> {
  try {
    const prices = await readPrices(bidder.rpc)
    const contract = bidder.contractOf(outflow.asset)
    const owner = hexOf(outflow.from?.address ?? (await bidder.reserveAddress()))
    const parts = { outflow, owner, payee: hexOf(outflow.address), prices }
    return contract === null
      ? await bidForCoin(bidder, parts)
      : await bidForToken(bidder, { ...parts, contract })
  } catch (error) {
    if (isNodeTrouble(error)) return refuse({ code: 'network', message: error.message })
    throw error
  }
}

type Parts = {
  readonly outflow: Outflow
  readonly owner: string
  readonly payee: string
  readonly prices: Prices
}

async function bidForCoin(bidder: Bidder, { outflow, owner, payee, prices }: Parts): Promise<Bid> {
  const { rpc } = bidder
  if (payee === owner) return refuse({ code: 'destination', message: 'TRON refuses a transfer to oneself' })
  const account = await readAccount(rpc, 'wallet', payee)
  if (account?.type === 'Contract')
    return refuse({ code: 'destination', message: 'TRON refuses a transfer of TRX to a contract' })
  const otherSun = account === null ? prices.newAccount : await bytesCost(rpc, prices, owner, TRANSFER_BYTES)
  const needed = toChainUnits(amountOf(outflow.asset, outflow.units)) + otherSun
  // What a deposit address holds is told to `draft`.
  const held = outflow.from === undefined ? await heldNow(rpc, owner) : needed
  if (held < needed) return shortOf(`with fees ${needed} sun are needed, the reserve holds ${held}`)
  return accept({ ...(await lifetime(bidder)), energySun: 0n, feeLimitSun: 0n, otherSun })
}

async function bidForToken(bidder: Bidder, parts: Parts & { readonly contract: string }): Promise<Bid> {
  const { rpc, feeLimitSunMax } = bidder
  const { outflow, owner, payee, contract, prices } = parts
  const units = toChainUnits(amountOf(outflow.asset, outflow.units))
  const held = await heldUnits(rpc, 'wallet', contract, owner)
  if (held < units) return shortOf(`${held} of ${units} units of ${outflow.asset} are there`)
  const energy = await simulate(rpc, { owner, contract, payee, units })
  if (energy === null) {
    const canPayAnyone =
      outflow.from === undefined && (await simulate(rpc, { ...parts, payee: owner, units })) !== null
    const message = `the token refuses a transfer of ${units} units`
    return refuse({ code: canPayAnyone ? 'destination' : 'network', message })
  }
  const energyCost = energyWithin(feeLimitSunMax, energy * prices.energy)
  if (!energyCost.ok) return energyCost
  const otherSun = await bytesCost(rpc, prices, owner, CALL_BYTES)
  const ceilingSun =
    (await ceilingOf(rpc, outflow, { owner, contract, payee, units }, energy)) * prices.energy
  // A cap between the two is the operator's choice: what can be paid now is not held back for what a payee might do meanwhile, and
  // what is burnt when it does is ours to bear (`isOurFault`).
  const feeLimitSun = ceilingSun < feeLimitSunMax ? ceilingSun : feeLimitSunMax
  // All of it, though most of it is hardly ever taken: a call gets no more energy than its owner can pay for.
  const needed = feeLimitSun + otherSun
  const heldSun = outflow.from === undefined ? await heldNow(rpc, owner) : needed
  if (heldSun < needed) return shortOf(`fees need ${needed} sun, the reserve holds ${heldSun}`)
  return accept({ ...(await lifetime(bidder)), energySun: energyCost.value, feeLimitSun, otherSun })
}

/** What the call takes now, refused when that is above the cap. */
function energyWithin(feeLimitSunMax: bigint, energySun: bigint): Outcome<bigint, DraftRejection> {
  if (energySun <= feeLimitSunMax) return accept(energySun)
  const message = `the energy costs ${energySun} sun and the cap is ${feeLimitSunMax}`
  return refuse({ code: 'fee_cap', message })
}

/** Refers to the solid block, which no reorganisation undoes and which every earlier attempt has to be older than. */
async function lifetime({ blocks }: Bidder) {
  const { hash: id, timeMs } = await blocks.newest('solid')
  const head = await blocks.newest('head')
  // So it is in the first minute of a chain, and when no witness agrees with another.
  if (head.timeMs - timeMs > SOLID_WITHIN_MS)
    throw new NoAnswer('walletsolidity/getblock', 'no block has become solid for long')
  return { family: 'tron' as const, reference: { id, timeMs }, expirationMs: head.timeMs + LIFE_MS }
}

async function heldNow(rpc: Rpc, owner: string): Promise<bigint> {
  const account = await readAccount(rpc, 'wallet', owner)
  return account === null ? 0n : sunIn(account.balance, 'account balance')
}

function shortOf(message: string): Bid {
  return refuse({ code: 'funds', message })
}

/** keccak256("transfer(address,uint256)"), first four bytes. */
const TRANSFER = 'a9059cbb'

type Payment = {
  readonly owner: string
  readonly contract: string
  readonly payee: string
  readonly units: bigint
}

/**
 * Energy that the payment takes, or null when the contract would not do it. What it answers says nothing: the main
 * network's USDT moves and answers false. `estimateenergy` is switched off at many nodes; a constant call tells as well.
 */
async function simulate(rpc: Rpc, { owner, contract, payee, units }: Payment): Promise<bigint | null> {
  const data = `${TRANSFER}${wordOf(payee)}${units.toString(16).padStart(64, '0')}`
  const answer = await callConstantly(rpc, 'wallet', owner, contract, data)
  const { result, message, code } = objectIn(answer.result, 'triggerconstantcontract result')
  if (code !== undefined) throw new NodeRefusal('triggerconstantcontract', String(code))
  if (result !== true) throw new NoAnswer('triggerconstantcontract', 'it has no result')
  if (message !== undefined) return null
  const used = BigInt(integerIn(answer.energy_used, 'energy_used'))
  const estimated = await estimate(rpc, { owner_address: owner, contract_address: contract, data })
  return estimated === null ? used : larger(estimated, used)
}

async function estimate(rpc: Rpc, call: object): Promise<bigint | null> {
  try {
    const answer = await rpc.post('wallet/estimateenergy', { ...call, call_value: 0 })
    if (!isObject(answer) || answer.energy_required === undefined) return null
    return BigInt(integerIn(answer.energy_required, 'energy_required'))
  } catch (error) {
    if (isNodeTrouble(error)) return null
    throw error
  }
}

/**
 * The most energy that the call may take until it is in a block. Whoever is paid may have sent away all there was meanwhile (an
 * exchange empties its deposit addresses), so that the balance is stored anew: 15,000, which the main network multiplies by
 * how busy the contract is, and with USDT makes 66,000. Nobody but us empties the reserve, which sweeps go to.
 */
async function ceilingOf(rpc: Rpc, { from }: Outflow, payment: Payment, energy: bigint): Promise<bigint> {
  const anew = from === undefined ? await simulate(rpc, { ...payment, payee: NEVER_PAID }) : null
  return withRoom(anew === null ? energy : larger(anew, energy))
}

/** A contract is busier or less busy with every maintenance of the network, every six hours. */
function withRoom(energy: bigint): bigint {
  return energy + larger(energy / 4n, 20_000n)
}

/** A transfer of the main network's USDT to somebody who never had any takes about this much. */
const USUAL_ENERGY = 131_000n
/** Nobody has its key, and nobody ever held anything there. */
const NEVER_PAID = `41${'c0de'.repeat(10)}`

/** TRX may have to make an account, and no cap is on that; a token is priced for somebody who never had any. */
export async function estimatePayout(bidder: Bidder, asset: AssetId): Promise<PayoutEstimate> {
  const { rpc, feeLimitSunMax } = bidder
  const prices = await readPrices(rpc)
  const contract = bidder.contractOf(asset)
  if (contract === null) return { cost: fromChainUnits('TRX:TRX', prices.newAccount), isAboveFeeCap: false }
  const owner = hexOf(await bidder.reserveAddress())
  const energy = await simulate(rpc, { owner, contract, payee: NEVER_PAID, units: 1n })
  const sun = withRoom(energy ?? USUAL_ENERGY) * prices.energy + CALL_BYTES * prices.byte
  return {
    cost: fromChainUnits('TRX:TRX', sun),
    // What nobody can say is above no cap.
    isAboveFeeCap: energy !== null && !energyWithin(feeLimitSunMax, energy * prices.energy).ok,
  }
}
