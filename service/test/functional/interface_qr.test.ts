import type { CreatedOrder } from '@cambist/sdk'
import jsqr from 'jsqr'
import { PNG } from 'pngjs'
import { beforeAll, describe, expect, test } from 'vitest'
import { type AssetId, assetOf } from '../../src/domain/catalog/assets.ts'
import type { CurrencyCode } from '../../src/domain/catalog/currencies.ts'
import { chainUnits } from '../harness/amounts.ts'
import { createOrder, type Pair } from '../harness/orders.ts'
import { useTestSandbox } from '../harness/test_sandbox.ts'
import { openWire, type Wire } from '../harness/wire.ts'

/**
 * What: every QR image says what the database says of its order, in every format, size, style and deposit asset, and
 * is exactly as large as asked.
 * How: images of the real service are decoded with jsQR; SVG is painted by this test, rectangle by rectangle.
 */
const given = useTestSandbox({ networks: ['BTC', 'ETH', 'BNB', 'XRP', 'XLM', 'TRX', 'EOS', 'SOL'] })
let wire: Wire

type Deposit = {
  readonly currency: CurrencyCode
  readonly pair: Pair
  readonly scheme: string
}

const toBitcoin = { to: 'BTC', to_network: 'BTC' }
const deposits: readonly Deposit[] = [
  {
    currency: 'BTC',
    scheme: 'bitcoin',
    pair: { from: 'BTC', from_network: 'BTC', to: 'ETH', to_network: 'ETH' },
  },
  { currency: 'ETH', scheme: 'ethereum', pair: { from: 'ETH', from_network: 'ETH', ...toBitcoin } },
  { currency: 'BNB', scheme: 'bnb', pair: { from: 'BNB', from_network: 'BNB', ...toBitcoin } },
  { currency: 'USDT', scheme: 'ethereum', pair: { from: 'USDT', from_network: 'ERC20', ...toBitcoin } },
  { currency: 'USDC', scheme: 'ethereum', pair: { from: 'USDC', from_network: 'ERC20', ...toBitcoin } },
  { currency: 'USDT', scheme: 'bnb', pair: { from: 'USDT', from_network: 'BEP20', ...toBitcoin } },
  { currency: 'USDC', scheme: 'bnb', pair: { from: 'USDC', from_network: 'BEP20', ...toBitcoin } },
  { currency: 'XRP', scheme: 'ripple', pair: { from: 'XRP', from_network: 'XRP', ...toBitcoin } },
  { currency: 'XLM', scheme: 'stellar', pair: { from: 'XLM', from_network: 'XLM', ...toBitcoin } },
  { currency: 'TRX', scheme: 'tron', pair: { from: 'TRX', from_network: 'TRX', ...toBitcoin } },
  { currency: 'USDT', scheme: 'tron', pair: { from: 'USDT', from_network: 'TRC20', ...toBitcoin } },
  { currency: 'EOS', scheme: 'eos', pair: { from: 'EOS', from_network: 'EOS', ...toBitcoin } },
  { currency: 'SOL', scheme: 'solana', pair: { from: 'SOL', from_network: 'SOL', ...toBitcoin } },
  { currency: 'USDC', scheme: 'solana', pair: { from: 'USDC', from_network: 'SOL', ...toBitcoin } },
]

const orders = new Map<Deposit, CreatedOrder>()

beforeAll(async () => {
  wire = await openWire(given())
  for (const deposit of deposits) orders.set(deposit, await createOrder(given(), deposit.pair))
})

const sizes = [64, 65, 99, 128, 200, 255, 256, 257, 333, 512, 777, 1023, 1024]

function orderOf(deposit: Deposit): CreatedOrder {
  const order = orders.get(deposit)
  if (order === undefined) throw new Error('the order was created')
  return order
}

function solanaMint(): string {
  return given().devnet.networks.SOL?.mints.USDC.address ?? ''
}

type Image = { readonly data: Uint8ClampedArray; readonly width: number; readonly height: number }

function decode({ data, width, height }: Image): string | undefined {
  return jsqr.default(data, width, height, { inversionAttempts: 'dontInvert' })?.data
}

function readPng(bytes: Buffer): Image {
  const { data, width, height } = PNG.sync.read(bytes)
  return { data: new Uint8ClampedArray(data), width, height }
}

/** Paints what our own SVG says: a white ground and one path of rectangles in a view box of modules. */
function paintSvg(svg: string): Image {
  const size = Number(/<svg[^>]* width="(\d+)"/.exec(svg)?.[1])
  expect(/ height="(\d+)"/.exec(svg)?.[1]).toBe(String(size))
  const [x0 = 0, y0 = 0, modules = 0] = (/viewBox="([^"]+)"/.exec(svg)?.[1] ?? '').split(' ').map(Number)
  const path = /<path d="([^"]+)"/.exec(svg)?.[1] ?? ''
  const scale = 8
  const width = modules * scale
  const data = new Uint8ClampedArray(width * width * 4).fill(255)
  let x = 0
  let y = 0
  for (const [, command = '', numbers = ''] of path.matchAll(/([MmhHvVlLz])([^MmhHvVlLz]*)/g)) {
    const [a = 0, b = 0] = numbers
      .split(/[ ,]|(?<=\d)(?=-)/)
      .filter(Boolean)
      .map(Number)
    if (command === 'M') [x, y] = [a, b]
    else if (command === 'm') [x, y] = [x + a, y + b]
    else if (command === 'h' && a > 0)
      paint(data, width, (x - x0) * scale, (y - y0) * scale, a * scale, scale)
  }
  return { data, width, height: width }
}

function paint(data: Uint8ClampedArray, stride: number, x: number, y: number, w: number, h: number): void {
  for (let row = y; row < y + h; row += 1) {
    for (let column = x; column < x + w; column += 1)
      data.fill(0, (row * stride + column) * 4, (row * stride + column) * 4 + 3)
  }
}

function enlarge({ data, width, height }: Image, times: number): Image {
  const large = new Uint8ClampedArray(width * height * times * times * 4).fill(255)
  for (let y = 0; y < height; y += 1) {
    for (let x = 0; x < width; x += 1) {
      if ((data[(y * width + x) * 4] ?? 255) < 128)
        paint(large, width * times, x * times, y * times, times, times)
    }
  }
  return { data: large, width: width * times, height: height * times }
}

/** A camera sees more pixels than modules; one to one, no reader can tell them apart. */
function seen(image: Image): Image {
  return image.width < 200 ? enlarge(image, 4) : image
}

/** White modules around the code, at the scale of the image, must be at least four. */
function expectQuietZone({ data, width, height }: Image): void {
  const isDark = (x: number, y: number) => (data[(y * width + x) * 4] ?? 255) < 128
  let left = width
  let top = height
  let run = 0
  for (let y = 0; y < height && top === height; y += 1) {
    for (let x = 0; x < width; x += 1) if (isDark(x, y)) [left, top] = [Math.min(left, x), Math.min(top, y)]
  }
  for (let x = left; isDark(x, top); x += 1) run += 1
  const module = run / 7
  expect(left).toBeGreaterThanOrEqual(4 * module)
  expect(top).toBeGreaterThanOrEqual(4 * module)
}

describe.each(deposits)('a deposit of $pair.from on $pair.from_network', (deposit) => {
  /** What the database says, read past the service. */
  async function stored() {
    const { order_id } = orderOf(deposit)
    const [row] = await given().rows<{ deposit_address: string; deposit_tag: string | null; asks: bigint }>(
      'SELECT deposit_address, deposit_tag, asks FROM orders WHERE order_id = $1',
      [order_id],
    )
    if (row === undefined) throw new Error('the order is stored')
    const { decimals } = assetOf(`${deposit.currency}:${deposit.pair.from_network}` as AssetId)
    const digits = row.asks.toString().padStart(decimals + 1, '0')
    const amount = `${digits.slice(0, -decimals)}.${digits.slice(-decimals)}`.replace(/\.?0+$/, '')
    return { address: row.deposit_address, amount, memo: row.deposit_tag }
  }

  async function expected(withAmount: boolean, style: string): Promise<string> {
    const { address, amount, memo } = await stored()
    if (!withAmount) return address
    const own = `${deposit.scheme}:${address}?amount=${amount}`
    const { from_network: network } = deposit.pair
    // Solana Pay in either style: there an amount without a token is one of SOL.
    if (network === 'SOL') return deposit.currency === 'SOL' ? own : `${own}&spl-token=${solanaMint()}`
    if (style === 'default') return own
    if (network === 'EOS') return `${own}&memo=${memo}`
    if (deposit.scheme !== 'ethereum' && deposit.scheme !== 'bnb') return own
    const { chainId = 0, tokens } = given().devnet.networks[deposit.scheme === 'bnb' ? 'BNB' : 'ETH'] ?? {}
    const units = chainUnits(amount, deposit.currency, network as 'ETH')
    const token =
      deposit.currency === 'USDT' || deposit.currency === 'USDC' ? tokens?.[deposit.currency] : undefined
    return token === undefined
      ? `ethereum:${address}@${chainId}?value=${units}`
      : `ethereum:${token.address}@${chainId}/transfer?address=${address}&uint256=${units}`
  }

  test('the image says what the database says, at every size', async () => {
    const { order_id, deposit_address, deposit_amount } = orderOf(deposit)
    const { address, amount } = await stored()
    expect([deposit_address, String(deposit_amount)]).toEqual([address, amount])
    for (const size of sizes) {
      const answer = await wire.request('GET', `/v1/order/${order_id}/qr?size=${size}`)
      const image = readPng(answer.bytes)
      expect([image.width, image.height]).toEqual([size, size])
      expect([size, decode(seen(image))]).toEqual([size, await expected(true, 'default')])
      expectQuietZone(image)
    }
  })

  test('in every format, style, with and without the amount', async () => {
    const { order_id } = orderOf(deposit)
    for (const style of ['default', 'standard']) {
      for (const withAmount of [true, false]) {
        const wanted = await expected(withAmount, style)
        const query = `size=301&include_amount=${withAmount}&style=${style}`
        const png = await wire.client.getQr(order_id, {
          size: 301,
          include_amount: withAmount,
          style: style as 'default',
        })
        const inJson = await wire.request('GET', `/v1/order/${order_id}/qr?${query}&format=base64`)
        const { qr_code, format } = inJson.json.data as { qr_code: string; format: string }
        expect(format).toBe('png')
        const embedded = Buffer.from(qr_code.replace('data:image/png;base64,', ''), 'base64')
        expect(embedded.equals(png)).toBe(true)
        expect(decode(readPng(embedded))).toBe(wanted)
        const svg = await wire.request('GET', `/v1/order/${order_id}/qr?${query}&format=svg`)
        expect(svg.text).toContain('width="301"')
        expect(decode(paintSvg(svg.text))).toBe(wanted)
      }
    }
  })

  test('the longest text is readable at the smallest size and at the largest', async () => {
    const { order_id } = orderOf(deposit)
    for (const size of [64, 67, 128, 1024]) {
      const answer = await wire.request('GET', `/v1/order/${order_id}/qr?size=${size}&style=standard`)
      const image = readPng(answer.bytes)
      expect([image.width, image.height]).toEqual([size, size])
      expect([size, decode(seen(image))]).toEqual([size, await expected(true, 'standard')])
    }
  })
})

test('content types, caching and isolation of the images', async () => {
  const { order_id } = [...orders.values()][0] as CreatedOrder
  const png = await wire.request('GET', `/v1/order/${order_id}/qr`)
  expect(png.headers.get('content-type')).toBe('image/png')
  const svg = await wire.request('GET', `/v1/order/${order_id}/qr?format=svg`)
  expect(svg.headers.get('content-type')).toBe('image/svg+xml')
  expect(svg.headers.get('content-security-policy')).toContain("default-src 'none'")
  for (const answer of [png, svg]) {
    expect(answer.headers.get('cache-control')).toContain('private')
    expect(answer.headers.get('x-content-type-options')).toBe('nosniff')
    expect(answer.headers.get('access-control-allow-origin')).toBe('*')
  }
})

test.each([
  'size=63',
  'size=1025',
  'size=0',
  'size=-1',
  'size=256.5',
  'size=2e2',
  'size=',
  'size=abc',
  'format=jpg',
  'format=PNG',
  'include_amount=yes',
  'include_amount=1',
  'style=fancy',
  'level=H',
  'size=64&size=65',
])('INVALID_PARAMETER as JSON: %s', async (query) => {
  const { order_id } = [...orders.values()][0] as CreatedOrder
  const answer = await wire.request('GET', `/v1/order/${order_id}/qr?${query}`)
  expect([answer.status, answer.json.error_code]).toEqual([400, 'INVALID_PARAMETER'])
  expect(answer.json.details[0].field).toBe(query.split('=')[0])
})

test('an unknown order is 404 as JSON in every format', async () => {
  for (const format of ['png', 'svg', 'base64']) {
    const answer = await wire.request('GET', `/v1/order/CB0000000000000000/qr?format=${format}`)
    expect([answer.status, answer.json.error_code]).toEqual([404, 'ORDER_NOT_FOUND'])
  }
})
