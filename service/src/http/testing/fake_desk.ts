import type { CurrencyView, Desk, OrderView, PaymentView, RateView } from '../../engine/desks/desk.ts'
import type { EventFeed } from '../../engine/notify/feed.ts'

/** A desk that answers with fixed views and remembers what it was asked. */
export type FakeDesk = Desk & {
  readonly asked: { readonly call: string; readonly args: readonly unknown[] }[]
}

export const ORDER_ID = 'CB4821093377160542'
export const ORDER_TOKEN = 'tok_canary_7Jm0cX3mGZ0p3l8R0f9yq1s4n6t8w0z2b4d6f8h'
export const ADDRESS = 'bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080'

export const rateView: RateView = {
  market: {
    from: 'BTC',
    from_network: 'BTC',
    to: 'USDT',
    to_network: 'ERC20',
    rate_type: 'float',
    fee_percent: '0.5',
    network_fee: '1.2',
    min_amount: '0.0002',
    max_amount: '10',
  },
  rate: '64500.25',
  from_amount: '0.1',
  to_amount: '6450.025',
  fee: '32.25',
}

export const orderView: OrderView = {
  order_id: ORDER_ID,
  short_id: '77160542',
  status: 'NEW',
  deposit_address: ADDRESS,
  deposit_tag: null,
  deposit_currency: 'BTC',
  deposit_network: 'BTC',
  deposit_amount: '0.1',
  deposit_received: '0',
  deposit_confirmations: 0,
  deposit_required_confirmations: 3,
  deposit_tx_hash: null,
  receive_currency: 'USDT',
  receive_network: 'ERC20',
  receive_amount: '6450.025',
  receive_final_amount: '6450.025',
  rate: '64500.25',
  rate_type: 'float',
  fee: '32.25',
  network_fee: '1.2',
  destination: '0x52908400098527886E0F7030069857D2E4169EE7',
  destination_tag: null,
  refund_address: null,
  callback_url: 'https://shop.example/hook',
  withdraw_tx_hash: null,
  created_at: 1_790_000_000_000,
  updated_at: 1_790_000_000_000,
  expires_at: 1_790_000_900_000,
  completed_at: null,
}

export const paymentView: PaymentView = {
  address: ADDRESS,
  uri: `bitcoin:${ADDRESS}?amount=0.1`,
  standardUri: `bitcoin:${ADDRESS}?amount=0.1&message=standard`,
}

export const usdtView: CurrencyView = {
  networks: ['ERC20', 'BEP20'],
  name: 'Tether USD',
  logo: '/logos/USDT.svg',
  color: '#26A17B',
  precision: 6,
  min_amount: '10',
  max_amount: '500000',
  enabled: true,
  priority: 3,
}

export function fakeDesk(answers: Partial<Desk> = {}): FakeDesk {
  const asked: { call: string; args: readonly unknown[] }[] = []
  const fixed: Desk = {
    rate: async () => ({ ok: true, value: rateView }),
    isCurrent: () => false,
    currencies: async () => ({ USDT: usdtView }),
    createOrder: async () => ({ ok: true, value: { order: orderView, token: ORDER_TOKEN, isReplay: false } }),
    findOrder: async () => orderView,
    listOrders: async () => ({ orders: [orderView], next: null }),
    findPayment: async () => paymentView,
    chooseAction: async () => ({
      ok: true,
      value: {
        order_id: ORDER_ID,
        status: 'REFUND',
        message: 'the deposit is being returned',
        updated_at: 1_790_000_100_000,
        isReplay: false,
      },
    }),
    ...answers,
  }
  const remembered = Object.entries(fixed).map(([call, answer]) => [
    call,
    (...args: readonly unknown[]) => {
      asked.push({ call, args })
      return (answer as (...args: readonly unknown[]) => unknown)(...args)
    },
  ])
  return { ...(Object.fromEntries(remembered) as Desk), asked }
}

/** Nothing happens to any order. */
export const quietFeed: EventFeed = { since: async () => [], follow: () => () => {}, close: async () => {} }
