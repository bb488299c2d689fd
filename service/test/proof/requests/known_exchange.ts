import { createClient } from '@cambist/sdk'
import type { ToldSecret } from '../../../src/accounts/keys.ts'
import { sandboxRemote } from '../../../src/sandbox/remote.ts'
import { eventually } from '../../harness/eventually.ts'
import { type KnownOwner, signInOwner } from './owner.ts'

/** What can be exchanged, with amounts that are in range. */
export type KnownPair = {
  readonly from: Place
  readonly to: Place
  /** The least that is exchanged, in units of 10^-decimals. */
  readonly least: bigint
  readonly decimals: number
  /** An amount of the destination that is in range. */
  readonly toAmount: string
}

type Place = { readonly currency: string; readonly network: string; readonly isNative: boolean }

export type KnownOrder = {
  readonly id: string
  readonly token: string
  readonly owner: ToldSecret
  readonly network: string
  readonly asks: string
  stage: 'new' | 'underpaid' | 'emergency' | 'over'
}

/** What a client knows of the service: what it was told at first, and what it has learned since. */
export type KnownExchange = {
  readonly keys: { readonly own: ToldSecret; readonly other: ToldSecret }
  readonly pairs: readonly KnownPair[]
  /** Addresses of nobody, by network. */
  readonly addresses: Readonly<Record<string, readonly string[]>>
  readonly orders: KnownOrder[]
  readonly locks: { readonly pair: KnownPair; readonly amount: string; readonly rateId: string }[]
  readonly transactions: string[]
  /** Of the other account. */
  readonly endpoints: string[]
  readonly owner: KnownOwner
}

const ADDRESSES_EACH = 6

export async function learnExchange(baseUrl: string, keys: KnownExchange['keys']): Promise<KnownExchange> {
  const client = createClient({ baseUrl, apiKey: keys.own.keyId, apiSecret: keys.own.secret })
  const currencies = await client.getCurrencies()
  const places = Object.entries(currencies).flatMap(([currency, { networks }]) =>
    networks.map((network): Place => ({ currency, network, isNative: network === currency })),
  )
  const couples = places.flatMap((from) => places.filter((to) => to !== from).map((to) => ({ from, to })))
  const pairs = couples.map(async ({ from, to }): Promise<KnownPair> => {
    const { min_amount: min = 0, precision: decimals = 0 } = currencies[from.currency] ?? {}
    const asked = { from: from.currency, from_network: from.network, to: to.currency, to_network: to.network }
    const rate = await client.getRate({ ...asked, amount: min * 20 })
    const least = BigInt(Math.ceil(rate.min_amount * 10 ** decimals))
    return { from, to, least, decimals, toAmount: String(rate.to_amount) }
  })
  const emergencies = await makeEmergencies(baseUrl, keys.own)
  const networks = [...new Set(places.map(({ network }) => network))]
  const addresses = networks.map(async (network) => {
    const fresh = Array.from({ length: ADDRESSES_EACH }, async () => {
      const { data } = (await (await fetch(`${baseUrl}/sandbox/address/${network}`)).json()) as Addressed
      return data.address
    })
    return [network, await Promise.all(fresh)] as const
  })
  return {
    keys,
    pairs: await Promise.all(pairs),
    addresses: Object.fromEntries(await Promise.all(addresses)),
    orders: emergencies,
    locks: [],
    transactions: [],
    endpoints: [],
    owner: await signInOwner(baseUrl),
  }
}

const EMERGENCIES = 8

/** Orders that were paid too little: a short run is over before its own ones are so far. */
async function makeEmergencies(baseUrl: string, owner: ToldSecret): Promise<KnownOrder[]> {
  const client = createClient({ baseUrl, apiKey: owner.keyId, apiSecret: owner.secret })
  const sandbox = sandboxRemote(baseUrl)
  const network = 'BEP20'
  const made = Array.from({ length: EMERGENCIES }, async (): Promise<KnownOrder> => {
    const order = await client.createOrder({
      ...{ from: 'USDC', from_network: network, to: 'USDT', to_network: 'ERC20', amount: 100 },
      ...{ rate_type: 'float', destination: await sandbox.freshAddress('ERC20') },
    })
    await sandbox.pay(order.order_id, 50)
    return { id: order.order_id, token: order.token, owner, network, asks: '100', stage: 'emergency' }
  })
  const orders = await Promise.all(made)
  await sandbox.mine(network, 20)
  for (const { id } of orders) {
    await eventually(`${id} is in EMERGENCY`, async () => {
      const { status } = await client.getOrder(id)
      if (status !== 'EMERGENCY') throw new Error(`it is ${status}`)
    })
  }
  return orders
}

type Addressed = { readonly data: { readonly address: string } }

/** Plain decimal text of units of 10^-decimals. */
export function decimalText(units: bigint, decimals: number): string {
  const digits = units.toString().padStart(decimals + 1, '0')
  const fraction = digits.slice(digits.length - decimals).replace(/0+$/, '')
  const whole = digits.slice(0, digits.length - decimals)
  return fraction === '' ? whole : `${whole}.${fraction}`
}
