import { randomBytes } from 'node:crypto'
import { amountOf, toChainUnits } from '../../domain/money/amount.ts'
import { larger } from '../../domain/money/larger.ts'
import { accept, type Outcome, refuse } from '../../domain/outcome.ts'
import type { Outflow, OutflowSource } from '../../domain/payouts/intent.ts'
import type { DraftRejection, FeeBid } from '../chain.ts'
import { quantity } from './decode.ts'
import { type AskedFees, askedFees, type GasPrice, gasWithin, priceWithin } from './fees.ts'
import { type Call, isNodeTrouble, type JsonRpc, NodeNonsense, type NodeRefusal, unwrap } from './json_rpc.ts'
import { balanceOfCall, decodeBalance, hasTransferAgreed, transferData } from './token_calls.ts'

export type Bidder = {
  readonly rpc: JsonRpc
  readonly capWei: bigint
  readonly gasLimitMax: bigint
  readonly reserveAddress: () => Promise<string> | string
  /** The contract of a token asset, or null for the native coin; throws for an asset of another chain. */
  readonly contractOf: (asset: Outflow['asset']) => string | null
}

const PLAIN_TRANSFER_GAS = 21_000n
/** A transfer of the heavier listed tokens (USDC behind its proxy) to an address that never held it, before EIP-8037. */
const TOKEN_TRANSFER_GAS = 90_000n
/** What takes more than this is not moved by machine. */
const GAS_MAX = 600_000n
/**
 * Coin runs what its recipient wrote, and the quote charges for a plain transfer: what else it does is at our expense, and may be
 * all that an order was made for. Wallets that are contracts take less than 60,000.
 */
const COIN_GAS_MAX = 90_000n

/**
 * Nobody has its key, nobody ever held anything there, and nobody can see to that, because it is another one in every process. What
 * a transfer to a new account takes is the network's to say, and EIP-8037 makes it ten times as much as one to an old account.
 */
const NEVER_PAID = `0x${randomBytes(20).toString('hex')}`

/** A payout of an asset, for quotes: to somebody who never had any of it. What gas cannot be asked is above no cap. */
export async function usualPayout(
  { rpc, capWei, gasLimitMax, reserveAddress, contractOf }: Bidder,
  asset: Outflow['asset'],
  asked: AskedFees,
): Promise<{ readonly wei: bigint; readonly isAboveFeeCap: boolean }> {
  const from = await reserveAddress()
  const contract = contractOf(asset)
  const [estimate] = await rpc.settle([estimateCall(paymentCall(from, NEVER_PAID, contract, 1n))])
  const gas = withHeadRoom(estimateOr(0n, estimate))
  const usual = contract === null ? PLAIN_TRANSFER_GAS : TOKEN_TRANSFER_GAS
  return {
    // As a bid would allow at most, though without a cap: a quote may not promise what the chain does not grant.
    wei: larger(usual, gas) * (2n * asked.baseWei + asked.tipWei),
    isAboveFeeCap: !(priceWithin(capWei, asked).ok && gasWithin(gasLimitMax, gas).ok),
  }
}

/** Simulates the payment from where it leaves and prices it. A filler only uses up a nonce. */
export async function bid(bidder: Bidder, outflow: Outflow): Promise<Outcome<FeeBid, DraftRejection>> {
  try {
    const price = priceWithin(bidder.capWei, await askedFees(bidder.rpc))
    if (!price.ok) return price
    if (outflow.kind === 'filler') return accept(bidOf(PLAIN_TRANSFER_GAS, price.value))
    if (outflow.from !== undefined) return await priceSweep(bidder, outflow, outflow.from, price.value)
    return await simulate(bidder, outflow, price.value)
  } catch (error) {
    if (isNodeTrouble(error)) return refuse({ code: 'network', message: error.message })
    throw error
  }
}

async function simulate(
  { rpc, gasLimitMax, reserveAddress, contractOf }: Bidder,
  outflow: Outflow,
  price: GasPrice,
): Promise<Outcome<FeeBid, DraftRejection>> {
  const from = await reserveAddress()
  const units = toChainUnits(amountOf(outflow.asset, outflow.units))
  const contract = contractOf(outflow.asset)
  const wei = contract === null ? units : 0n
  const payment = paymentCall(from, outflow.address, contract, units)
  const [balance, gas, codeOrHeld, agreed, anew] = await rpc.settle([
    { method: 'eth_getBalance', params: [from, 'latest'] },
    estimateCall(payment),
    ...(contract === null
      ? [{ method: 'eth_getCode', params: [outflow.address, 'latest'] }]
      : [
          balanceOfCall(contract, from, 'latest'),
          { method: 'eth_call', params: [payment, 'latest'] },
          estimateCall(paymentCall(from, NEVER_PAID, contract, units)),
        ]),
  ])
  if (balance === undefined || gas === undefined || codeOrHeld === undefined) {
    throw new NodeNonsense('the node left a call unanswered')
  }
  const balanceWei = quantity(unwrap(balance), 'balance')
  if (contract !== null) {
    const held = decodeBalance(contract, unwrap(codeOrHeld))
    if (held < units) return shortOf(`the reserve holds ${held} of ${units} units of ${outflow.asset}`)
  }
  if (balanceWei < wei) return shortOf(`the reserve holds ${balanceWei} of ${wei} wei`)

  if (!gas.ok) return explainRefusal(rpc, gas.rejection, from, contract, units)
  if (agreed !== undefined && !hasTransferAgreed(unwrap(agreed))) {
    return refuse({ code: 'destination', message: 'the token answers false to a transfer to this address' })
  }
  const estimate = quantity(gas.value, 'gas estimate')
  // Where nothing of the recipient's runs, it takes what the network asks.
  const isCodeRun = contract === null && unwrap(codeOrHeld) !== '0x'
  if (withHeadRoom(estimate) > (isCodeRun ? COIN_GAS_MAX : GAS_MAX)) {
    return refuse({ code: 'destination', message: `receiving takes this address ${estimate} gas: too much` })
  }
  // Whoever is paid may have sent away all there was until it is mined, so that the balance is stored anew.
  const gasLimit = gasWithin(gasLimitMax, withHeadRoom(larger(estimate, estimateOr(0n, anew))))
  if (!gasLimit.ok) return gasLimit
  const neededWei = wei + gasLimit.value * price.maxFeePerGasWei
  if (balanceWei < neededWei)
    return shortOf(`with fees ${neededWei} wei are needed, the reserve holds ${balanceWei}`)
  return accept(bidOf(gasLimit.value, price))
}

/**
 * From a deposit address to the reserve: both ours and without code, so that coin takes what the network asks for that. Whatever
 * stands in a token's way is no fault of the payee, and may pass.
 */
async function priceSweep(
  { rpc, gasLimitMax, reserveAddress, contractOf }: Bidder,
  outflow: Outflow,
  from: OutflowSource,
  price: GasPrice,
): Promise<Outcome<FeeBid, DraftRejection>> {
  const contract = contractOf(outflow.asset)
  if (contract === null) {
    const [plain] = await rpc.settle([estimateCall(paymentCall(from.address, outflow.address, null, 1n))])
    const gas = gasWithin(gasLimitMax, larger(PLAIN_TRANSFER_GAS, estimateOr(0n, plain)))
    return gas.ok ? accept(bidOf(gas.value, price)) : gas
  }
  const units = toChainUnits(amountOf(outflow.asset, outflow.units))
  const payment = paymentCall(from.address, outflow.address, contract, units)
  const [tokenBalance, gas, agreed, bringing] = await rpc.settle([
    balanceOfCall(contract, from.address, 'latest'),
    estimateCall(payment),
    { method: 'eth_call', params: [payment, 'latest'] },
    estimateCall(paymentCall(await reserveAddress(), from.address, null, 1n)),
  ])
  if (tokenBalance === undefined || gas === undefined || agreed === undefined) {
    throw new NodeNonsense('the node left a call unanswered')
  }
  const held = decodeBalance(contract, unwrap(tokenBalance))
  if (held < units) return shortOf(`${from.address} holds ${held} of ${units} units of ${outflow.asset}`)
  if (!gas.ok) return refuse({ code: 'network', message: `it cannot be swept: ${gas.rejection.message}` })
  if (!hasTransferAgreed(unwrap(agreed))) {
    return refuse({ code: 'network', message: 'the token answers false to a transfer to the reserve' })
  }
  const gasLimit = withHeadRoom(quantity(gas.value, 'gas estimate'))
  if (gasLimit > GAS_MAX)
    return refuse({ code: 'network', message: `sweeping takes ${gasLimit} gas: too much` })
  const allowed = gasWithin(gasLimitMax, gasLimit)
  if (!allowed.ok) return allowed
  const bringingGas = larger(PLAIN_TRANSFER_GAS, withHeadRoom(estimateOr(0n, bringing)))
  return accept({ ...bidOf(gasLimit, price), bringingGas })
}

/** On a block that is named, because some nodes estimate on what is pending: all that a bid asks is to be judged on one state. */
function estimateCall(payment: ReturnType<typeof paymentCall>): Call {
  return { method: 'eth_estimateGas', params: [payment, 'latest'] }
}

/** Refused where there is nothing to send, of which nothing follows here. */
function estimateOr(unknown: bigint, gas: Outcome<unknown, NodeRefusal> | undefined): bigint {
  return gas?.ok ? quantity(gas.value, 'gas estimate') : unknown
}

function paymentCall(from: string, to: string, contract: string | null, units: bigint) {
  return contract === null
    ? { from, to, value: `0x${units.toString(16)}` }
    : { from, to: contract, data: transferData(to, units) }
}

/**
 * Who is at fault when the simulated payment fails? A token that will not even move from the reserve to itself is
 * paused or refuses us, which waiting may cure; otherwise it is the destination.
 */
async function explainRefusal(
  rpc: JsonRpc,
  refusal: NodeRefusal,
  from: string,
  contract: string | null,
  units: bigint,
): Promise<Outcome<FeeBid, DraftRejection>> {
  // What a contract reverts with may be any words.
  const isOurs = /insufficient funds/i.test(refusal.message) && !isRevert(refusal)
  if (isOurs) return shortOf(refusal.message)
  if (!hasExecutionFailed(refusal)) return refuse({ code: 'network', message: refusal.message })
  if (contract !== null) {
    const toItself = { method: 'eth_call', params: [paymentCall(from, from, contract, units), 'latest'] }
    const [control] = await rpc.settle([toItself])
    if (control === undefined || !control.ok) {
      return refuse({
        code: 'network',
        message: `the token refuses every transfer of ours: ${refusal.message}`,
      })
    }
  }
  return refuse({ code: 'destination', message: `the address cannot be paid: ${refusal.message}` })
}

function isRevert({ code, message }: Pick<NodeRefusal, 'code' | 'message'>): boolean {
  return code === 3 || /revert/i.test(message)
}

/** Code 3 is geth's "execution reverted"; an invalid jump is how contracts older than Solidity 0.4.10 refuse; running out of all gas is what a recipient that loops for ever causes. */
function hasExecutionFailed({ code, message }: NodeRefusal): boolean {
  return (
    isRevert({ code, message }) ||
    /out of gas|gas required exceeds|invalid opcode|stack (under|over)flow|invalid jump|out of bounds|write protection|call depth/i.test(
      message,
    )
  )
}

/** The estimate is of this moment. A transfer of coin that runs nothing takes the same in the block. */
function withHeadRoom(gas: bigint): bigint {
  if (gas <= PLAIN_TRANSFER_GAS) return gas
  return gas + larger(gas / 4n, 25_000n)
}

function bidOf(gasLimit: bigint, price: GasPrice): FeeBid & { readonly family: 'evm' } {
  return { family: 'evm', gasLimit, ...price }
}

function shortOf(message: string): Outcome<never, DraftRejection> {
  return refuse({ code: 'funds', message })
}
