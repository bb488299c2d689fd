import { appendAudit, type By } from '../../db/audit_log.ts'
import type { Sql } from '../../db/database.ts'
import { findOrder, findSeal, saveSeal } from '../../db/orders.ts'
import { findEarlier, SlotTaken, takeRetrySlot } from '../../db/retry_slots.ts'
import { assert } from '../../domain/assert.ts'
import { assetOf } from '../../domain/catalog/assets.ts'
import type { Fact } from '../../domain/orders/facts.ts'
import { isOrderId } from '../../domain/orders/identifiers.ts'
import { type Order, received } from '../../domain/orders/order.ts'
import { sealedTermsOf } from '../../domain/orders/seal.ts'
import { accept, refuse } from '../../domain/outcome.ts'
import { apply } from '../apply.ts'
import { emergencyOffers, refundCost, whyNotNow } from '../emergency_offers.ts'
import { noPrice } from '../market.ts'
import type { DeskWorld } from '../world.ts'
import { aboutField } from './about_field.ts'
import type {
  ActionView,
  Chooser,
  Desk,
  DeskOutcome,
  DeskRejection,
  EmergencyAction,
  RetrySlot,
} from './desk.ts'
import { type AddressReader, addressReader } from './read_address.ts'

/** POST /v1/order/{order_id}/emergency: the customer acts by a fact, like everything else that happens to an order. */
export function emergencyDesk(world: DeskWorld): Pick<Desk, 'chooseAction'> {
  const addresses = addressReader(world)
  return {
    chooseAction: async (chooser, orderId, action, refundAddress, retry) => {
      const chosen = await actOn(world, addresses, { chooser, orderId, action, refundAddress, retry })
      if (chosen.ok) return chosen
      // Only now is the slot looked at: the same request may have acted at any moment until now, and whatever would be said
      // to a new one, a repeat gets the first answer again.
      return (await replay(world, chooser.accountId, retry)) ?? chosen
    },
  }
}

type Asked = {
  readonly chooser: Chooser
  readonly orderId: string
  readonly action: EmergencyAction
  readonly refundAddress: string | null
  readonly retry: RetrySlot
}

async function actOn(
  world: DeskWorld,
  addresses: AddressReader,
  asked: Asked,
): Promise<DeskOutcome<ActionView>> {
  const { chooser, orderId, action, refundAddress, retry } = asked
  for (let tries = 1; ; tries += 1) {
    const order = isOrderId(orderId) ? await findOrder(world.db, orderId) : null
    if (order === null || order.terms.accountId !== chooser.accountId) return refuse(noSuchOrder)
    if (order.state.status !== 'EMERGENCY') return refuse(notEmergency(`the order is ${order.state.status}`))
    // An address that is none is refused whatever is chosen: who sends it may mean a refund.
    const given = await readGiven(addresses, order, refundAddress)
    if (!given.ok) return given
    // Between the offer and the reserve that the choice sets aside for it nobody else may come: nothing is awaited.
    const fact = factOf(world, order, action, given.value)
    if (!fact.ok) return fact
    const chosen = await choose(world, order, fact.value, retry, chooser.by)
    // Something happened between the offer and the choice: the choice is made on what is there now.
    if (chosen !== 'offer_changed') return chosen
    if (tries === OFFER_TRIES) return refuse(busy)
  }
}

const OFFER_TRIES = 5

const busy: DeskRejection = {
  code: 'MAINTENANCE',
  message: 'deposits are arriving for this order at this moment; try again in a few seconds',
  retryAfterSeconds: 3,
}

async function replay(
  world: DeskWorld,
  accountId: string,
  retry: RetrySlot,
): Promise<DeskOutcome<ActionView> | null> {
  const earlier = await findEarlier(world.db, accountId, retry)
  return earlier?.ok ? accept({ ...(earlier.value.answer as ActionView), isReplay: true }) : earlier
}

const noSuchOrder: DeskRejection = { code: 'ORDER_NOT_FOUND', message: 'there is no such order' }

function notEmergency(why: string): DeskRejection {
  return {
    code: 'NOT_EMERGENCY',
    message: `${why}; an action can be chosen only while it is EMERGENCY`,
  }
}

async function readGiven(
  addresses: AddressReader,
  { terms }: Order,
  refundAddress: string | null,
): Promise<DeskOutcome<string | null>> {
  if (refundAddress === null) return accept(null)
  const given = await addresses.readAddress(assetOf(terms.from), refundAddress, 'refund_address')
  // It would be told as refunded and lie with us: nobody means that, though it is the only address of this network that an order shows.
  return given.ok && given.value === terms.depositAddress ? refuse(ownDeposit) : given
}

const ownDeposit: DeskRejection = aboutField(
  'INVALID_ADDRESS',
  'refund_address',
  'cannot be the deposit address of the order',
)

/** The choice with the amounts as they are offered at this moment. */
function factOf(
  world: DeskWorld,
  order: Order,
  action: EmergencyAction,
  given: string | null,
): DeskOutcome<Fact & { kind: 'ActionChosen' }> {
  const offers = emergencyOffers(order, world.market)
  if (action !== 'refund') {
    const quote = offers[action]
    const notNow = quote === null ? whyNotNow(order, action, world.market) : null
    return notNow === null ? accept({ kind: 'ActionChosen', action, quote }) : refuse(notNow)
  }
  // Only an address the client gave, now or at creation: senders may be exchanges or contracts.
  const address = given ?? order.refundAddress
  if (address === null) return refuse(addressRequired)
  if (offers.refund === null && refundCost(order, world.market) === null) return refuse(noPrice)
  return accept({ kind: 'ActionChosen', action, refund: offers.refund && { ...offers.refund, address } })
}

const addressRequired = aboutField(
  'REFUND_ADDRESS_REQUIRED',
  'refund_address',
  'is required: the order has none',
)

async function choose(
  world: DeskWorld,
  order: Order,
  fact: Fact & { kind: 'ActionChosen' },
  retry: RetrySlot,
  by: By,
): Promise<DeskOutcome<ActionView> | 'offer_changed'> {
  const { id, accountId } = order.terms
  let answer: ActionView | null = null
  const act = () =>
    apply(world, id, `action:${order.sequence}:${retry.slot}`, fact, async (tx, next) => {
      if (next.sequence !== order.sequence + 1) throw new AnotherEmergency()
      answer = answerOf(next, fact.action)
      await takeRetrySlot(tx, accountId, retry, { orderId: id, answer }, world.clock.wallMs())
      if (fact.action === 'refund') await sealAnew(world, tx, order, next)
      const atMs = world.clock.wallMs()
      const entry = { chain: accountId, atMs, act: 'action_chosen', by, subject: id } as const
      // Last of what may wait for others: whoever holds the end of the account's chain waits for nobody who may want it.
      await appendAudit(tx, { ...entry, detail: detailOf(fact) })
    }).catch((error: unknown) => {
      if (error instanceof AnotherEmergency) return { kind: 'another_emergency' } as const
      if (error instanceof SlotTaken) return { kind: 'slot_taken' } as const
      throw error
    })
  const pays = fact.action === 'refund' ? null : fact.quote
  const isUndone = ({ kind }: Awaited<ReturnType<typeof act>>) =>
    kind === 'another_emergency' || kind === 'slot_taken' || kind === 'refused'
  const applied = await (pays === null ? act() : world.market.setAside(id, pays.to, act, isUndone))
  if (applied.kind === 'another_emergency') return 'offer_changed'
  if (applied.kind === 'slot_taken') answer = null
  if (applied.kind === 'refused') {
    const { code, why } = applied
    if (code === 'OFFER_CHANGED') return 'offer_changed'
    // Too little was received when it was offered, which says nothing of what has come since.
    if (code === 'INVALID_ACTION' && (await hasChanged(world, order))) return 'offer_changed'
    return refuse(code === 'NOT_EMERGENCY' ? notEmergency(why) : { code, message: why })
  }
  return answer === null ? refuse(notEmergency('another action was chosen')) : accept(answer)
}

/** A refund is told with where it goes, which may be nowhere that the order has named before. */
function detailOf(fact: Fact & { kind: 'ActionChosen' }): Readonly<Record<string, string>> {
  const { action } = fact
  return action === 'refund' && fact.refund !== null
    ? { action, refund_address: fact.refund.address }
    : { action }
}

async function hasChanged(world: DeskWorld, judged: Order): Promise<boolean> {
  const order = await findOrder(world.db, judged.terms.id)
  return order?.sequence !== judged.sequence || received(order).units !== received(judged).units
}

/**
 * The signer obeys the seal, so an address that came with the action is sealed in the same moment: under terms that were
 * sealed before. A row that somebody changed since would come to be obeyed otherwise.
 */
async function sealAnew(world: DeskWorld, tx: Sql, before: Order, next: Order): Promise<void> {
  const { id } = next.terms
  const { refundAddress } = before
  const isSealed = (await findSeal(tx, id)) === world.seal(sealedTermsOf({ ...next, refundAddress }))
  assert(isSealed, `the terms of ${id} are the ones that were sealed`)
  await saveSeal(tx, id, world.seal(sealedTermsOf(next)))
}

/**
 * Thrown when the order was looked at in an emergency that is over, and is in another one: what was offered in the first knows nothing
 * of what has happened since, such as an attempt that failed at the customer's cost.
 */
class AnotherEmergency extends Error {}

const MESSAGES: Readonly<Record<EmergencyAction, string>> = {
  continue: 'The exchange goes on with what was received.',
  recalculate: 'The exchange was recalculated with the current rate and goes on.',
  refund: 'The deposit is being returned; this can take up to 24 hours.',
}

function answerOf(order: Order, action: EmergencyAction): ActionView {
  return {
    order_id: order.terms.id,
    status: order.state.status,
    message: MESSAGES[action],
    updated_at: order.updatedAtMs,
    isReplay: false,
  }
}
