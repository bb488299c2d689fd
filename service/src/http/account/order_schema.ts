import Type, { type TSchema } from 'typebox'
import { orderStatuses } from '../../domain/orders/order.ts'
import { decimal, instant, nullable, oneOf, oneOfSoFar, text } from '../json/schema.ts'
import { orderIdSchema } from './order_id.ts'

const rateTypes = ['fixed', 'float'] as const
const hash = '9b1c0f0f3f5c1d2f4c5b6a79808f7e6d5c4b3a2918070605040302010f0e0d0c'

export const statusSchema = oneOf(orderStatuses, 'Where the order is.')

const described = {
  order_id: orderIdSchema,
  status: statusSchema,
  deposit_address: text('Where to send the deposit.', 'bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080'),
  deposit_tag: nullable(text('Memo or tag to send with the deposit; null when none is needed.', '48213')),
  deposit_account: Type.Optional(
    text(
      'Present where there is a tag: the account to send to together with it, for a wallet that asks for the two apart.',
      'rPT1Sjq2YGrBMTttX4GZHjKu9dyfzbpAYe',
    ),
  ),
  deposit_currency: text('Currency to deposit.', 'BTC'),
  deposit_network: text('Network of the deposit.', 'BTC'),
  deposit_amount: decimal('Exact amount to deposit.', 0.05),
  deposit_received: decimal('What has arrived so far.', 0.05),
  deposit_confirmations: Type.Integer({
    description: 'Confirmations so far; all that are needed only once every deposit is confirmed.',
    examples: [2],
  }),
  deposit_required_confirmations: Type.Integer({ description: 'Confirmations needed.', examples: [3] }),
  deposit_tx_hash: nullable(text('Null until something arrives.', hash)),
  receive_currency: text('Currency of the payout.', 'USDT'),
  receive_network: text('Network of the payout.', 'ERC20'),
  receive_amount: decimal('Amount of the payout as quoted.', 3225.012),
  receive_final_amount: decimal(
    'Amount of the payout as it is now; float and emergencies may change it.',
    3225.012,
  ),
  rate: decimal('Rate used for the order.', 64500.25),
  rate_type: oneOf(rateTypes, 'As asked.'),
  fee: decimal('Exchange fee in the currency of the payout.', 16.29),
  network_fee: decimal('Cost of the payout in its own currency.', 1.2),
  destination: text('Where the payout goes.', '0x52908400098527886E0F7030069857D2E4169EE7'),
  destination_tag: nullable(text('Memo or tag of the destination.', '12345')),
  refund_address: nullable(text('Where a refund would go.', 'bcrt1q6rhpng9evdsfnn833a4f4vej0asu6dk5srld6x')),
  callback_url: nullable(Type.String({ format: 'uri', description: 'Where status updates are sent.' })),
  withdraw_tx_hash: nullable(text('Null until the payout is sent.', hash)),
  created_at: instant('When the order was created.'),
  updated_at: instant('When it last changed.'),
  expires_at: instant('The payment must be sent before this.'),
  completed_at: nullable(instant('Null until the order is done.')),
}

const option = (description: string) =>
  Type.Unsafe({
    anyOf: [
      Type.Object(
        {
          receive_amount: decimal('What would be paid out.', 3100.5),
          rate: decimal('At this rate.', 64500.25),
        },
        { description },
      ),
      { type: 'null' },
    ],
  })

const refundOption = Type.Unsafe({
  anyOf: [
    Type.Object(
      {
        refund_amount: decimal('What would be returned.', 0.0499),
        network_fee: decimal('Cost of returning it.', 0.0001),
        currency: text('Currency of both.', 'BTC'),
        network: text('Network of the refund.', 'BTC'),
        has_refund_address: Type.Boolean({
          description: 'False: the action must bring a refund_address.',
        }),
      },
      { description: 'What `refund` would do now.' },
    ),
    { type: 'null' },
  ],
})

const reasons = [
  'UNDERPAID',
  'OVERPAID',
  'LATE_DEPOSIT',
  'RATE_SLIPPAGE',
  'NETWORK_PROBLEM',
  'DESTINATION_PROBLEM',
]

const emergency = Type.Object(
  {
    reasons: Type.Array(oneOfSoFar(reasons, 'What went differently.')),
    options: Type.Object(
      {
        continue: option('What `continue` would do now.'),
        recalculate: option('What `recalculate` would do now.'),
        refund: refundOption,
      },
      { description: 'What each action would do now; null where it cannot be taken.' },
    ),
  },
  { description: 'Present in EMERGENCY.' },
)

const refund = Type.Object(
  {
    address: text('Where it goes.', 'bcrt1q6rhpng9evdsfnn833a4f4vej0asu6dk5srld6x'),
    amount: decimal('What is returned.', 0.0499),
    currency: text('Currency of the refund.', 'BTC'),
    network: text('Network of the refund.', 'BTC'),
    network_fee: decimal('Cost of returning it.', 0.0001),
    tx_hash: nullable(text('Null until it is sent.', hash)),
  },
  { description: 'Present in REFUND and REFUNDED.' },
)

/** What `GET` shows (docs/api.md, Orders). */
export const orderSchema: TSchema = Type.Object(
  {
    order_id: described.order_id,
    short_id: text('The last 8 digits; names the order together with its token.', '77160542'),
    status: described.status,
    deposit_address: described.deposit_address,
    deposit_tag: described.deposit_tag,
    deposit_account: described.deposit_account,
    deposit_currency: described.deposit_currency,
    deposit_network: described.deposit_network,
    deposit_amount: described.deposit_amount,
    deposit_received: described.deposit_received,
    deposit_confirmations: described.deposit_confirmations,
    deposit_required_confirmations: described.deposit_required_confirmations,
    receive_currency: described.receive_currency,
    receive_network: described.receive_network,
    receive_amount: described.receive_amount,
    receive_final_amount: described.receive_final_amount,
    rate: described.rate,
    rate_type: described.rate_type,
    fee: described.fee,
    network_fee: described.network_fee,
    destination: described.destination,
    destination_tag: described.destination_tag,
    refund_address: described.refund_address,
    callback_url: described.callback_url,
    deposit_tx_hash: described.deposit_tx_hash,
    withdraw_tx_hash: described.withdraw_tx_hash,
    created_at: described.created_at,
    updated_at: described.updated_at,
    expires_at: described.expires_at,
    completed_at: described.completed_at,
    emergency: Type.Optional(emergency),
    refund: Type.Optional(refund),
  },
  { $id: 'Order' },
)

/** A page of a list of orders. */
export const orderPageSchema: TSchema = Type.Object(
  {
    orders: Type.Array(Type.Ref('Order'), { description: 'The newest first.' }),
    next_cursor: nullable(
      Type.String({
        description: 'For `cursor`: where the next page begins. Null: this is the last.',
        examples: ['MTc5MDAwMDAwMDAwMC5DQjQ4MjEwOTMzNzcxNjA1NDI'],
      }),
    ),
  },
  { $id: 'OrderPage' },
)

/** What `create` shows. */
export const createdOrderSchema: TSchema = Type.Object(
  {
    order_id: described.order_id,
    short_id: text('The last 8 digits; names the order together with its token.', '77160542'),
    token: Type.String({
      description: 'Lets its holder read this order and nothing else. Told once, here.',
      examples: ['q2Vb7Jm0cX3mGZ0p3l8R0f9yq1s4n6t8w0z2b4d6f8h'],
    }),
    status: described.status,
    deposit_address: described.deposit_address,
    deposit_tag: described.deposit_tag,
    deposit_account: described.deposit_account,
    deposit_currency: described.deposit_currency,
    deposit_network: described.deposit_network,
    deposit_amount: described.deposit_amount,
    receive_currency: described.receive_currency,
    receive_network: described.receive_network,
    receive_amount: described.receive_amount,
    rate: described.rate,
    rate_type: described.rate_type,
    fee: described.fee,
    network_fee: described.network_fee,
    destination: described.destination,
    destination_tag: described.destination_tag,
    refund_address: described.refund_address,
    callback_url: described.callback_url,
    created_at: described.created_at,
    expires_at: described.expires_at,
    qr_code_url: Type.String({ format: 'uri', description: 'A QR image that pays the order.' }),
  },
  { $id: 'CreatedOrder' },
)
