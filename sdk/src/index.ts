export { CambistError, type LocalErrorCode } from './cambist_error.ts'
export {
  type CallOptions,
  type Client,
  type ClientOptions,
  createClient,
  type PostOptions,
} from './client.ts'
export type { FollowOptions } from './follow_order.ts'
export { isOrderEvent } from './order_event.ts'
export type { components, paths } from './schema.ts'
export { createSigner, type Sign, type SignedParts } from './sign.ts'
export type { Retry } from './transport.ts'
export type {
  CreatedOrder,
  CreateOrderRequest,
  Currencies,
  DecimalInput,
  EmergencyReason,
  EmergencyRequest,
  EmergencyResult,
  ListOrdersRequest,
  Order,
  OrderEvent,
  OrderStatus,
  QrDataUri,
  QrRequest,
  Rate,
  RateRequest,
  ServiceErrorCode,
  WebhookEvent,
} from './types.ts'
export { type ReceivedWebhook, verifyWebhook, WebhookRefused } from './verify_webhook.ts'
export type { WaitOptions } from './wait_for_status.ts'
