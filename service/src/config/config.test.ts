import { chmodSync, existsSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { chainIds } from '../domain/catalog/networks.ts'
import { venueIds, venues } from '../prices/ccxt/venues.ts'
import { defaultPriceRules } from '../prices/index.ts'
import { readAccountsConfig, readAddressesConfig } from './admin_config.ts'
import { configurationPage } from './configuration_page.ts'
import { ConfigError } from './problems.ts'
import { readSandboxConfig } from './sandbox_config.ts'
import { sandboxKey } from './sandbox_secrets.ts'
import { readServeConfig } from './serve_config.ts'
import { dollarVenues } from './trading_settings.ts'
import { editDistance } from './unknown_variables.ts'
import { variableNames, variableOf, variables } from './variables.ts'

let folder = ''
let good: Record<string, string> = {}

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'cambist-config-'))
  const write = (name: string, text: string) => {
    writeFileSync(join(folder, name), text)
    return join(folder, name)
  }
  const hexKey = (seed: string) => sandboxKey('account').export().toString('hex').slice(2).padEnd(64, seed)
  good = {
    PATH: '/usr/bin',
    DATABASE_URL: 'postgres://cambist:hunter2@db/cambist',
    CAMBIST_BASE_URL: 'https://exchange.example.org/',
    CAMBIST_BTC_URL: 'http://user:password@node:8332',
    CAMBIST_ETH_URL: 'http://node:8545',
    CAMBIST_BNB_URL: 'http://node:8575',
    CAMBIST_XRP_URL: 'http://node:5005',
    CAMBIST_XLM_URL: 'http://node:8000',
    CAMBIST_TRX_URL: 'http://node:8090',
    CAMBIST_EOS_URL: 'http://node:8888',
    CAMBIST_EOS_ACCOUNT: 'mycambist123',
    CAMBIST_EOS_KEY: 'PUB_K1_6MRyAjQq8ud7hVNYcfnVPJqcVpscN5So8BhtHuGYqET5BoDq63',
    CAMBIST_SOL_URL: 'http://node:8899',
    CAMBIST_KEYSTORE_FILE: write('keystore.json', '{}'),
    CAMBIST_KEYSTORE_PASSPHRASE_FILE: write('passphrase', 'correct horse\nignored\n'),
    CAMBIST_ACCOUNT_KEY_FILE: write('account.key', `# ours\n${hexKey('1')}\n${hexKey('2')}\n`),
    CAMBIST_ORDER_SEAL_KEY_FILE: write('seal.key', `${Buffer.from(hexKey('3'), 'hex').toString('base64')}\n`),
    CAMBIST_ORDER_TOKEN_KEY_FILE: write('token.key', hexKey('4')),
    CAMBIST_SPEND_LIMIT_BTC_BTC: '0.5 / 2 / 10',
    CAMBIST_SPEND_LIMIT_ETH_ETH: '5/20/100',
    CAMBIST_SPEND_LIMIT_BNB_BNB: '5/20/100',
    CAMBIST_SPEND_LIMIT_XRP_XRP: '5000/20000/100000',
    CAMBIST_SPEND_LIMIT_XLM_XLM: '50000/200000/1000000',
    CAMBIST_SPEND_LIMIT_TRX_TRX: '5000/20000/100000',
    CAMBIST_SPEND_LIMIT_EOS_EOS: '5000/20000/100000',
    CAMBIST_SPEND_LIMIT_SOL_SOL: '50/200/1000',
    CAMBIST_SPEND_LIMIT_USDC_SOL: '10000/50000/200000',
    CAMBIST_SPEND_LIMIT_USDT_TRC20: '10000/50000/200000',
    CAMBIST_SPEND_LIMIT_USDT_ERC20: '10000/50000/200000',
    CAMBIST_SPEND_LIMIT_USDT_BEP20: '10000/50000/200000',
    CAMBIST_SPEND_LIMIT_USDC_ERC20: '10000/50000/200000',
    CAMBIST_SPEND_LIMIT_USDC_BEP20: '10000/50000/200000',
  }
})

afterAll(() => rmSync(folder, { recursive: true }))

/** What is wrong with the environment, as `VARIABLE: message` lines. */
function problemsOf(read: () => unknown): readonly string[] {
  try {
    read()
  } catch (error) {
    if (error instanceof ConfigError) return error.problems.map((each) => `${each.variable}: ${each.message}`)
    throw error
  }
  return []
}

const without = (...names: string[]) =>
  Object.fromEntries(Object.entries(good).filter(([name]) => !names.includes(name)))

test('an empty environment is a complete sandbox', () => {
  expect(readSandboxConfig({})).toEqual({
    kind: 'sandbox',
    port: 8080,
    host: '127.0.0.1',
    dataDir: '.cambist',
    databaseUrl: null,
    logLevel: 'warn',
    rateLimits: {
      unitsPerMinute: 100_000,
      burstPerSecond: 1_000,
      createUnits: 1,
      streamsMax: 10_000,
      streamsPerCaller: 10_000,
    },
  })
})

test('the sandbox listens on loopback only', () => {
  expect(problemsOf(() => readSandboxConfig({ HOST: '0.0.0.0' }))).toEqual([expect.stringMatching(/^HOST: /)])
  for (const HOST of ['127.example.org', '127.0.0.1.example.org', '1270.0.0.1', '::'])
    expect(
      problemsOf(() => readSandboxConfig({ HOST })),
      HOST,
    ).toHaveLength(1)
  expect(readSandboxConfig({ HOST: '127.0.0.2' }).host).toBe('127.0.0.2')
})

test('a complete environment becomes a frozen object with amounts in ledger units', () => {
  const config = readServeConfig(good)
  expect(config).toMatchObject({
    isMainnet: true,
    roles: ['api', 'watcher', 'engine', 'notifier', 'signer'],
    baseUrl: 'https://exchange.example.org',
    trading: {
      fees: { fixed: 100n, float: 50n },
      slippage: 200n,
      tolerance: 0n,
      largeDeposits: { BTC: '1' },
      stallMs: 1_800_000,
      chainTroubleMs: 60_000,
      paused: [],
    },
    prices: { quorum: 3, ageMsMax: 45_000, jumpPercentMax: 10 },
    chains: {
      BTC: { network: 'mainnet', milliSatPerVbMax: 300_000n, feeSatoshiMax: 500_000n },
      ETH: {
        evmChainId: 1,
        maxFeePerGasWeiMax: 300_000_000_000n,
        gasLimitMax: 600_000n,
        tokens: { 'USDT:ERC20': '0xdAC17F958D2ee523a2206206994597C13D831ec7' },
      },
    },
    signer: { databaseUrl: good.DATABASE_URL },
    signerSocket: null,
  })
  expect(config.keys.account).toHaveLength(2)
  expect(config.signer?.passphrase.export().toString()).toBe('correct horse')
  expect(config.signer?.spendLimits).toContainEqual({
    asset: 'BTC:BTC',
    perPayoutUnits: 50_000_000n,
    perHourUnits: 200_000_000n,
    perDayUnits: 1_000_000_000n,
  })
  expect(() => Object.assign(config.prices, { quorum: 1 })).toThrow(TypeError)
  expect(() => Object.assign(config.signer?.spendLimits[0] ?? {}, { perDayUnits: 1n })).toThrow(TypeError)
})

test.each([
  ['CAMBIST_FEE_FIXED_BPS', 5_000],
  ['CAMBIST_FEE_FLOAT_BPS', 5_000],
  ['CAMBIST_SLIPPAGE_BPS', 5_000],
  ['CAMBIST_DEPOSIT_TOLERANCE_BPS', 500],
])('%s is at most %i basis points', (name, most) => {
  const problems = (value: number) => problemsOf(() => readServeConfig({ ...good, [name]: String(value) }))
  expect(problems(most)).toEqual([])
  expect(problems(most + 1)).toEqual([expect.stringContaining(`${name}: `)])
})

test('every limit and list of addresses is read from its own variable', () => {
  const config = readServeConfig({
    ...good,
    CAMBIST_RATE_LIMIT_UNITS_PER_MINUTE: '101',
    CAMBIST_RATE_LIMIT_BURST_PER_SECOND: '102',
    CAMBIST_RATE_LIMIT_CREATE_UNITS: '100',
    CAMBIST_STREAMS_MAX: '104',
    CAMBIST_STREAMS_PER_CALLER: '105',
    CAMBIST_MAIL_LIMIT_PER_EMAIL: '106',
    CAMBIST_MAIL_LIMIT_PER_ADDRESS: '107',
    CAMBIST_TRUSTED_PROXIES: '10.0.0.1',
    CAMBIST_METRICS_ALLOW: '10.0.0.2',
    SIGNER_DATABASE_URL: 'postgres://signer@db/signer',
  })
  expect(config).toMatchObject({
    rateLimits: {
      unitsPerMinute: 101,
      burstPerSecond: 102,
      createUnits: 100,
      streamsMax: 104,
      streamsPerCaller: 105,
    },
    mailLimits: { mailsPerEmail: 106, mailsPerAddress: 107 },
    trustedProxies: ['10.0.0.1'],
    metricsAllow: ['10.0.0.2'],
    databaseUrl: good.DATABASE_URL,
    signer: { databaseUrl: 'postgres://signer@db/signer' },
  })
})

test.each([
  ['CAMBIST_RATE_LIMIT_CREATE_UNITS', { CAMBIST_RATE_LIMIT_UNITS_PER_MINUTE: '99' }, '100'],
  ['CAMBIST_RATE_LIMIT_BURST_PER_SECOND', {}, '0'],
  ['CAMBIST_RATE_LIMIT_UNITS_PER_MINUTE', {}, '0'],
  ['CAMBIST_MAIL_LIMIT_PER_EMAIL', {}, '0'],
  ['CAMBIST_TRUSTED_PROXIES', {}, '10.0.0.0/8/8'],
  ['CAMBIST_METRICS_ALLOW', {}, '10.0.0.0/'],
  ['CAMBIST_CONTRACT_USDT_TRC20', {}, 'TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6tX'],
  ['CAMBIST_CONTRACT_USDT_TRC20', {}, '0xdAC17F958D2ee523a2206206994597C13D831ec7'],
  ['CAMBIST_CONTRACT_USDT_ERC20', {}, '0xdAC17F958D2ee523a2206206994597C13D831ec70'],
])('%s beside %j is not %s', (name, beside, value) => {
  const problems = problemsOf(() => readServeConfig({ ...good, ...beside, [name]: value }))
  expect(problems).toContainEqual(expect.stringMatching(`^${name}: `))
})

test('who wants nothing moved to the reserve may say so', () => {
  const { trading } = readServeConfig({ ...good, CAMBIST_SWEEP_COST_MULTIPLE: '0' })
  expect(trading.sweepCostMultiple).toBe(0n)
})

test('a misspelt variable is refused with the name it was meant to be', () => {
  expect(problemsOf(() => readServeConfig({ ...good, CAMBIST_PRICE_QUORUN: '2' }))).toEqual([
    'CAMBIST_PRICE_QUORUN: is not known; did you mean CAMBIST_PRICE_QUORUM?',
  ])
  expect(problemsOf(() => readSandboxConfig({ CAMBIST_ZZZZZZZZ: '2' }))).toEqual([
    'CAMBIST_ZZZZZZZZ: is not known; remove it',
  ])
  expect(editDistance('kitten', 'sitting')).toBe(3)
})

test('the sandbox refuses the settings of production, and production those of the sandbox', () => {
  expect(problemsOf(() => readSandboxConfig({ CAMBIST_BTC_URL: 'http://node' }))).toEqual([
    expect.stringContaining('unset it'),
  ])
  expect(problemsOf(() => readServeConfig({ ...good, CAMBIST_DATA_DIR: '.cambist' }))).toEqual([
    expect.stringContaining('sandbox only'),
  ])
})

test('every problem is listed at once', () => {
  const problems = problemsOf(() =>
    readServeConfig({
      ...without('CAMBIST_ORDER_TOKEN_KEY_FILE'),
      PORT: '99999',
      CAMBIST_FEE_FIXED_BPS: '1.5',
      CAMBIST_LOG_LEVEL: 'loud',
      CAMBIST_BTC_LARGE_AMOUNT: '1e3',
      CAMBIST_ETH_URL: 'wss://node',
      CAMBIST_TRUSTED_PROXIES: '10.0.0.0/8, 10.0.0.0/33, proxy',
    }),
  )
  const named = problems.map((problem) => problem.split(':')[0])
  expect(named.toSorted()).toEqual([
    'CAMBIST_BTC_LARGE_AMOUNT',
    'CAMBIST_ETH_URL',
    'CAMBIST_FEE_FIXED_BPS',
    'CAMBIST_LOG_LEVEL',
    'CAMBIST_ORDER_TOKEN_KEY_FILE',
    'CAMBIST_TRUSTED_PROXIES',
    'CAMBIST_TRUSTED_PROXIES',
    'PORT',
  ])
})

test.each(['::ffff:10.0.0.0/104', '::ffff:a00:0/104', '::ffff:a00:1'])(
  '%s in a list of addresses is to be written as IPv4, as which callers are compared',
  (entry) => {
    expect(
      problemsOf(() => readServeConfig({ ...good, CAMBIST_METRICS_ALLOW: `10.0.0.0/8,${entry}` })),
    ).toEqual([`CAMBIST_METRICS_ALLOW: ${entry} is IPv4 in IPv6 clothes: write it as IPv4`])
  },
)

test('a list of addresses that names none is no list, which would let anybody in', () => {
  const lists = { CAMBIST_METRICS_ALLOW: ' , ', CAMBIST_TRUSTED_PROXIES: ',' }
  expect(problemsOf(() => readServeConfig({ ...good, ...lists }))).toEqual([
    expect.stringContaining('CAMBIST_TRUSTED_PROXIES: names no address'),
    expect.stringContaining('CAMBIST_METRICS_ALLOW: names no address'),
  ])
})

test('a message never repeats a URL, which may hold a password', () => {
  const [problem = ''] = problemsOf(() =>
    readServeConfig({ ...good, DATABASE_URL: 'mysql://u:hunter2@db/x' }),
  )
  expect(problem).toContain('DATABASE_URL: must be a URL')
  expect(problem).not.toContain('hunter2')
})

test.each(chainIds)(
  'a % in the password for the node of %s is a problem that says how to write it',
  (chain) => {
    const name = `CAMBIST_${chain}_URL`
    const [problem = '', ...others] = problemsOf(() =>
      readServeConfig({ ...good, [name]: 'http://user:hunter2%zz@node' }),
    )
    expect(others).toEqual([])
    expect(problem).toBe(
      `${name}: has a % in its user or password that stands for no character; write it as %25`,
    )
    expect(problemsOf(() => readServeConfig({ ...good, [name]: 'http://user:hunter2%25zz@node' }))).toEqual(
      [],
    )
  },
)

test.each([
  ['a sandbox key', 'CAMBIST_ORDER_SEAL_KEY_FILE', () => sandboxKey('order-seal').export().toString('hex')],
  [
    'a sandbox key below another',
    'CAMBIST_ACCOUNT_KEY_FILE',
    () => `${'0123456789abcdef'.repeat(4)}\n${sandboxKey('account').export().toString('hex')}`,
  ],
  ['a key that is all zeros', 'CAMBIST_ORDER_TOKEN_KEY_FILE', () => '00'.repeat(32)],
  ['a short key', 'CAMBIST_ACCOUNT_KEY_FILE', () => 'abcd'],
  ['an empty key file', 'CAMBIST_ACCOUNT_KEY_FILE', () => '\n'],
])('mainnet refuses %s', (_what, name, content) => {
  const path = join(folder, 'bad.key')
  writeFileSync(path, content())
  expect(problemsOf(() => readServeConfig({ ...good, [name]: path }))).toEqual([
    expect.stringMatching(`^${name}: .*openssl rand -hex 32`),
  ])
})

test('mainnet refuses a missing spend limit, a single price source, and plain http', () => {
  expect(problemsOf(() => readServeConfig(without('CAMBIST_SPEND_LIMIT_USDT_BEP20')))).toEqual([
    expect.stringMatching(/^CAMBIST_SPEND_LIMIT_USDT_BEP20: a signer on mainnet/),
  ])
  const single = { ...good, CAMBIST_PRICE_VENUES: 'kraken', CAMBIST_PRICE_QUORUM: '1' }
  expect(problemsOf(() => readServeConfig(single))).toEqual([
    expect.stringMatching(/^CAMBIST_PRICE_QUORUM: must be a whole number from 3/),
    expect.stringMatching(/^CAMBIST_PRICE_VENUES: names 1, fewer than the quorum of 3/),
  ])
  expect(problemsOf(() => readServeConfig({ ...good, CAMBIST_BASE_URL: 'http://example.org' }))).toEqual([
    expect.stringContaining('https://'),
  ])
})

test.each([
  'https://example.org/exchange',
  'https://example.org?shop=1',
  'https://example.org/#top',
  'https://user:hunter2@example.org',
])('links do not begin with %s', (url) => {
  const problems = problemsOf(() => readServeConfig({ ...good, CAMBIST_BASE_URL: url }))
  expect(problems).toEqual([expect.stringMatching(/^CAMBIST_BASE_URL: must be no more than scheme, host/)])
  expect(problems.join()).not.toContain('hunter2')
})

test('venues that could never give USDT a price are refused, and those that can are named', () => {
  expect(dollarVenues).toEqual(
    venueIds.filter((id) => (venues[id].quotes as readonly string[]).includes('USD')),
  )
  const of = (names: string, quorum: string) =>
    problemsOf(() => readServeConfig({ ...good, CAMBIST_PRICE_VENUES: names, CAMBIST_PRICE_QUORUM: quorum }))
  const all = String(variableOf('CAMBIST_PRICE_VENUES').default)
  expect([of(all, '3'), of(all, '4'), of('kraken,coinbase,bitstamp', '3')]).toEqual([[], [], []])
  expect(of('binance,bybit,kucoin,okx,kraken', '3')).toEqual([
    'CAMBIST_PRICE_VENUES: names 1 with dollar markets, fewer than the quorum of 3: USDT would have no price, nor what is priced in it; name more of bitfinex, bitstamp, coinbase, kraken',
  ])
  expect(of(all, '5')).toEqual([
    'CAMBIST_PRICE_QUORUM: is more than the venues with dollar markets (bitfinex, bitstamp, coinbase, kraken): USDT would have no price, nor what is priced in it; set at most 4',
  ])
  expect(of('kraken,kraken,kraken', '3'), 'one venue is one, however often it is named').toEqual([
    expect.stringMatching('^CAMBIST_PRICE_VENUES: names 1, fewer'),
  ])
  expect(of('kraken,okx', '3')).toEqual([expect.stringMatching('^CAMBIST_PRICE_VENUES: names 2, fewer')])
})

test('what is paused is named by coin, by token, or on one network, and anything else is refused', () => {
  const of = (words: string) => readServeConfig({ ...good, CAMBIST_PAUSED: words }).trading.paused
  expect(of('')).toEqual([])
  expect(of('BTC, USDT:TRC20')).toEqual(['BTC:BTC', 'USDT:TRC20'])
  expect(of('ETH'), 'all that its chain carries').toEqual(['ETH:ETH', 'USDT:ERC20', 'USDC:ERC20'])
  expect(of('ETH:ETH')).toEqual(['ETH:ETH'])
  expect(of('USDT')).toEqual(['USDT:ERC20', 'USDT:BEP20', 'USDT:TRC20'])
  const refused = problemsOf(() => of('BTC,TRC20,eth'))
  const choices =
    'name BTC, ETH, USDT, USDC, BNB, XRP, XLM, TRX, EOS, SOL, or one on one network as USDT:TRC20'
  expect(refused).toEqual(['TRC20', 'eth'].map((word) => `CAMBIST_PAUSED: names ${word}; ${choices}`))
})

test('prices live long enough to be renewed before they are too old', () => {
  const of = (seconds: string) =>
    problemsOf(() => readServeConfig({ ...good, CAMBIST_PRICE_AGE_MAX_SECONDS: seconds }))
  const { refreshMs, readTimeoutMs } = defaultPriceRules
  expect(20_000).toBeGreaterThan(refreshMs + readTimeoutMs)
  expect(of('20')).toEqual([])
  for (const seconds of ['1', '10', '19'])
    expect(of(seconds)).toEqual([
      expect.stringMatching('^CAMBIST_PRICE_AGE_MAX_SECONDS: must be a whole number from 20 to 3600'),
    ])
})

test('a fall of any size is not within what a price may move at once', () => {
  const of = (percent: string) =>
    problemsOf(() => readServeConfig({ ...good, CAMBIST_PRICE_JUMP_MAX_PERCENT: percent }))
  expect([of('1'), of('50')]).toEqual([[], []])
  for (const percent of ['0', '51', '100'])
    expect(of(percent)).toEqual([
      expect.stringMatching('^CAMBIST_PRICE_JUMP_MAX_PERCENT: must be a whole number from 1 to 50'),
    ])
})

test.each(['CAMBIST_BTC_URL', 'CAMBIST_XRP_URL'])(
  'a # in %s, which would make it another host, is refused without repeating what stands there',
  (name) => {
    const of = (url: string) => problemsOf(() => readServeConfig({ ...good, [name]: url }))
    for (const url of [
      'http://user:12#secret@node:8332',
      'http://user:pa@12#secret@node:8332',
      'http://node:8332/#',
      'http://user:pa#secret@node:8332',
    ]) {
      const problems = of(url)
      expect(problems, url).toContainEqual(expect.stringMatching(`^${name}: has a #.*%23`))
      expect(problems.join()).not.toContain('secret')
    }
    expect(of('http://user:pa%23ss@node:8332')).toEqual([])
  },
)

test('a signer alone on mainnet needs its limits too, and nothing that only others use', () => {
  const alone = {
    ...without(
      ...variableNames.filter((name) => name.endsWith('_URL') && !/BASE|DATABASE/.test(name)),
      'CAMBIST_ORDER_TOKEN_KEY_FILE',
    ),
    CAMBIST_SIGNER_SOCKET: '/run/cambist/signer.sock',
  }
  const config = readServeConfig(alone, 'signer')
  expect(config).toMatchObject({
    isMainnet: true,
    keys: { account: [], orderToken: null },
    signer: { chains: ['BTC', 'ETH', 'BNB', 'XRP', 'XLM', 'TRX', 'EOS', 'SOL'] },
  })
  expect(config.keys.orderSeal).not.toBeNull()
  const {
    CAMBIST_EOS_ACCOUNT: _name,
    CAMBIST_SPEND_LIMIT_EOS_EOS: _most,
    ...nameless
  } = alone as Record<string, string>
  expect(
    readServeConfig(nameless, 'signer').signer?.chains,
    'without an account there is no EOS',
  ).not.toContain('EOS')
  const { CAMBIST_SPEND_LIMIT_ETH_ETH: _limit, ...unlimited } = alone as Record<string, string>
  expect(problemsOf(() => readServeConfig(unlimited, 'signer'))).toHaveLength(1)
})

test('any one chain is enough, and none is too little', () => {
  const nodes = chainIds.map((id) => `CAMBIST_${id}_URL`)
  const of = (...kept: string[]) =>
    problemsOf(() => readServeConfig(without(...nodes.filter((name) => !kept.includes(name)))))
  for (const node of nodes) expect(of(node), node).toEqual([])
  expect(of()).toEqual([expect.stringMatching('^CAMBIST_BTC_URL: no chain is configured')])
})

test('a test network needs no limits and no https, and has no contracts built in', () => {
  const config = readServeConfig({
    ...without(...variableNames.filter((name) => name.startsWith('CAMBIST_SPEND_LIMIT'))),
    CAMBIST_BTC_NETWORK: 'regtest',
    CAMBIST_ETH_CHAIN_ID: '31337',
    CAMBIST_BNB_CHAIN_ID: '31338',
    CAMBIST_XRP_NETWORK_ID: '1',
    CAMBIST_XLM_NETWORK: 'Test SDF Network ; September 2015',
    CAMBIST_TRX_GENESIS: '0000000000000000de1aa88295e1fcf982742f773e0419c5a9c134c994a9059e',
    CAMBIST_EOS_CHAIN_ID: '73e4385a2708e6d7048834fbc1079f2fabb17b3c125b146af438971e90716c4d',
    CAMBIST_SOL_GENESIS: 'EtWTRABZaYq6iMfeYKouRu166VU2xqa1wcaWoxPkrZBG',
    CAMBIST_CONTRACT_USDT_ERC20: `0x${'ab'.repeat(20)}`,
    CAMBIST_BASE_URL: 'http://localhost:8080',
  })
  expect(config.isMainnet).toBe(false)
  expect(config.chains.ETH.tokens).toEqual({ 'USDT:ERC20': `0x${'ab'.repeat(20)}` })
})

test('a main network is recognised however its id is written', () => {
  const written = { ...without('CAMBIST_BTC_URL', 'CAMBIST_BNB_URL'), CAMBIST_ETH_CHAIN_ID: '01' }
  expect(readServeConfig(written).isMainnet).toBe(true)
})

test('a network that nobody knows is one with real money', () => {
  const nodes = variableNames.filter((name) => /^CAMBIST_[A-Z]{3}_URL$/.test(name))
  const on = (chain: string, variable: string, name: string) =>
    problemsOf(() =>
      readServeConfig({
        ...without(
          ...nodes.filter((node) => node !== `CAMBIST_${chain}_URL`),
          ...variableNames.filter((limit) => limit.startsWith('CAMBIST_SPEND_LIMIT')),
        ),
        [variable]: name,
      }),
    )
  for (const [chain, variable, name] of [
    ['ETH', 'CAMBIST_ETH_CHAIN_ID', '8453'],
    ['BNB', 'CAMBIST_BNB_CHAIN_ID', '204'],
    ['XRP', 'CAMBIST_XRP_NETWORK_ID', '21337'],
    ['XLM', 'CAMBIST_XLM_NETWORK', 'Another Network ; 2026'],
    ['TRX', 'CAMBIST_TRX_GENESIS', 'ab'.repeat(32)],
    ['EOS', 'CAMBIST_EOS_CHAIN_ID', 'ab'.repeat(32)],
    ['SOL', 'CAMBIST_SOL_GENESIS', 'a'.repeat(44)],
  ] as const) {
    expect(on(chain, variable, name), chain).toContainEqual(
      expect.stringMatching(`^CAMBIST_SPEND_LIMIT_${chain}_${chain}: `),
    )
  }
})

test('a key that cannot be rotated has one line, and a second one is not passed over in silence', () => {
  const twoLines = join(folder, 'two.key')
  writeFileSync(twoLines, `${'0123456789abcdef'.repeat(4)}\n${'123456789abcdef0'.repeat(4)}\n`)
  for (const name of ['CAMBIST_ORDER_SEAL_KEY_FILE', 'CAMBIST_ORDER_TOKEN_KEY_FILE'])
    expect(problemsOf(() => readServeConfig({ ...good, [name]: twoLines }))).toEqual([
      expect.stringMatching(`^${name}: holds 2 keys; this one cannot be rotated`),
    ])
  expect(problemsOf(() => readServeConfig({ ...good, CAMBIST_ACCOUNT_KEY_FILE: twoLines }))).toEqual([])
})

test('secrets that everybody on the machine may read are named where money is real', () => {
  const secrets = [
    'CAMBIST_KEYSTORE_FILE',
    'CAMBIST_KEYSTORE_PASSPHRASE_FILE',
    'CAMBIST_ACCOUNT_KEY_FILE',
    'CAMBIST_ORDER_SEAL_KEY_FILE',
    'CAMBIST_ORDER_TOKEN_KEY_FILE',
  ]
  const allowing = (mode: number) => {
    for (const name of secrets) chmodSync(good[name] ?? '', mode)
    return readServeConfig(good).exposedFiles
  }
  expect(allowing(0o644)).toEqual(secrets)
  expect(allowing(0o640)).toEqual([])
  expect(allowing(0o600)).toEqual([])
  chmodSync(good.CAMBIST_ORDER_SEAL_KEY_FILE ?? '', 0o604)
  expect(readServeConfig(good).exposedFiles).toEqual(['CAMBIST_ORDER_SEAL_KEY_FILE'])
  const others = chainIds.filter((id) => id !== 'BTC').map((id) => `CAMBIST_${id}_URL`)
  const local = readServeConfig({ ...without(...others), CAMBIST_BTC_NETWORK: 'regtest' })
  expect(local.exposedFiles).toEqual([])
})

test('limits have to grow and be exact', () => {
  for (const limit of ['1/2', '2/1/3', '1/3/2', '0/1/2', '1/2/3/4', '0.000000001/1/2', 'much']) {
    expect(
      problemsOf(() => readServeConfig({ ...good, CAMBIST_SPEND_LIMIT_BTC_BTC: limit })),
      limit,
    ).toHaveLength(1)
  }
})

test('engine and signer in different processes need a socket', () => {
  expect(problemsOf(() => readServeConfig(good, 'api,engine'))).toEqual([
    expect.stringMatching(/^CAMBIST_SIGNER_SOCKET: is needed because the role signer/),
  ])
  expect(problemsOf(() => readServeConfig(good, 'api,banker,engine,signer'))).toEqual([
    expect.stringContaining('banker is not a role'),
  ])
})

test('the passphrase comes from a file or a descriptor, never both', () => {
  const descriptor = openSync(join(folder, 'passphrase'), 'r')
  const fromDescriptor = {
    ...without('CAMBIST_KEYSTORE_PASSPHRASE_FILE'),
    CAMBIST_KEYSTORE_PASSPHRASE_FD: String(descriptor),
  }
  expect(readServeConfig(fromDescriptor).signer?.passphrase.export().toString()).toBe('correct horse')
  const both = { ...good, CAMBIST_KEYSTORE_PASSPHRASE_FD: '0' }
  expect(problemsOf(() => readServeConfig(both))).toEqual([expect.stringContaining('not both')])
})

test.each([
  ['CAMBIST_ORDER_SEAL_KEY_FILE', 'c0ffee'.padEnd(64, '0')],
  ['CAMBIST_ACCOUNT_KEY_FILE', Buffer.alloc(32, 'canary').toString('base64')],
  ['CAMBIST_KEYSTORE_PASSPHRASE_FILE', 'correct horse'],
  ['CAMBIST_KEYSTORE_PASSPHRASE_FILE', 'q8Zr/T0sX1mW+4hK2vYc9uEoLd7pJb3fNgAi5xQtRz0='],
  ['CAMBIST_KEYSTORE_PASSPHRASE_FILE', '/T0sX1mW+4hK2vYc9uEoLd7pJb3fNgAi5xQtRz0q8Zr='],
  ['CAMBIST_KEYSTORE_PASSPHRASE_FD', 'correct horse'],
])('what stands in %s in place of its file is not told', (name, secret) => {
  const isDescriptor = name === 'CAMBIST_KEYSTORE_PASSPHRASE_FD'
  const env = isDescriptor ? without('CAMBIST_KEYSTORE_PASSPHRASE_FILE') : good
  const problems = problemsOf(() => readServeConfig({ ...env, [name]: secret }))
  expect(problems).toEqual([expect.stringMatching(`^${name}: `)])
  expect(problems.join()).not.toContain(secret)
})

test('a file with the passphrase that cannot be read is named', () => {
  for (const CAMBIST_KEYSTORE_PASSPHRASE_FILE of [join(folder, 'none'), './none']) {
    const problems = problemsOf(() => readServeConfig({ ...good, CAMBIST_KEYSTORE_PASSPHRASE_FILE }))
    expect(problems).toEqual([
      expect.stringContaining(`cannot read ${CAMBIST_KEYSTORE_PASSPHRASE_FILE} (ENOENT)`),
    ])
  }
})

test('a keystore of a sandbox is refused on mainnet', () => {
  writeFileSync(join(folder, 'sandbox.json'), '{}')
  expect(problemsOf(() => readServeConfig(good))).toEqual([expect.stringContaining('belongs to a sandbox')])
  expect(problemsOf(() => readAddressesConfig(good))).toEqual([
    expect.stringContaining('belongs to a sandbox'),
  ])
  rmSync(join(folder, 'sandbox.json'))
})

test('cambist addresses reads as much as derives them, and keeps networks apart as the service does', () => {
  expect(readAddressesConfig(good)).toMatchObject({ isMainnet: true, databaseUrl: good.DATABASE_URL })
  expect(problemsOf(() => readAddressesConfig({ ...good, CAMBIST_BTC_NETWORK: 'regtest' }))).toEqual([
    expect.stringMatching('^CAMBIST_BTC_NETWORK: is a test network'),
  ])
})

test('cambist keys needs the database and the account key only', () => {
  const { DATABASE_URL, CAMBIST_ACCOUNT_KEY_FILE } = good
  expect(readAccountsConfig({ DATABASE_URL, CAMBIST_ACCOUNT_KEY_FILE }).accountKeys).toHaveLength(2)
  expect(problemsOf(() => readAccountsConfig({}))).toHaveLength(2)
})

test('a printed configuration shows no key', () => {
  const printed = JSON.stringify(readServeConfig(good), (_key, value) =>
    typeof value === 'bigint' ? `${value}` : value,
  )
  expect(printed).not.toContain('correct horse')
  expect(printed).not.toContain(readFileSync(good.CAMBIST_ORDER_TOKEN_KEY_FILE ?? '', 'utf8').trim())
})

test('the reference page documents every variable', async () => {
  const page = configurationPage()
  for (const name of Object.keys(variables)) expect(page).toContain(`| \`${name}\` |`)
  // After a change on purpose: npx vitest run service/src/config --update
  const file = join(import.meta.dirname, '../../../docs/operating/configuration.md')
  expect(existsSync(file)).toBe(true)
  await expect(page).toMatchFileSnapshot(file)
})
