import { setTimeout as pause } from 'node:timers/promises'
import type { Devnet } from '@cambist/devnet'
import {
  CambistError,
  type Client,
  type CreatedOrder,
  type CreateOrderRequest,
  type Order,
} from '@cambist/sdk'
import { textOf as eosText } from '../../../src/chains/eos/address.ts'
import { textOf as xrpText } from '../../../src/chains/xrp/address.ts'
import { type AssetId, assetOf } from '../../../src/domain/catalog/assets.ts'
import { chainFacts, depositsLie } from '../../../src/domain/catalog/networks.ts'
import type { Chance } from '../../harness/chance.ts'

/** What becomes of an order by what its customer does. */
const stories = ['pays', 'pays in two parts', 'takes back', 'continues', 'recalculates'] as const
export type Story =
  | (typeof stories)[number]
  /** Takes back and continues, both at the same moment. */
  | 'wants both'
  /** Pays by a transaction that a reorganisation takes out of the chain for good. */
  | 'loses the payment'

export type Offers = NonNullable<Order['emergency']>['options']

/** Somebody who exchanges once, and does not mind asking again when nobody answers. */
export type Customer = {
  readonly story: Story
  readonly from: AssetId
  readonly to: AssetId
  readonly amount: string
  readonly destination: string
  /** Beside it, where many share an account. */
  readonly destinationTag: string | null
  readonly refundAddress: string
  /** Given in one text with it, or not at all. */
  readonly refundTag: string | null
  /** Once it is created. */
  order: CreatedOrder | null
  /** What was shown of the choices that there were, before one was made. */
  offers: Offers | null
  /** The transactions that paid it, in chain units. */
  readonly paid: { readonly txHash: string; readonly units: bigint }[]
}

/** How the order of such a customer may end. */
export function endsOf({ story }: Customer): readonly string[] {
  switch (story) {
    case 'takes back':
      return ['REFUNDED']
    case 'wants both':
      return ['REFUNDED', 'DONE']
    case 'loses the payment':
      return ['NEW']
    default:
      return ['DONE']
  }
}

/** How an order stands, read by everybody together. */
export type Board = { statusOf(orderId: string): string | undefined }

export type Counter = {
  readonly devnet: Devnet
  readonly client: Client
  readonly board: Board
  /** False: the run has failed, and waiting longer is useless. */
  isOpen(): boolean
}

const pairs: readonly (readonly [AssetId, AssetId])[] = [
  ['BTC:BTC', 'USDT:ERC20'],
  ['ETH:ETH', 'BTC:BTC'],
  ['BTC:BTC', 'ETH:ETH'],
  ['USDT:ERC20', 'BTC:BTC'],
  ['ETH:ETH', 'USDC:ERC20'],
  ['XRP:XRP', 'BTC:BTC'],
  ['ETH:ETH', 'XRP:XRP'],
]

/** Where these networks run as well. */
const morePairs: readonly (readonly [AssetId, AssetId])[] = [
  ['XLM:XLM', 'ETH:ETH'],
  ['TRX:TRX', 'BTC:BTC'],
  ['ETH:ETH', 'TRX:TRX'],
  ['USDT:ERC20', 'XLM:XLM'],
  ['XLM:XLM', 'TRX:TRX'],
  ['SOL:SOL', 'BTC:BTC'],
  ['ETH:ETH', 'SOL:SOL'],
  ['USDC:SOL', 'EOS:EOS'],
  ['EOS:EOS', 'USDC:SOL'],
]

/** About 60 dollars of each, so that ten thousand orders fit into any limit. */
const AMOUNTS: Partial<Record<AssetId, string>> = {
  'BTC:BTC': '0.001',
  'ETH:ETH': '0.02',
  'USDT:ERC20': '60.',
  'XRP:XRP': '24.',
  'XLM:XLM': '150.',
  'TRX:TRX': '240.',
  'EOS:EOS': '75.',
  'SOL:SOL': '0.4',
  'USDC:SOL': '60.',
}

export type Wish = Pick<Customer, 'story' | 'from' | 'to'>

/** What customers exchange where these networks run. */
function pairsOn({ networks }: Devnet) {
  const isThere = (asset: AssetId) => assetOf(asset).chain in networks
  return [...pairs, ...morePairs].filter((pair) => pair.every(isThere))
}

/** Throws unless every customer would be given a rate now: reserves that were sent at once are not seen at once. */
export async function expectAllQuoted(client: Client, devnet: Devnet): Promise<void> {
  for (const [from, to] of pairsOn(devnet)) {
    await client.getRate({
      from: assetOf(from).currency,
      from_network: assetOf(from).network,
      to: assetOf(to).currency,
      to_network: assetOf(to).network,
      amount: `${AMOUNTS[from]}000`,
    })
  }
}

/** What most customers do, and of three one does something special. */
export function wishByChance(number: number, chance: Chance, devnet: Devnet): Wish {
  const wanted = pairsOn(devnet)
  const [from, to] = wanted[number % wanted.length] ?? chance.pick(wanted)
  return { story: chance.happens(66 / 100) ? 'pays' : chance.pick(stories), from, to }
}

export async function newCustomer(wish: Wish, devnet: Devnet, chance: Chance): Promise<Customer> {
  const [destination, refundAddress] = await Promise.all([
    devnet.freshAddress(assetOf(wish.to).chain),
    devnet.freshAddress(assetOf(wish.from).chain),
  ])
  const odd = String(chance.below(1_000)).padStart(3, '0')
  const amount = `${AMOUNTS[wish.from]}${odd}`
  return {
    ...wish,
    amount,
    destination,
    destinationTag: tagByChance(wish.to, chance),
    refundAddress,
    refundTag: refundTagByChance(wish.from, chance),
    order: null,
    offers: null,
    paid: [],
  }
}

const TAG_MAX = 2 ** 32 - 1

function tagByChance(asset: AssetId, chance: Chance): string | null {
  const { chain } = assetOf(asset)
  if (depositsLie[chainFacts[chain].family] !== 'tags') return null
  const number = chance.pick([0, 7, TAG_MAX, chance.below(TAG_MAX)])
  return chain === 'XRP' || chance.happens(1 / 2) ? String(number) : `order ${number}`
}

/** On Stellar only an account that is there already could be given with one. */
function refundTagByChance(asset: AssetId, chance: Chance): string | null {
  const { chain } = assetOf(asset)
  const canHaveOne = chain === 'XRP' || chain === 'EOS'
  return canHaveOne && chance.happens(1 / 2) ? String(chance.below(TAG_MAX)) : null
}

/** As somebody writes it who has to say it in one text. */
function refundTextOf({ from, refundAddress: account, refundTag }: Customer): string {
  if (refundTag === null) return account
  return assetOf(from).chain === 'XRP'
    ? xrpText({ account, tag: Number(refundTag) }, { isMain: false })
    : eosText({ account, memo: refundTag })
}

/** From the order to its end, whatever dies on the way. */
export async function serveCustomer(counter: Counter, customer: Customer): Promise<void> {
  const { client, board } = counter
  const order = await insist(counter, (idempotencyKey) =>
    client.createOrder(requestOf(customer), { idempotencyKey }),
  )
  customer.order = order
  await payFor(counter, customer, order)
  const actions = actionsOf(customer)
  if (actions.length > 0) {
    await until(counter, () => board.statusOf(order.order_id) === 'EMERGENCY')
    customer.offers = await untilOffered(
      counter,
      order.order_id,
      actions.map(({ action }) => action),
    )
  }
  await Promise.all(
    actions.map((action) =>
      insist(counter, (idempotencyKey) =>
        client.chooseEmergencyAction(order.order_id, action, { idempotencyKey }),
      ).catch((error: unknown) => {
        // One of several wins.
        if (actions.length === 1) throw error
      }),
    ),
  )
  if (customer.story === 'loses the payment')
    await until(counter, () => board.statusOf(order.order_id) === 'EXCHANGE')
  await until(counter, () => endsOf(customer).includes(board.statusOf(order.order_id) ?? ''))
}

/** What is shown once everything that will be chosen is offered: where no rate is to be had for a moment, it is not. */
async function untilOffered(
  counter: Counter,
  orderId: string,
  wanted: readonly (keyof Offers)[],
): Promise<Offers | null> {
  for (;;) {
    const { emergency } = await insist(counter, () => counter.client.getOrder(orderId))
    const options = emergency?.options
    if (options !== undefined && wanted.every((action) => options[action] !== null)) return options
    if (!counter.isOpen()) return null
    await pause(100)
  }
}

function requestOf(customer: Customer): CreateOrderRequest {
  const { story, from, to, amount, destination, destinationTag } = customer
  return {
    from: assetOf(from).currency,
    from_network: assetOf(from).network,
    to: assetOf(to).currency,
    to_network: assetOf(to).network,
    amount,
    rate_type: 'fixed',
    destination,
    ...(destinationTag !== null && { destination_tag: destinationTag }),
    ...(story === 'wants both' && { refund_address: refundTextOf(customer) }),
  } as CreateOrderRequest
}

function actionsOf(customer: Customer) {
  switch (customer.story) {
    case 'takes back':
      return [{ action: 'refund', refund_address: refundTextOf(customer) }] as const
    case 'continues':
      return [{ action: 'continue' }] as const
    case 'recalculates':
      return [{ action: 'recalculate' }] as const
    case 'wants both':
      return [{ action: 'refund' }, { action: 'continue' }] as const
    default:
      return []
  }
}

async function payFor({ devnet }: Counter, customer: Customer, order: CreatedOrder): Promise<void> {
  const { chain, currency, chainDecimals } = assetOf(customer.from)
  const [whole = '', fraction = ''] = customer.amount.split('.')
  const asked = BigInt(whole + fraction.padEnd(chainDecimals, '0'))
  for (const units of partsOf(customer.story, asked)) {
    // Elsewhere the address carries the tag.
    const memo = chain === 'EOS' ? (order.deposit_tag ?? undefined) : undefined
    const { txHash } = await devnet.send(chain, currency, order.deposit_address, units, 1, memo)
    customer.paid.push({ txHash, units })
  }
}

function partsOf(story: Story, asked: bigint): readonly bigint[] {
  switch (story) {
    case 'pays in two parts':
      return [asked / 3n, asked - asked / 3n]
    case 'takes back':
    case 'continues':
    case 'wants both':
      return [asked / 2n]
    case 'recalculates':
      return [(asked * 3n) / 2n]
    case 'pays':
    case 'loses the payment':
      return [asked]
  }
}

/** The same request under the same key, until it is answered. */
async function insist<Answer>(
  { isOpen }: Counter,
  ask: (idempotencyKey: string) => Promise<Answer>,
): Promise<Answer> {
  const key = crypto.randomUUID()
  for (;;) {
    try {
      return await ask(key)
    } catch (error) {
      const isNo = error instanceof CambistError && error.status >= 400 && error.status < 500
      if (isNo || !isOpen()) throw error
    }
    await pause(100)
  }
}

async function until({ isOpen }: Counter, isTrue: () => boolean): Promise<void> {
  while (!isTrue()) {
    if (!isOpen()) throw new Error('the run has ended before the order')
    await pause(50)
  }
}
