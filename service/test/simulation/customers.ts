import { textOf } from '../../src/chains/eos/address.ts'
import { assert } from '../../src/domain/assert.ts'
import { type Asset, type AssetId, assetOf, assets, nativeAsset } from '../../src/domain/catalog/assets.ts'
import { amountOf, parseAmount, toChainUnits } from '../../src/domain/money/amount.ts'
import type { Chooser, CreateRequest, EmergencyAction, OrderView } from '../../src/engine/desks/desk.ts'
import { outsideAddressOn } from './chains/outside_address.ts'
import type { Chance } from './chance.ts'
import type { Life } from './life.ts'
import type { Play } from './play.ts'
import { isDated } from './profile.ts'
import { type Named, nameDestination, nameRefund } from './tags.ts'

const ACCOUNT = 'acc_simulated'
const CHOOSER: Chooser = {
  accountId: ACCOUNT,
  by: { actor: 'key', address: null, sessionId: null, keyId: 'ck_simulated' },
}

/** An order that a client wants: it asks, and asks again under the same key, until it is answered. */
export type Wanted = {
  readonly number: number
  readonly request: CreateRequest
  /** Who of those that share the account is to be paid, as the chain tells it. */
  readonly told: string | null
  asking: number
  /** Its first question and the first answer that it has got: it was priced in between. */
  askedAtMs: number | null
  answeredAtMs: number | null
  order: OrderView | null
  /** Told no the last time it asked. */
  isRefused: boolean
  /** Who pays, has paid so often. */
  payments: number
  readonly paymentsMax: number
  /** When it has sent something that may count, by the service's clock. */
  readonly sentAtMs: number[]
}

const pairs: readonly [AssetPair, ...AssetPair[]] = [
  ['BTC:BTC', 'ETH:ETH'],
  ['BTC:BTC', 'USDT:ERC20'],
  ['ETH:ETH', 'BTC:BTC'],
  ['USDT:ERC20', 'BTC:BTC'],
  ['USDT:ERC20', 'ETH:ETH'],
  ['ETH:ETH', 'USDT:ERC20'],
]

/** Where one of the two has transactions that have an end: from either to the other, and from a token of ETH. */
function pairsOf({ profile: { chains } }: Play): readonly [AssetPair, ...AssetPair[]] {
  if (!chains.some(isDated)) return pairs
  const [one, other] = chains.map((id) => nativeAsset(id).id)
  assert(one !== undefined && other !== undefined, 'a schedule is about two chains')
  const inTokens: AssetPair[] = chains.includes('ETH') ? [['USDT:ERC20', other]] : []
  return [[one, other], [other, one], ...inTokens]
}

type AssetPair = readonly [AssetId, AssetId]

/** Whole units: small, usual, and more than the reserve covers twice. */
const amounts = {
  BTC: ['0.01', '0.08', '0.12', '1.2'],
  ETH: ['0.2', '2.5', '4'],
  USDT: ['500', '9000', '13000'],
  USDC: ['500'],
  BNB: ['1'],
  XRP: ['100', '2000', '5000'],
  XLM: ['500', '12000', '30000'],
  TRX: ['1000', '20000', '40000'],
  EOS: ['500', '6000', '15000'],
  SOL: ['2', '30', '80'],
} as const

export function wantOrder(play: Play, number: number): Wanted {
  const { chance, nodes } = play
  const [from, to] = chance.pick(pairsOf(play))
  const source = assetOf(from)
  const target = assetOf(to)
  const account = outsideAddress(to, `destination ${number}`)
  const named = nameDestination(chance, target.chain, account)
  const place = nodes[target.chain]
  if (chance.isHit(0.1) && 'reverting' in place) place.reverting.add(account)
  if (target.chain === 'XLM' && chance.isHit(named.address === account ? 0.3 : 0.9))
    nodes.XLM.opened.add(account)
  const amount = chance.pick(amounts[source.currency] as unknown as [string, ...string[]])
  return {
    number,
    told: named.told,
    request: {
      from: source.currency,
      fromNetwork: source.network,
      to: target.currency,
      toNetwork: target.network,
      amount,
      rateType: chance.pick(['fixed', 'float']),
      destination: named.address,
      destinationTag: named.tag,
      refundAddress: chance.isHit(0.5) ? outsideAddress(from, `refund ${number}`) : null,
      callbackUrl: null,
      rateId: null,
    },
    asking: 0,
    askedAtMs: null,
    answeredAtMs: null,
    order: null,
    isRefused: false,
    payments: 0,
    paymentsMax: chance.pick([0, 1, 1, 1, 2, 3]),
    sentAtMs: [],
  }
}

export function outsideAddress(asset: AssetId, of: string): string {
  return outsideAddressOn(assetOf(asset).chain, of)
}

/** Asks a process for the order. An answer may get lost on its way; then the same is asked again. */
export function askFor(play: Play, life: Life, wanted: Wanted): Promise<void> {
  wanted.asking += 1
  wanted.askedAtMs ??= play.time.nowMs
  const slot = { slot: `key:${wanted.number}`, bodyHash: `body ${wanted.number}` }
  return play.perform(life, `${life.name} create ${wanted.number}.${wanted.asking}`, async () => {
    try {
      if (wanted.request.rateType === 'fixed' && play.chance.isHit(0.3)) await askForRate(life, wanted)
      const created = await life.desk.createOrder(ACCOUNT, wanted.request, slot)
      life.requireAlive()
      play.recorder.count(created.ok ? 'orders answered' : `create: ${created.rejection.code}`)
      wanted.isRefused = !created.ok
      if (!created.ok) return
      const { order } = created.value
      if (wanted.order !== null && wanted.order.order_id !== order.order_id)
        play.unexpected.push(`two orders for one key: ${wanted.order.order_id} and ${order.order_id}`)
      wanted.order = order
      wanted.answeredAtMs ??= play.time.nowMs
    } finally {
      wanted.asking -= 1
    }
  })
}

async function askForRate(life: Life, { request }: Wanted): Promise<void> {
  const { from, to, fromNetwork, toNetwork, amount, rateType } = request
  await life.desk.rate({ from, to, fromNetwork, toNetwork, amount, rateType, direction: 'from' })
}

/** What a payment is, by what was asked; a foreign one is in another asset. */
const ways: Readonly<Record<Way, (asked: bigint, cut: (units: bigint) => bigint, of: Asset) => bigint[]>> = {
  exact: (asked) => [asked],
  under: (asked) => [(asked * 2n) / 3n],
  over: (asked) => [(asked * 4n) / 3n],
  split: (asked, cut) => [cut(asked / 3n), asked - cut(asked / 3n)],
  'dust left': (asked, cut, { minCredit }) => [asked - cut(minCredit / 2n), minCredit / 2n],
  dust: (_, __, { minCredit }) => [minCredit / 2n],
  foreign: (_, __, { minAmount }) => [minAmount],
}

type Way = 'exact' | 'under' | 'over' | 'split' | 'dust left' | 'dust' | 'foreign'

const anyWay = [
  ...['exact', 'exact', 'exact', 'dust left'],
  ...['under', 'over', 'dust', 'foreign', 'split'],
] as const satisfies readonly Way[]

/** Somebody pays to the order's address: in this way, or in any. */
export function pay(play: Play, wanted: Wanted, given: Way | null = null): void {
  const { order } = wanted
  if (order === null) return
  wanted.payments += 1
  const asset = assetOf(`${order.deposit_currency}:${order.deposit_network}` as AssetId)
  const asked = parseAmount(asset, order.deposit_amount)
  assert(asked.ok, `${order.deposit_amount} is an amount`)
  const way = given ?? play.chance.pick(anyWay)
  const paid = way === 'foreign' ? otherAsset(asset) : asset
  const parts = ways[way](asked.value.units, (units) => cut(paid, units), paid)
  play.recorder.count(`payment: ${way}`)
  if (way !== 'dust' && way !== 'foreign') wanted.sentAtMs.push(play.time.nowMs + play.time.aheadMs)
  send(
    play,
    paid.id,
    depositPlace(order),
    parts.map((units) => cut(paid, units)),
  )
}

/** Where an order is paid. On EOS its address is an account that all share, and the memo that tells them apart is shown beside it. */
export function depositPlace({ deposit_network, deposit_address, deposit_tag }: OrderView): string {
  return deposit_network === 'EOS' ? textOf({ account: deposit_address, memo: deposit_tag }) : deposit_address
}

function otherAsset(asset: Asset): Asset {
  return assets.find(({ id, chain }) => chain === asset.chain && id !== asset.id) ?? asset
}

/** To what the chain can carry. */
function cut({ decimals, precision }: Asset, units: bigint): bigint {
  const grain = 10n ** BigInt(decimals - precision)
  return (units / grain) * grain
}

function send(play: Play, asset: AssetId, to: string, parts: readonly bigint[]): void {
  const { chain } = assetOf(asset)
  const { BTC } = play.nodes
  const isTogether = play.chance.isHit(0.5)
  const chainUnits = parts.map((units) => toChainUnits(amountOf(asset, units)))
  if (chain === 'BTC') {
    const outputs = chainUnits.map((satoshi) => ({ address: to, satoshi }))
    if (isTogether) BTC.pay(outputs)
    else for (const output of outputs) BTC.pay([output])
  } else {
    const node = play.nodes[chain]
    const payments = chainUnits.map((units) => ({ to, asset, units }))
    if (isTogether) node.pay(payments)
    else for (const payment of payments) node.pay([payment])
  }
  assert(chain !== 'BNB', 'nobody pays there')
  play.bump(chain)
}

type Troubled = { readonly order_id: string; readonly from_asset: AssetId }

/** Orders that wait for their customer. */
export function findTroubled({ ground }: Play): Promise<Troubled[]> {
  return ground.rows<Troubled>(
    `SELECT order_id, from_asset FROM orders WHERE status = 'EMERGENCY' ORDER BY order_id`,
  )
}

export const emergencyActions: readonly [EmergencyAction, ...EmergencyAction[]] = [
  'refund',
  'continue',
  'recalculate',
]

export function drawAction(chance: Chance): EmergencyAction {
  return chance.pick(emergencyActions)
}

/** Where an order's money goes back to, named with the action. */
export function refundPlace(troubled: Troubled): string {
  return namedForRefund(troubled).address
}

/** Who gets it back: now somebody who shares the account, now nobody in particular, by the last digit of the order. */
export function namedForRefund({ order_id, from_asset }: Troubled): Named {
  const account = outsideAddress(from_asset, `back ${order_id}`)
  return nameRefund(assetOf(from_asset).chain, account, Number(order_id.slice(-1)))
}

/** A client chooses what becomes of an order in EMERGENCY; others may choose at the same moment. True: it was taken. */
export async function choose(
  play: Play,
  life: Life,
  troubled: Troubled,
  action: EmergencyAction,
): Promise<boolean> {
  const key = play.chance.digits(4)
  const slot = { slot: `key:${troubled.order_id}:${key}`, bodyHash: action }
  const address = refundPlace(troubled)
  const { order_id } = troubled
  play.choices.set(order_id, [...(play.choices.get(order_id) ?? []), action])
  // None is made by an address that says who of several is paid.
  const { XLM } = play.nodes
  if (XLM.holderOf(address) !== address) XLM.opened.add(XLM.holderOf(address))
  let isTaken = false
  await play.perform(life, `${life.name} ${action} ${troubled.order_id} ${key}`, async () => {
    const chosen = await life.desk.chooseAction(CHOOSER, troubled.order_id, action, address, slot)
    play.recorder.count(chosen.ok ? `action: ${action}` : `action refused: ${chosen.rejection.code}`)
    isTaken = chosen.ok
    if (!chosen.ok) takeBack(play, order_id, action)
    // Less than its way back costs: there is nothing left to choose.
    if (action === 'refund' && !chosen.ok && chosen.rejection.code === 'INVALID_ACTION')
      play.hopeless.add(troubled.order_id)
  })
  return isTaken
}

/** What was refused has settled nothing; the same, asked again or by another, may. */
function takeBack({ choices }: Play, orderId: string, action: EmergencyAction): void {
  const made = choices.get(orderId) ?? []
  const at = made.indexOf(action)
  choices.set(
    orderId,
    made.filter((_, index) => index !== at),
  )
}
