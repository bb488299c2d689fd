import type { components, paths } from './schema.ts'

/** What a successful JSON answer carries. */
type Answer<Operation> = Operation extends {
  responses: { 200: { content: { 'application/json': { data: infer Data } } } }
}
  ? Data
  : never

type Body<Operation> = Operation extends { requestBody: { content: { 'application/json': infer Given } } }
  ? Given
  : never

type Query<Operation> = Operation extends { parameters: { query?: infer Given } } ? NonNullable<Given> : never

/**
 * An exact quantity. Text such as `'0.1'` goes out digit by digit; a number goes out as the shortest decimal
 * that reads back as the same number.
 */
export type DecimalInput = number | string

type WithDecimal<Given, Name extends keyof Given> = Omit<Given, Name> & Record<Name, DecimalInput>

/** What may be left out may also be `undefined`, so that one answer's optional field fits the next request. */
type Lenient<Given> = {
  [Name in keyof Given]: object extends Pick<Given, Name> ? Given[Name] | undefined : Given[Name]
}

/** Why an order is in EMERGENCY. A later service may have others: they are there as they are, and are text as well. */
export type EmergencyReason =
  | 'UNDERPAID'
  | 'OVERPAID'
  | 'LATE_DEPOSIT'
  | 'RATE_SLIPPAGE'
  | 'NETWORK_PROBLEM'
  | 'DESTINATION_PROBLEM'
  // Not just `string`, which would swallow the names before it: editors offer them.
  | (string & {})

type WithReasons<Told extends { emergency?: { reasons: string[] } }> = Omit<Told, 'emergency'> & {
  emergency?: Omit<NonNullable<Told['emergency']>, 'reasons'> & { reasons: EmergencyReason[] }
}

export type RateRequest = WithDecimal<Lenient<Query<paths['/v1/rate']['get']>>, 'amount'>
export type Rate = Answer<paths['/v1/rate']['get']>
/** By currency code. */
export type Currencies = Answer<paths['/v1/currencies']['get']>
export type CreateOrderRequest = WithDecimal<Lenient<Body<paths['/v1/order/create']['post']>>, 'amount'>
/** The only answer that carries the order's `token`. */
export type CreatedOrder = Answer<paths['/v1/order/create']['post']>
export type Order = WithReasons<Answer<paths['/v1/order/{order_id}']['get']>>
/** What a webhook brings of any type: ask `isOrderEvent` first, and pass over what it is not. */
export type WebhookEvent = { readonly type: string; readonly timestamp: string; readonly data: unknown }
/** What a webhook of the type `order.status_changed` brings: the order as it was when its status changed. */
export type OrderEvent = Omit<OrderEventAsTold, 'type' | 'data'> & {
  type: 'order.status_changed'
  data: WithReasons<OrderEventAsTold['data']>
}
type OrderEventAsTold = components['schemas']['OrderEvent']
export type OrderStatus = Order['status']
/** Times are ISO 8601 in UTC, or a Date. */
export type ListOrdersRequest = {
  readonly status?: readonly OrderStatus[] | undefined
  readonly created_after?: string | Date | undefined
  readonly created_before?: string | Date | undefined
  readonly updated_after?: string | Date | undefined
}
export type OrderPage = Omit<Answer<paths['/v1/orders']['get']>, 'orders'> & { orders: Order[] }
export type EmergencyRequest = Lenient<Body<paths['/v1/order/{order_id}/emergency']['post']>>
export type EmergencyResult = Answer<paths['/v1/order/{order_id}/emergency']['post']>
export type QrDataUri = Answer<paths['/v1/order/{order_id}/qr']['get']>
export type QrRequest = Omit<Lenient<Query<paths['/v1/order/{order_id}/qr']['get']>>, 'include_amount'> & {
  readonly include_amount?: boolean | undefined
}

/** Every code that the service may answer with. */
export type ServiceErrorCode = {
  [Name in keyof components['schemas']]: components['schemas'][Name] extends { error_code: infer Code }
    ? Code
    : never
}[keyof components['schemas']]
