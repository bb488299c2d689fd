import { exactAmount } from '../domain/money/amount.ts'
import type { Fact } from '../domain/orders/facts.ts'
import { type Deposit, isDust, type Order, orphaned } from '../domain/orders/order.ts'
import type { World } from './world.ts'

/** What a fact about a deposit made of its order and nobody else is told of: money that it cannot use, or that it was paid for and is gone. */
export function warnOfDeposit(world: Pick<World, 'log'>, fact: Fact, before: Order, after: Order): void {
  if (fact.kind !== 'DepositConfirmed' && fact.kind !== 'DepositUnmined') return
  const deposit = after.deposits.find((one) => one.key === fact.key)
  if (deposit === undefined) return
  if (fact.kind === 'DepositConfirmed') warnOfUnusable(world, after, deposit)
  tellOfMissing(world, before, after, deposit)
}

/**
 * A second payment, or another asset. One that came while a payout was under way may count yet, should that come to nothing. Dust is
 * nobody's loss.
 */
function warnOfUnusable({ log }: Pick<World, 'log'>, { terms, state }: Order, deposit: Deposit): void {
  const { key, role, amount } = deposit
  if (role === 'counted' || isDust(amount)) return
  log.warn(
    {
      order: terms.id,
      status: state.status,
      deposit: key,
      role,
      asset: amount.asset,
      amount: exactAmount(amount),
    },
    'money came that its order cannot use now',
  )
}

/** Its client goes on seeing an order that was paid, and the books agree with the chain: nothing else of it differs from any other. */
function tellOfMissing({ log }: Pick<World, 'log'>, before: Order, after: Order, deposit: Deposit): void {
  const { key, amount } = deposit
  const [was, is] = [orphaned(before).units, orphaned(after).units]
  const facts = {
    order: after.terms.id,
    status: after.state.status,
    deposit: key,
    asset: amount.asset,
    amount: exactAmount(amount),
  }
  if (is > was) {
    const message =
      'a deposit lost its block, and what was paid for it may have left: see whether its transaction still waits or was replaced'
    log.error(facts, message)
  } else if (was > 0n && is === 0n && deposit.state === 'confirmed') {
    log.info(facts, 'what an order was paid for is confirmed again: nothing of it is missing')
  }
}
