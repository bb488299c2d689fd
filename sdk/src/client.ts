import { CambistError, parseObject } from './cambist_error.ts'
import { checkIdempotencyKey } from './check_option.ts'
import { decimalText } from './decimal.ts'
import { type FollowOptions, followOrder } from './follow_order.ts'
import { listOrders } from './list_orders.ts'
import { type Answered, type Call, createTransport, type TransportOptions } from './transport.ts'
import type {
  CreatedOrder,
  CreateOrderRequest,
  Currencies,
  EmergencyRequest,
  EmergencyResult,
  ListOrdersRequest,
  Order,
  OrderEvent,
  OrderPage,
  OrderStatus,
  QrDataUri,
  QrRequest,
  Rate,
  RateRequest,
} from './types.ts'
import { type WaitOptions, waitForStatus } from './wait_for_status.ts'

export type ClientOptions = TransportOptions

export type CallOptions = {
  /**
   * Ends the call, which then rejects with the signal's reason and nothing else. A POST may have been acted on all the same, and a key made at
   * random is lost: whoever aborts one brings an `idempotencyKey`.
   */
  readonly signal?: AbortSignal
}

export type PostOptions = CallOptions & {
  /**
   * Made at random unless given, and then told only by a CambistError. Give one that you keep, to repeat a call safely after you
   * aborted it with `signal`, or after a crash of yours: 1 to 64 of `A-Z a-z 0-9 - _`.
   */
  readonly idempotencyKey?: string
}

type QrImageRequest = Omit<QrRequest, 'format'> & { readonly format?: 'png' | 'svg' }

/**
 * Every method rejects with a CambistError, or with the reason of your signal and nothing else. An amount that is no plain decimal, an
 * option that is no number, a key that the service does not take, or what no header can carry, is a TypeError, before anything is sent.
 */
export type Client = {
  getRate(request: RateRequest, options?: CallOptions): Promise<Rate>
  getCurrencies(options?: CallOptions): Promise<Currencies>
  createOrder(request: CreateOrderRequest, options?: PostOptions): Promise<CreatedOrder>
  getOrder(orderId: string, options?: CallOptions): Promise<Order>
  /** The orders of the account, the newest first; each page is fetched when it is needed. */
  listOrders(request?: ListOrdersRequest, options?: CallOptions): AsyncGenerator<Order, void, undefined>
  /** For whoever holds the order's token; needs no API key. */
  getOrderByToken(shortId: string, token: string, options?: CallOptions): Promise<Order>
  /** The image's bytes: PNG unless `format` says `svg`. */
  getQr(orderId: string, request?: QrImageRequest, options?: CallOptions): Promise<Uint8Array<ArrayBuffer>>
  /** `qr_code` is the image as a data URI, ready for `<img src>`. */
  getQrDataUri(
    orderId: string,
    request?: Omit<QrRequest, 'format'>,
    options?: CallOptions,
  ): Promise<QrDataUri>
  chooseEmergencyAction(
    orderId: string,
    request: EmergencyRequest,
    options?: PostOptions,
  ): Promise<EmergencyResult>
  /** Polls until the order has one of the statuses. */
  waitForStatus(orderId: string, statuses: readonly OrderStatus[], options?: WaitOptions): Promise<Order>
  /** Every change of the order as it comes, each once and in order, through lost connections, until it is DONE or REFUNDED. */
  followOrder(orderId: string, options?: FollowOptions): AsyncGenerator<OrderEvent, void, undefined>
}

export function createClient(options: ClientOptions): Client {
  const { send, open } = createTransport(options)
  const ask = async <Data>(call: Call): Promise<Data> => readData<Data>(await send(call))

  const get = <Data>(path: string, isSigned: boolean, { signal }: CallOptions = {}) =>
    ask<Data>({ method: 'GET', path, isSigned, signal })
  const post = async <Data>(path: string, body: string, { signal, ...given }: PostOptions = {}) => {
    // One key for all repetitions of this call: whatever got through before, it is done once.
    const { idempotencyKey = crypto.randomUUID() } = given
    checkIdempotencyKey(idempotencyKey)
    const headers = { 'Idempotency-Key': idempotencyKey }
    try {
      return await ask<Data>({ method: 'POST', path, isSigned: true, body, headers, signal })
    } catch (error) {
      if (error instanceof CambistError) {
        error.idempotencyKey = idempotencyKey
        // A page that came with 200 is one more answer that says nothing of what was done behind it.
        error.mayHaveActed ||= error.code === 'UNEXPECTED_ANSWER'
      }
      throw error
    }
  }
  const getOrder = (orderId: string, given?: CallOptions) => get<Order>(orderPath(orderId), true, given)

  return {
    // async: a malformed argument rejects like every other failure
    getRate: async (request, given) => {
      const query = toQuery({ ...request, amount: decimalText(request.amount, 'amount') })
      return get<Rate>(`/v1/rate${query}`, false, given)
    },
    getCurrencies: (given) => get<Currencies>('/v1/currencies', false, given),
    createOrder: async ({ amount, ...rest }, given) => {
      const body = toBody(rest, `"amount":${decimalText(amount, 'amount')}`)
      return post<CreatedOrder>('/v1/order/create', body, given)
    },
    getOrder,
    listOrders: (request = {}, given) =>
      listOrders((query) => get<OrderPage>(`/v1/orders${toQuery(query)}`, true, given), request),
    getOrderByToken: (shortId, token, { signal } = {}) =>
      ask<Order>({
        method: 'GET',
        path: orderPath(shortId),
        isSigned: false,
        headers: { 'X-ORDER-TOKEN': token },
        signal,
      }),
    getQr: async (orderId, request = {}, { signal } = {}) => {
      const path = `${orderPath(orderId)}/qr${toQuery(request)}`
      return readImage(await send({ method: 'GET', path, isSigned: false, signal }))
    },
    getQrDataUri: (orderId, request = {}, given) =>
      get<QrDataUri>(`${orderPath(orderId)}/qr${toQuery({ ...request, format: 'base64' })}`, false, given),
    chooseEmergencyAction: async (orderId, request, given) =>
      post<EmergencyResult>(`${orderPath(orderId)}/emergency`, toBody(request), given),
    waitForStatus: (orderId, statuses, wait = {}) =>
      waitForStatus(orderId, (signal) => getOrder(orderId, signal && { signal }), statuses, wait),
    followOrder: (orderId, given = {}) => followOrder(open, `${orderPath(orderId)}/events`, given),
  }
}

function orderPath(id: string): string {
  return `/v1/order/${encodeURIComponent(id)}`
}

function toQuery(parameters: Readonly<Record<string, unknown>>): string {
  const query = new URLSearchParams()
  for (const [name, value] of Object.entries(parameters)) {
    if (value !== undefined) query.set(name, String(value))
  }
  const text = query.toString()
  return text === '' ? '' : `?${text}`
}

/**
 * JSON, the same text of the same values in whatever order they come, and after them `written`, members that are JSON already: the service
 * compares bytes, and whoever repeats a call from a store may get its fields in another order than they were kept in (jsonb of PostgreSQL).
 */
function toBody(request: object, ...written: readonly string[]): string {
  const fields = Object.entries(request)
    .filter(([, value]) => value !== undefined)
    .sort(([one], [other]) => (one < other ? -1 : 1))
    .map(([name, value]) => `${JSON.stringify(name)}:${JSON.stringify(value)}`)
  return `{${[...fields, ...written].join()}}`
}

function readData<Data>({ response, bytes }: Answered): Data {
  const text = new TextDecoder().decode(bytes)
  const envelope = parseObject(text)
  if (envelope?.success === true && 'data' in envelope) return envelope.data as Data
  throw notOurs(response, `without Cambist's envelope: ${text.slice(0, 120)}`)
}

/** A proxy's page of its own also comes with 200, and would be shown as what to pay to. */
function readImage({ response, bytes }: Answered): Uint8Array<ArrayBuffer> {
  const type = response.headers.get('content-type') ?? 'nothing named'
  if (type.startsWith('image/')) return bytes
  throw notOurs(response, `with ${type} in place of an image`)
}

function notOurs({ status }: Response, how: string): CambistError {
  return new CambistError({ code: 'UNEXPECTED_ANSWER', status, message: `HTTP ${status} ${how}` })
}
