import type { ToldSecret } from '../../../src/accounts/keys.ts'
import { assert } from '../../../src/domain/assert.ts'
import {
  type AddressFamily,
  chainFacts,
  depositsLie,
  isNetworkId,
  networkChains,
} from '../../../src/domain/catalog/networks.ts'
import type { Answer } from '../../../src/http/testing/answer.ts'
import type { Chance } from '../../harness/chance.ts'
import { decimalText, type KnownExchange, type KnownOrder, type KnownPair } from './known_exchange.ts'
import type { Operation } from './operations.ts'
import { ownerRequests } from './owner_requests.ts'
import { type Entry, text } from './request.ts'
import { type Makers, note, plain, type Right } from './right.ts'
import type { Header } from './sendable.ts'

/**
 * How often each operation is asked for, and a right request for it. The document says what a request may look like,
 * not what is true: which pairs there are, whose an order is. An operation without a line here fails the proof.
 */
export const makers: Makers = {
  ...ownerRequests,
  getRate: { share: 22, make: rate },
  getCurrencies: { share: 4, make: () => plain('all currencies', {}) },
  createOrder: { share: 22, make: create },
  getOrder: { share: 18, make: look },
  getOrderEvents: { share: 4, make: follow },
  getOrderQr: { share: 8, make: qr },
  chooseAction: { share: 12, make: act },
  listOrders: { share: 2, make: list },
  listWebhookDeliveries: { share: 2, make: deliveries },
  redeliverWebhook: { share: 1, make: redeliver },
  redeliverWebhooksSince: { share: 1, make: redeliverSince },
  listWebhookEndpoints: { share: 1, make: ({ keys }) => plain('the endpoints', {}, { signer: keys.own }) },
  createWebhookEndpoint: { share: 1, make: endpoint },
  deleteWebhookEndpoint: { share: 1, make: endEndpoint },
  sandboxPay: { share: 3, make: pay },
  sandboxMine: { share: 1, make: mine },
  sandboxReorg: { share: 0.5, make: reorg },
  sandboxReplace: { share: 3, make: replace },
  sandboxPrices: { share: 2, make: prices },
  sandboxClock: { share: 1, make: clock },
  sandboxAddress: { share: 1, make: freshAddress },
  sandboxBalance: { share: 2, make: balance },
  sandboxMail: { share: 1, make: () => plain('the mails', {}) },
}

export function makeRight({ id }: Operation, known: KnownExchange, chance: Chance): Right {
  const maker = makers[id]
  if (maker === undefined) throw new Error(`nobody has written down a right request for ${id}`)
  return maker.make(known, chance)
}

/** Asked for by its share. */
export function pickOperation(operations: readonly Operation[], chance: Chance): Operation {
  const shares = operations.map(({ id }) => makers[id]?.share ?? 1)
  let left = (chance.below(1_000_000) / 1_000_000) * shares.reduce((sum, share) => sum + share, 0)
  const found = operations.find((_, at) => {
    left -= shares[at] ?? 0
    return left < 0
  })
  return found ?? chance.pick(operations)
}

/** Those that `chance` leaves in, in any order. */
function some(chance: Chance, entries: readonly Entry[]): Entry[] {
  return entries.filter(() => chance.happens(0.5))
}

/** A network by one of its names; a native currency may leave it out of a rate request. */
function networkNames({ network, isNative }: KnownPair['from']): string[] {
  return isNative ? [network, 'native'] : [network]
}

function amountIn(pair: KnownPair, chance: Chance): string {
  const { least, decimals } = pair
  const more = chance.pick([0n, 1n, least, (least * BigInt(chance.below(10_000))) / 1_000n])
  return decimalText(least + more, decimals)
}

function rate({ pairs, locks }: KnownExchange, chance: Chance): Right {
  const pair = chance.pick(pairs)
  const { from, to } = pair
  const isFrom = chance.happens(0.7)
  const amount = isFrom ? amountIn(pair, chance) : pair.toAmount
  const rateType = chance.pick(['fixed', 'float', null])
  const optional: Entry[] = [
    ...(from.isNative ? [] : [['from_network', from.network] as const]),
    ...(to.isNative ? [] : [['to_network', to.network] as const]),
    ...(rateType === null ? [] : [['rate_type', rateType] as const]),
    ...(isFrom ? [] : [['direction', 'to'] as const]),
    ...some(chance, [
      ...(from.isNative ? [['from_network', chance.pick(networkNames(from))] as const] : []),
      ...(to.isNative ? [['to_network', chance.pick(networkNames(to))] as const] : []),
      ...(isFrom ? [['direction', 'from'] as const] : []),
    ]),
  ]
  const needed: Entry[] = [
    ['from', from.currency],
    ['to', to.currency],
    ['amount', amount],
  ]
  const query = chance.happens(0.5) ? [...needed, ...optional] : [...optional, ...needed].toReversed()
  return plain(
    'a rate',
    { query },
    {
      learn: ({ json }) => {
        if (rateType === 'fixed' && isFrom) note(locks, { pair, amount, rateId: json.data.rate_id })
      },
    },
  )
}

/** The newest are kept. */
function create(known: KnownExchange, chance: Chance): Right {
  const lock = chance.happens(0.3) ? known.locks.pop() : undefined
  const pair = lock?.pair ?? chance.pick(known.pairs)
  const { from, to } = pair
  const amount = lock?.amount ?? amountIn(pair, chance)
  const owner = chance.happens(0.8) ? known.keys.own : known.keys.other
  const body: Entry[] = [
    ['from', text(from.currency)],
    ['from_network', text(chance.pick(networkNames(from)))],
    ['to', text(to.currency)],
    ['to_network', text(chance.pick(networkNames(to)))],
    ['amount', amount],
    ['rate_type', text(lock === undefined ? 'float' : 'fixed')],
    ['destination', text(addressOn(known, to.network, chance))],
    ...(isTagged(to.network)
      ? [['destination_tag', chance.pick(['"0"', '"12345"', '"4294967295"'])] as const]
      : []),
    ...(lock === undefined ? [] : [['rate_id', text(lock.rateId)] as const]),
    ...some(chance, [
      ...(isTagged(to.network)
        ? []
        : [
            [
              'destination_tag',
              chance.pick(['null', '"12345"', text('🦊'.repeat(256)), text('é b&c="\\')]),
            ] as const,
          ]),
      ['refund_address', chance.pick(['null', text(addressOn(known, from.network, chance))])],
      ['callback_url', chance.pick(['null', ...CALLBACKS.map(text)])],
      ...(lock === undefined ? [['rate_id', 'null'] as const] : []),
    ]),
  ]
  const headers = idempotency(chance)
  return plain(
    'an order',
    { body, headers },
    {
      signer: owner,
      learn: ({ json }) => {
        const { order_id: id, token, deposit_amount: asks } = json.data
        note(known.orders, { id, token, owner, network: from.network, asks: decimal(asks), stage: 'new' })
      },
    },
  )
}

const CALLBACKS = [
  'https://shop.example/hook?order=1&x=%20',
  // Global unicast that is nobody's.
  'https://[3fff:1000::1]:8443/hook',
  'https://xn--bcher-kva.example/',
  `https://shop.example/${'a'.repeat(2_048 - 21)}`,
]

function decimal(amount: number): string {
  return amount.toFixed(8).replace(/\.?0+$/, '')
}

function addressOn({ addresses }: KnownExchange, network: string, chance: Chance): string {
  return chance.pick(addresses[network] ?? [])
}

function idempotency(chance: Chance): Header[] {
  if (chance.happens(0.7)) return []
  return [['Idempotency-Key', chance.bytes(chance.pick([8, 20, 32])).toString('hex')]]
}

function pickOrder({ orders }: KnownExchange, chance: Chance, ...stages: KnownOrder['stage'][]) {
  const fitting = orders.filter(({ stage }) => stages.length === 0 || stages.includes(stage))
  return fitting.length === 0 ? null : chance.pick(fitting)
}

function nobodysId(chance: Chance): string {
  return `CB${Array.from({ length: 16 }, () => chance.below(10)).join('')}`
}

/** Where there is no order yet: of one that is nobody's. */
function ofNobody(chance: Chance, signer: ToldSecret | null, body: readonly Entry[] = []): Right {
  const parts = { path: { order_id: nobodysId(chance) }, body }
  return plain('of an order that is not there', parts, { expected: 'refusal', signer })
}

function follow(known: KnownExchange, chance: Chance): Right {
  const { form, ...right } = look(known, chance)
  const last: Entry[] = chance.happens(0.3) ? [['Last-Event-ID', String(chance.below(4))]] : []
  return { ...right, form: { ...form, headers: [...form.headers, ...last] } }
}

function list({ keys }: KnownExchange, chance: Chance): Right {
  const query = some(chance, [
    ['limit', String(1 + chance.below(20))],
    ['status', 'NEW'],
    ['created_after', '2026-01-01T00:00:00Z'],
  ])
  return plain('the orders', { query }, { signer: chance.pick([keys.own, keys.other]) })
}

function look(known: KnownExchange, chance: Chance): Right {
  const { own, other } = known.keys
  const order = pickOrder(known, chance, ...(chance.happens(0.4) ? (['underpaid'] as const) : []))
  if (order === null || chance.happens(0.03)) return ofNobody(chance, own)
  const path = { order_id: order.id }
  const stranger = order.owner === own ? other : own
  const learn = ({ json }: Answer) => {
    if (json.data.status === 'EMERGENCY' && order.stage === 'underpaid') order.stage = 'emergency'
  }
  const short = { order_id: chance.pick([order.id, order.id.slice(-8)]) }
  const wrong = known.orders.find(({ id }) => id !== order.id)?.token ?? 'x'
  const ways: readonly (() => Right)[] = [
    () => plain('an order, by its owner', { path }, { signer: order.owner, learn }),
    () => plain('an order, by its token', { path: short, headers: [['X-ORDER-TOKEN', order.token]] }),
    () => plain('an order, by a link', { path: short, query: [['token', order.token]] }),
    () => plain('an order of somebody else', { path }, { signer: stranger, expected: 'refusal' }),
    () => plain('an order, by nobody', { path }, { expected: 'refusal' }),
    () =>
      plain(
        'by the token of another',
        { path, headers: [['X-ORDER-TOKEN', wrong]] },
        { expected: 'refusal' },
      ),
    () =>
      plain(
        'by the short id alone',
        { path: { order_id: order.id.slice(-8) } },
        { signer: own, expected: 'refusal' },
      ),
  ]
  return chance.pick([ways[0], ways[0], ways[0], ...ways] as typeof ways)()
}

function qr(known: KnownExchange, chance: Chance): Right {
  const order = pickOrder(known, chance)
  if (order === null || chance.happens(0.05)) return ofNobody(chance, null)
  const query = some(chance, [
    ['format', chance.pick(['png', 'svg', 'base64'])],
    ['size', String(chance.pick([64, 65, 256, 333, 1023, 1024]))],
    ['include_amount', chance.pick(['true', 'false'])],
    ['style', chance.pick(['default', 'standard'])],
  ])
  return plain('a QR image', { path: { order_id: order.id }, query })
}

function act(known: KnownExchange, chance: Chance): Right {
  const order = pickOrder(known, chance, 'emergency') ?? pickOrder(known, chance, 'new')
  if (order === null) return ofNobody(chance, known.keys.own, [['action', '"refund"']])
  const path = { order_id: order.id }
  const address = text(addressOn(known, order.network, chance))
  const refund: Entry[] = [
    ['action', '"refund"'],
    ['refund_address', address],
  ]
  const headers = idempotency(chance)
  if (order.stage !== 'emergency') {
    const signer = chance.pick([known.keys.own, known.keys.other])
    return plain(
      'an action where none is due',
      { path, body: refund, headers },
      { signer, expected: 'refusal' },
    )
  }
  const stranger = order.owner === known.keys.own ? known.keys.other : known.keys.own
  if (chance.happens(0.2)) {
    return plain('an action by a stranger', { path, body: refund }, { signer: stranger, expected: 'refusal' })
  }
  // Of two that choose at once one is refused: nobody else is to choose meanwhile.
  order.stage = 'over'
  const letGo = () => {
    order.stage = 'emergency'
  }
  const others: Entry[] = [
    ['action', chance.pick(['"continue"', '"recalculate"'])],
    ['refund_address', 'null'],
  ]
  return chance.happens(0.6)
    ? plain('a refund', { path, body: refund, headers }, { signer: order.owner, letGo })
    : plain(
        'another action',
        { path, body: others, headers },
        { signer: order.owner, expected: 'either', letGo },
      )
}

function deliveries(known: KnownExchange, chance: Chance): Right {
  const order = pickOrder(known, chance)
  const query = some(chance, [
    ['state', chance.pick(['waiting', 'delivered', 'exhausted', 'cancelled'])],
    ['limit', chance.pick(['1', '100'])],
    ['order_id', order?.id ?? nobodysId(chance)],
  ])
  return plain('deliveries', { query }, { signer: chance.pick([known.keys.own, known.keys.other]) })
}

/** Not every order has a callback_url, and not every event has been handed on yet. */
function redeliver(known: KnownExchange, chance: Chance): Right {
  const order = pickOrder(known, chance)
  const path = { delivery_id: `${order?.id ?? nobodysId(chance)}-1-callback` }
  const headers = idempotency(chance)
  const signer = order?.owner ?? known.keys.own
  return plain('a delivery again', { path, headers }, { signer, expected: 'either' })
}

function redeliverSince(known: KnownExchange, chance: Chance): Right {
  const body: Entry[] = [
    ['since', chance.pick(['"2026-01-31T12:00:00Z"', '"2030-02-28T23:59:59.999Z"'])],
    ...some(chance, [['state', chance.pick(['"exhausted"', '"cancelled"', 'null'])]]),
  ]
  return plain('deliveries since', { body, headers: idempotency(chance) }, { signer: known.keys.own })
}

function endpoint(known: KnownExchange, chance: Chance): Right {
  const body: Entry[] = [['url', text(chance.pick(CALLBACKS))]]
  const learn = ({ json }: Answer) => {
    if (!known.endpoints.includes(json.data.id)) note(known.endpoints, json.data.id)
  }
  return plain('an endpoint', { body }, { signer: known.keys.other, learn })
}

/** Of two that delete the same one, one finds nothing. */
function endEndpoint(known: KnownExchange, chance: Chance): Right {
  const id = known.endpoints.pop() ?? `we_${chance.bytes(8).toString('hex')}`
  return plain('no endpoint', { path: { endpoint_id: id } }, { signer: known.keys.other, expected: 'either' })
}

/** Networks whose transactions wait where another one may take their place. */
const REPLACEABLE = ['BTC', 'ETH', 'ERC20', 'BNB', 'BEP20']

function pay(known: KnownExchange, chance: Chance): Right {
  const order = pickOrder(known, chance, 'new')
  if (order === null) return ofNobody(chance, null)
  order.stage = 'underpaid'
  // Little less than is asked, so that it can be sent back whatever that costs; no other chain has so few decimals as EOS.
  const tooLittle = (Number(order.asks) * 0.9).toFixed(order.network === 'EOS' ? 4 : 6)
  const body: Entry[] = chance.happens(0.8) ? [['amount', tooLittle]] : []
  const isReplaced = REPLACEABLE.includes(order.network) && chance.happens(0.5)
  return plain(
    'a payment',
    { path: { order_id: order.id }, body },
    {
      learn: ({ json }) => note(known.transactions, json.data.tx_hash),
      ...(isReplaced && {
        followUp: ({ json }) => ({ operation: 'sandboxReplace', right: replacementOf(json.data.tx_hash) }),
      }),
      letGo: () => {
        order.stage = 'new'
      },
    },
  )
}

function networkOf({ addresses }: KnownExchange, chance: Chance): string {
  return chance.pick(Object.keys(addresses))
}

function mine(known: KnownExchange, chance: Chance): Right {
  const network = networkOf(known, chance)
  const body: Entry[] = [
    ['network', text(network)],
    // A simulated chain keeps its blocks in the process whose memory is to stay flat.
    ['blocks', String(isOnRealNode(network) ? 1 + chance.below(20) : 1)],
  ]
  return plain('blocks', { body })
}

function reorg(known: KnownExchange, chance: Chance): Right {
  return plain('a reorganisation', {
    body: [
      ['network', text(chance.pick(Object.keys(known.addresses).filter(isReorganised)))],
      ['depth', '1'],
    ],
  })
}

/** Ledgers with tags close for good, and Solana is told of when it is final. */
function isReorganised(network: string): boolean {
  return !isTagged(network) && familyOf(network) !== 'solana'
}

function isTagged(network: string): boolean {
  return depositsLie[familyOf(network)] === 'tags'
}

function isOnRealNode(network: string): boolean {
  return ['bitcoin', 'evm'].includes(familyOf(network))
}

function familyOf(network: string): AddressFamily {
  assert(isNetworkId(network), `${network} is a network`)
  return chainFacts[networkChains[network]].family
}

function replace(known: KnownExchange, chance: Chance): Right {
  return replacementOf(known.transactions.pop() ?? chance.bytes(32).toString('hex'))
}

function replacementOf(hash: string): Right {
  return plain('a double spend', { body: [['tx_hash', text(hash)]] }, { expected: 'either' })
}

/** Prices stay where they are: what a right request brings has to be known. */
function prices({ pairs }: KnownExchange, chance: Chance): Right {
  const code = chance.pick(pairs).from.currency
  const body: Entry[] = code.startsWith('USD')
    ? [
        ['code', text(code)],
        ['usd', chance.pick(['1', '1.0', '1.000'])],
      ]
    : [
        ['code', text(code)],
        ['change_percent', chance.pick(['0', '0.0', '-0'])],
        ['usd', 'null'],
      ]
  return plain('a price', { body })
}

function clock(_known: KnownExchange, chance: Chance): Right {
  return plain('the time', { body: [['advance_seconds', chance.pick(['0', '1'])]] })
}

function freshAddress(known: KnownExchange, chance: Chance): Right {
  return plain('an address', { path: { network: networkOf(known, chance) } })
}

function balance(known: KnownExchange, chance: Chance): Right {
  const { network, currency } = chance.pick(known.pairs).from
  const path = { network, address: addressOn(known, network, chance) }
  return plain('a balance', { path, query: chance.happens(0.7) ? [['currency', currency]] : [] })
}
