import { beforeAll, describe, expect, test } from 'vitest'
import { createOrder, quickPair } from '../harness/orders.ts'
import { useTestSandbox } from '../harness/test_sandbox.ts'
import { type Answer, openWire, type Wire } from '../harness/wire.ts'

/**
 * What: every route of the sandbox contract does on real chains what it says, answers in the interface's envelope, and
 * refuses in words what it cannot do.
 * How: raw HTTP, as a tool in another language would; every answer is held against the served document.
 */
const given = useTestSandbox()
let wire: Wire

beforeAll(async () => {
  wire = await openWire(given())
})

function post(path: string, body?: object | string): Promise<Answer> {
  const text = typeof body === 'string' ? body : JSON.stringify(body)
  return wire.request('POST', `/sandbox${path}`, {
    ...(body !== undefined && { body: text, headers: { 'Content-Type': 'application/json' } }),
  })
}

const get = (path: string) => wire.request('GET', `/sandbox${path}`)

function dataOf(answer: Answer): Record<string, unknown> {
  expect([answer.status, answer.json.success], answer.text).toEqual([200, true])
  return answer.json.data
}

function expectRefused(answer: Answer, status: number, code: string, field?: string): void {
  expect([answer.status, answer.json.error_code], answer.text).toEqual([status, code])
  expect(answer.json.message).not.toMatch(/node_modules|\n\s+at |Request Arguments|viem/)
  if (field !== undefined) expect(answer.json.details[0].field).toBe(field)
}

async function addressOn(network: string): Promise<string> {
  return dataOf(await get(`/address/${network}`)).address as string
}

async function balanceOf(network: string, address: string, currency?: string): Promise<unknown> {
  const query = currency === undefined ? '' : `?currency=${currency}`
  return dataOf(await get(`/balance/${network}/${address}${query}`)).balance
}

const UNKNOWN_ORDER = 'CB0000000000000000'
const btcToEth = { from: 'BTC', from_network: 'BTC', to: 'ETH', to_network: 'ETH' }

describe('pay', () => {
  test('without a body pays what the order asks; with an amount, that, to the chain’s last decimal', async () => {
    const order = await createOrder(given(), { ...quickPair, from_network: 'BEP20', to_network: 'ERC20' })
    const asked = dataOf(await post(`/orders/${order.order_id}/pay`))
    expect(asked.tx_hash).toMatch(/^0x[0-9a-f]{64}$/)
    await given().mine('BEP20', 1)
    expect(await balanceOf('BEP20', order.deposit_address, 'USDT')).toBe(order.deposit_amount)
    dataOf(await post(`/orders/${order.order_id}/pay`, '{"amount":0.000000000000001}'))
    dataOf(await post(`/orders/${order.order_id}/pay`, {}))
    await given().mine('BEP20', 1)
    const held = await get(`/balance/BEP20/${order.deposit_address}?currency=USDT`)
    expect(held.text).toContain(`"balance":${2 * order.deposit_amount}000000001}`)
  })

  test('bitcoin is paid with a real transaction that is in the mempool', async () => {
    const order = await createOrder(given(), btcToEth)
    const { tx_hash } = dataOf(await post(`/orders/${order.order_id}/pay`, { amount: 0.005 }))
    expect(tx_hash).toMatch(/^[0-9a-f]{64}$/)
    const pool = (await given().devnet.bitcoin.rpc('getrawmempool', [])) as string[]
    expect(pool).toContain(tx_hash)
    const pending = await given().waitForStatus(order.order_id, 'PENDING')
    expect(pending).toMatchObject({ deposit_received: 0.005, deposit_tx_hash: tx_hash })
  })

  test('refuses what cannot be paid', async () => {
    const order = await createOrder(given(), quickPair)
    expectRefused(await post(`/orders/${UNKNOWN_ORDER}/pay`), 404, 'ORDER_NOT_FOUND')
    expectRefused(await post('/orders/nonsense/pay'), 404, 'ORDER_NOT_FOUND')
    expectRefused(
      await post(`/orders/${order.order_id}/pay`, { amount: 0 }),
      400,
      'INVALID_PARAMETER',
      'amount',
    )
    expectRefused(
      await post(`/orders/${order.order_id}/pay`, { amount: '1' }),
      400,
      'INVALID_PARAMETER',
      'amount',
    )
    expectRefused(
      await post(`/orders/${order.order_id}/pay`, '{"amount":1.0000001}'),
      400,
      'INVALID_PARAMETER',
      'amount',
    )
    expectRefused(
      await post(`/orders/${order.order_id}/pay`, { units: 1 }),
      400,
      'INVALID_PARAMETER',
      'units',
    )
    expectRefused(await post(`/orders/${order.order_id}/pay`, '{'), 400, 'INVALID_PARAMETER', 'body')
    const bitcoin = await createOrder(given(), btcToEth)
    expectRefused(
      await post(`/orders/${bitcoin.order_id}/pay`, '{"amount":0.00000001}'),
      400,
      'INVALID_PARAMETER',
      'amount',
    )
    expectRefused(
      await post(`/orders/${bitcoin.order_id}/pay`, '{"amount":90000000}'),
      400,
      'INVALID_PARAMETER',
      'amount',
    )
  })
})

describe('mine and reorg', () => {
  test('more blocks than a node remembers are mined, and a deposit in the first of them is seen', async () => {
    const order = await createOrder(given(), quickPair)
    dataOf(await post(`/orders/${order.order_id}/pay`))
    expect(dataOf(await post('/mine', { network: 'ERC20', blocks: 100 }))).toEqual({})
    await given().waitForStatus(order.order_id, 'WITHDRAW')
    await given().bury('BEP20')
    await given().waitForStatus(order.order_id, 'DONE')
  })

  const height = async (chain: 'BTC' | 'ETH' | 'BNB') => {
    const rows = await given().rows<{ height: number }>('SELECT height FROM chain_heads WHERE chain = $1', [
      chain,
    ])
    return rows[0]?.height ?? -1
  }

  test.each([
    ['BTC', 'BTC'],
    ['ETH', 'ETH'],
    ['BNB', 'BNB'],
    ['ERC20', 'ETH'],
    ['BEP20', 'BNB'],
  ] as const)('mining on %s makes as many blocks as asked', async (network, chain) => {
    await given().settle(chain)
    const before = await height(chain)
    expect(dataOf(await post('/mine', { network, blocks: 3 }))).toEqual({})
    await given().eventually('the service sees them', async () =>
      expect(await height(chain)).toBe(before + 3),
    )
  })

  test.each(['BTC', 'ETH', 'BNB'] as const)(
    'a reorganisation of %s replaces the newest blocks',
    async (network) => {
      dataOf(await post('/mine', { network, blocks: 2 }))
      await given().settle(network)
      const hash = async () =>
        (await given().rows<{ hash: string }>('SELECT hash FROM chain_heads WHERE chain = $1', [network]))[0]
          ?.hash
      const before = await hash()
      expect(before).toMatch(/\w{64}/)
      expect(dataOf(await post('/reorg', { network, depth: 2 }))).toEqual({})
      await given().eventually('the service follows', async () => expect(await hash()).not.toBe(before))
    },
  )

  test('refuse what cannot be', async () => {
    for (const network of ['DOGE', 'bitcoin', 'constructor']) {
      expectRefused(await post('/mine', { network, blocks: 1 }), 400, 'INVALID_PARAMETER', 'network')
      expectRefused(await post('/reorg', { network, depth: 1 }), 400, 'INVALID_PARAMETER', 'network')
    }
    for (const blocks of [0, -1, 1.5, 1_001, '1', null]) {
      expectRefused(await post('/mine', { network: 'ETH', blocks }), 400, 'INVALID_PARAMETER', 'blocks')
    }
    for (const depth of [0, 101]) {
      expectRefused(await post('/reorg', { network: 'ETH', depth }), 400, 'INVALID_PARAMETER', 'depth')
    }
    expectRefused(await post('/mine', {}), 400, 'INVALID_PARAMETER', 'network')
  })
})

describe('replace', () => {
  test('a double spend takes the deposit away, to whom it is told or back', async () => {
    for (const to of [undefined, await addressOn('BTC')]) {
      const order = await createOrder(given(), btcToEth)
      const { tx_hash } = dataOf(await post(`/orders/${order.order_id}/pay`))
      await given().waitForStatus(order.order_id, 'PENDING')
      const replacement = dataOf(await post('/replace', { tx_hash, ...(to && { to }) })).tx_hash
      expect(replacement).toMatch(/^[0-9a-f]{64}$/)
      expect(replacement).not.toBe(tx_hash)
      await given().waitForStatus(order.order_id, 'NEW')
      await given().mine('BTC', 1)
      if (to !== undefined) expect(await balanceOf('BTC', to)).toBe(order.deposit_amount)
    }
  })

  test('refuses a transaction that nobody sent, that is in a block, or an address that is none', async () => {
    expectRefused(await post('/replace', { tx_hash: '0'.repeat(64) }), 400, 'INVALID_PARAMETER', 'tx_hash')
    expectRefused(
      await post('/replace', { tx_hash: `0x${'0'.repeat(64)}` }),
      400,
      'INVALID_PARAMETER',
      'tx_hash',
    )
    const order = await createOrder(given(), btcToEth)
    const { tx_hash } = dataOf(await post(`/orders/${order.order_id}/pay`))
    expectRefused(await post('/replace', { tx_hash, to: 'nowhere' }), 400, 'INVALID_PARAMETER')
    await given().mine('BTC', 1)
    expectRefused(await post('/replace', { tx_hash }), 400, 'INVALID_PARAMETER', 'tx_hash')
  })
})

describe('prices and clock', () => {
  const rate = async () =>
    (await wire.client.getRate({ from: 'BTC', to: 'USDT', to_network: 'ERC20', amount: '1' })).to_amount

  test('a price is set in dollars or moved by percent, and holds still until changed', async () => {
    dataOf(await post('/prices', { code: 'USDT', usd: 1 }))
    expect(dataOf(await post('/prices', { code: 'BTC', usd: 50_000 }))).toEqual({})
    const first = await rate()
    expect(first).toBeGreaterThan(49_500)
    expect(first).toBeLessThan(50_000)
    expect(await rate()).toBe(first)
    dataOf(await post('/prices', { code: 'BTC', change_percent: 10 }))
    expect(await rate()).toBeGreaterThan(first * 1.0999)
    expect(await rate()).toBeLessThan(first * 1.1001)
    dataOf(await post('/prices', { code: 'BTC', change_percent: -50.5 }))
    expect(await rate()).toBeLessThan(first * 1.1 * 0.4951)
    dataOf(await post('/prices', '{"code":"BTC","usd":65000.50}'))
  })

  test('prices refuse unknown currencies, both ways at once, neither, and what leaves nothing', async () => {
    expectRefused(await post('/prices', { code: 'DOGE', usd: 1 }), 400, 'INVALID_PARAMETER', 'code')
    expectRefused(await post('/prices', { code: 'constructor', usd: 1 }), 400, 'INVALID_PARAMETER', 'code')
    expectRefused(await post('/prices', { code: 'BTC' }), 400, 'INVALID_PARAMETER', 'usd')
    expectRefused(
      await post('/prices', { code: 'BTC', usd: 1, change_percent: 1 }),
      400,
      'INVALID_PARAMETER',
      'usd',
    )
    expectRefused(await post('/prices', { code: 'BTC', usd: 0 }), 400, 'INVALID_PARAMETER', 'usd')
    expectRefused(await post('/prices', { code: 'BTC', usd: -1 }), 400, 'INVALID_PARAMETER', 'usd')
    expectRefused(
      await post('/prices', { code: 'BTC', change_percent: -100 }),
      400,
      'INVALID_PARAMETER',
      'change_percent',
    )
    expectRefused(
      await post('/prices', { code: 'BTC', change_percent: -200 }),
      400,
      'INVALID_PARAMETER',
      'change_percent',
    )
    expectRefused(
      await post('/prices', { code: 'BTC', change_percent: 'x' }),
      400,
      'INVALID_PARAMETER',
      'change_percent',
    )
    expect(await rate()).toBeGreaterThan(60_000)
  })

  test('the clock goes forward by what is told, answers the time, and orders live by it', async () => {
    const order = await createOrder(given(), quickPair)
    const sinceMs = Date.now()
    const before = Date.parse(dataOf(await post('/clock', { advance_seconds: 0 })).now as string)
    const after = Date.parse(dataOf(await post('/clock', { advance_seconds: 960 })).now as string)
    expect(after - before).toBeGreaterThanOrEqual(960_000)
    expect(after - before).toBeLessThanOrEqual(960_000 + Date.now() - sinceMs)
    await given().waitForStatus(order.order_id, 'EXPIRED')
    expect((await createOrder(given(), quickPair)).created_at > order.expires_at).toBe(true)
    for (const advance_seconds of [-1, 1.5, '60', 99_999_999_999]) {
      expectRefused(await post('/clock', { advance_seconds }), 400, 'INVALID_PARAMETER', 'advance_seconds')
    }
    expectRefused(await post('/clock', {}), 400, 'INVALID_PARAMETER', 'advance_seconds')
  })
})

describe('addresses and balances', () => {
  test.each(['BTC', 'ETH', 'BNB', 'ERC20', 'BEP20'])(
    '%s: a fresh address each time, empty, and good as a destination',
    async (network) => {
      const addresses = [await addressOn(network), await addressOn(network)]
      expect(new Set(addresses).size).toBe(2)
      const [address = ''] = addresses
      expect(await balanceOf(network, address)).toBe(0)
      const native = { BTC: 'BTC', ETH: 'ETH', BNB: 'BNB' }[network]
      const to = { to: native ?? 'USDT', to_network: network }
      const from =
        network === 'BTC' ? { from: 'ETH', from_network: 'ETH' } : { from: 'BTC', from_network: 'BTC' }
      const order = await createOrder(given(), { ...from, ...to }, { destination: address })
      expect(order.destination).toBe(address)
    },
  )

  test('a balance is told for the native currency and for tokens', async () => {
    const order = await createOrder(given(), quickPair)
    dataOf(await post(`/orders/${order.order_id}/pay`, { amount: 12.5 }))
    dataOf(await post('/mine', { network: 'ERC20', blocks: 1 }))
    expect(await balanceOf('ERC20', order.deposit_address, 'USDT')).toBe(12.5)
    expect(await balanceOf('ERC20', order.deposit_address, 'USDC')).toBe(0)
    expect(await balanceOf('ERC20', order.deposit_address, 'ETH')).toBe(0)
    expect(await balanceOf('ETH', order.deposit_address)).toBe(0)
  })

  test('refuse networks, currencies and addresses that are none', async () => {
    expectRefused(await get('/address/DOGE'), 400, 'INVALID_PARAMETER', 'network')
    const address = await addressOn('ETH')
    expectRefused(await get(`/balance/DOGE/${address}`), 400, 'INVALID_PARAMETER', 'network')
    expectRefused(await get(`/balance/ERC20/${address}?currency=BTC`), 400, 'INVALID_PARAMETER', 'currency')
    expectRefused(await get(`/balance/ERC20/${address}?currency=DOGE`), 400, 'INVALID_PARAMETER', 'currency')
    expectRefused(await get('/balance/ETH/nowhere'), 400, 'INVALID_PARAMETER', 'address')
    expectRefused(await get('/balance/BTC/nowhere'), 400, 'INVALID_PARAMETER', 'address')
  })
})

test('the mailbox has a mail for every order, the newest first', async () => {
  const orders = [await createOrder(given(), quickPair), await createOrder(given(), quickPair)]
  await given().eventually('both mails have come', async () => {
    const mails = dataOf(await get('/mail')).mails as { subject: string; sent_at: string }[]
    const created = orders.map(({ order_id }) =>
      mails.findIndex(({ subject }) => subject === `Order ${order_id}: waiting for your deposit`),
    )
    expect(created).not.toContain(-1)
    const times = mails.map(({ sent_at }) => sent_at)
    expect(times).toEqual(times.toSorted().toReversed())
  })
})

test('every route of the contract is in the served document', () => {
  const paths = Object.keys(wire.document.paths as object).filter((path) => path.startsWith('/sandbox'))
  expect(paths.sort()).toEqual(
    [
      '/sandbox/address/{network}',
      '/sandbox/balance/{network}/{address}',
      '/sandbox/clock',
      '/sandbox/mail',
      '/sandbox/mine',
      '/sandbox/orders/{order_id}/pay',
      '/sandbox/prices',
      '/sandbox/reorg',
      '/sandbox/replace',
    ].sort(),
  )
})
