import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Postgres, removePostgres } from '@cambist/devnet'
import { type Client, type CreateOrderRequest, createClient } from '@cambist/sdk'
import { pino } from 'pino'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createSecretBox } from '../../src/accounts/secret_box.ts'
import { systemClock } from '../../src/clock.ts'
import type { ChainSettings } from '../../src/config/chain_settings.ts'
import { sandboxKey } from '../../src/config/sandbox_secrets.ts'
import { EOS_MAIN, STELLAR_MAIN } from '../../src/config/variables.ts'
import { insertAddresses } from '../../src/db/addresses.ts'
import { advanceHead, noteLooked, startHead } from '../../src/db/chain_heads.ts'
import { openDatabase } from '../../src/db/database.ts'
import { takeLease } from '../../src/db/leases.ts'
import { noteOpened } from '../../src/db/opened_assets.ts'
import { writeReserves } from '../../src/db/reserves.ts'
import { assert } from '../../src/domain/assert.ts'
import { type AssetId, assets } from '../../src/domain/catalog/assets.ts'
import { chainFacts, chainIds } from '../../src/domain/catalog/networks.ts'
import { HOUR_MS } from '../../src/domain/time.ts'
import { defaultPolicy } from '../../src/engine/default_policy.ts'
import { defaultLimits } from '../../src/http/parts.ts'
import { startService } from '../../src/main.ts'
import { sandboxPrices } from '../../src/prices/index.ts'
import { openDemoAccount } from '../../src/sandbox/demo_account.ts'
import type { Service } from '../../src/wiring/roles.ts'
import { impatient } from '../harness/impatient.ts'
import { startMigratedPostgres } from '../harness/migrated_postgres.ts'

/**
 * What: where an order may pay to (spec 4.3, rules 2, 4 and 6), with addresses as people paste them: of every type, of
 * other networks and other nets, mistyped, or not addresses at all.
 * How: the interface of a process that is configured for the main networks, on a database that says all of them are well.
 * It has no nodes, for it asks none: what an address is, is a matter of its text.
 */
const silent = 'http://127.0.0.1:9'
const USDT_ERC20 = '0xdAC17F958D2ee523a2206206994597C13D831ec7'
const USDT_BEP20 = '0x55d398326f99059fF775485246999027B3197955'
const USDT_TRC20 = 'TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t'
const USDC_SOL = 'EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v'

const evmSettings = { rpcUrl: silent, maxFeePerGasWeiMax: 10n ** 12n, gasLimitMax: 1_000_000n }
const mainNetworks: ChainSettings = {
  BTC: { rpcUrl: silent, network: 'mainnet', milliSatPerVbMax: 500_000n, feeSatoshiMax: 1_000_000n },
  ETH: { ...evmSettings, evmChainId: 1, tokens: { 'USDT:ERC20': USDT_ERC20 } },
  BNB: { ...evmSettings, evmChainId: 56, tokens: { 'USDT:BEP20': USDT_BEP20 } },
  XRP: { rpcUrl: silent, networkId: 0, feeDropsMax: 1_000_000n },
  XLM: { rpcUrl: silent, passphrase: STELLAR_MAIN, feeStroopsMax: 10_000_000n },
  TRX: {
    rpcUrl: silent,
    solidUrl: null,
    genesisBlockId: '00000000000000001ebf88508a03865c71d452e25f4d51194196a1d22b6653dc',
    feeLimitSunMax: 100_000_000n,
    tokens: { 'USDT:TRC20': USDT_TRC20 },
  },
  EOS: { rpcUrl: silent, chainId: EOS_MAIN, account: 'mycambist123', publicKey: 'PUB_K1_' },
  SOL: {
    rpcUrl: silent,
    genesisHash: '5eykt4UsFv8P8NJdTREpY1vzqKqZKvdpKuc147dw2N9d',
    feeLamportsMax: 1_000_000n,
    tokens: { 'USDC:SOL': USDC_SOL },
  },
  nodeTimeoutMs: 1_000,
}

const dataDir = mkdtempSync(join(tmpdir(), 'cambist-destinations-'))
let postgres: Postgres | undefined
let service: Service | undefined
let client: Client

beforeAll(async () => {
  postgres = await startMigratedPostgres(join(dataDir, 'postgres'))
  const account = await prepare(postgres.url)
  const { usd } = sandboxPrices()
  service = await startService({
    roles: {
      api: {
        accountKeys: [sandboxKey('account')],
        orderSeal: sandboxKey('order-seal'),
        orderToken: sandboxKey('order-token'),
        baseUrl: null,
      },
      watcher: false,
      engine: null,
      notifier: null,
      signer: null,
    },
    databaseUrl: postgres.url,
    databaseConnections: 4,
    chains: mainNetworks,
    prices: { usd, start: () => {}, stop: () => {} },
    // Nobody looks again.
    policy: { ...defaultPolicy, chainTroubleMs: HOUR_MS },
    http: { port: 0, host: '127.0.0.1', limits: { ...defaultLimits, ...unlimited } },
    clock: systemClock(),
    logger: pino({ level: 'silent' }),
  })
  const { api_key: apiKey, api_secret: apiSecret } = account
  client = createClient({ baseUrl: service.baseUrl, apiKey, apiSecret, ...impatient })
})

afterAll(async () => {
  await service?.stop()
  await postgres?.stop()
  removePostgres(join(dataDir, 'postgres'))
  rmSync(dataDir, { recursive: true, force: true })
})

const unlimited = { unitsPerMinute: 1_000_000, burstPerSecond: 100_000, createUnits: 1 }

/** What watchers and an engine would have written. */
async function prepare(url: string) {
  const db = openDatabase({ url, connectionsMax: 2, applicationName: 'prepare', onConnectionLost: () => {} })
  const { nowMs, wallMs } = systemClock()
  for (const chain of chainIds) {
    const { family } = chainFacts[chain]
    await startHead(db, chain, { height: 1, hash: 'first' }, nowMs())
    const lease = await takeLease(db, `watch:${chain}`, 'prepare', wallMs(), HOUR_MS)
    assert(lease !== null, 'nobody else watches')
    await advanceHead(db, lease, chain, { height: 2, hash: 'second' })
    await noteLooked(db, lease, chain, { nodeHeight: 2, nowMs: nowMs(), wallMs: wallMs() })
    const ready = Array.from({ length: 200 }, (_, index) => `${family} ${index}`)
    await insertAddresses(db, family, 'deposit', 1, ready)
  }
  await insertAddresses(db, 'bitcoin', 'change', 0, [ownChange])
  await insertAddresses(db, 'evm', 'reserve', 0, [ownReserve.evm])
  await insertAddresses(db, 'tron', 'reserve', 0, [ownReserve.tron])
  await insertAddresses(db, 'xrp', 'reserve', 1, [ownReserve.xrp])
  await insertAddresses(db, 'stellar', 'reserve', 1, [ownReserve.stellar])
  await insertAddresses(db, 'eos', 'reserve', 1, [ownReserve.eos])
  const reserves = assets.map(({ id, decimals }) => {
    const spendable = 10n ** BigInt(decimals) * 1_000_000n
    return { asset: id, spendable, payoutCost: 1n, isUnpayable: false, atMs: nowMs(), figure: 1 }
  })
  await noteOpened(
    db,
    assets.map(({ id }) => id),
    1,
  )
  await writeReserves(db, reserves)
  const box = createSecretBox([sandboxKey('account')])
  const account = await openDemoAccount(dataDir, { db, box, wallMs })
  await db.close()
  return account
}

type Wish = Partial<CreateOrderRequest>

/** An order for something that is paid out in this asset; what it is paid in hardly matters. */
function create(to: AssetId, wish: Wish) {
  const [currency = '', network = ''] = to.split(':')
  const source =
    currency === 'ETH' ? { from: 'BNB', from_network: 'BNB' } : { from: 'ETH', from_network: 'ETH' }
  const request = { ...source, to: currency, to_network: network, amount: '1.5', rate_type: 'float' } as const
  return client.createOrder({ destination: '', ...request, ...wish })
}

const satoshi = '1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa'
const segwit = 'bc1qar0srrr7xfkvy5l643lydnw9re59gtzzwf5mdq'
const taproot = 'bc1p5d7rjq7g6rdk2yhzks9smlaqtedr4dekq08ge8ztwac72sfr9rusxg3297'
const vitalik = '0xd8dA6BF26964aF9D7eEd9e03E53415D37aA96045'
const router = '0x7a250d5630B4cF539739dF2C5dAcb4c659F2488D'
/** What a signer would have made and the database keeps: the canonical spelling. */
const ownChange = 'bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4'
const ownReserve = {
  evm: '0x52908400098527886E0F7030069857D2E4169EE7',
  tron: 'TJRabPrwbZy45sbavfcjinPJC18kjpRTv8',
  xrp: 'rU6K7V3Po4snVhBBaU29sesqs2qTQJWDw1',
  stellar: 'GDVEU3DD4KOFECV66VIHWEZOYX4ZKR3WV27L464SIIPOU2IUI3JCZA57',
  eos: 'mycambist123',
}
/** One of the many on our account, on networks where a tag tells them apart. */
const ownTagged = {
  xrp: 'XVfC9CTCJh6GN2x8bnrw3LtdbqiVCUuF6EkdbXbLGETqJpk',
  stellar: 'MDVEU3DD4KOFECV66VIHWEZOYX4ZKR3WV27L464SIIPOU2IUI3JCYAAAAAAAAAAAA7CKG',
  eos: 'mycambist123/7',
}
const binanceXrp = 'rEb8TK3gBgk5auZkwc6sHnwrGVJH8DuaLh'
const stellar = 'GAAZI4TCR3TY5OJHCTJC2A4QSY6CJWJH5IAJTGKIN2ER7LBNVKOCCWN7'
const muxed = 'MA7QYNF7SOWQ3GLR2BGMZEHXAVIRZA4KVWLTJJFC7MGXUA74P7UJVAAAAAAAAAAAAAJLK'
const binanceTron = 'TKzxdSv2FZKQrEqkKVgp5DcwEXBEKMg2Ax'
const binanceSolana = '5tzFkiKscXHK5ZXCGbXZxdw7gTjjD1mBwuoFbhUvuAi9'

/** Asset, what it is, how it was pasted, and how the order spells it. */
const valid: readonly (readonly [AssetId, string, string, string])[] = [
  ['BTC:BTC', 'legacy', satoshi, satoshi],
  ['BTC:BTC', 'P2SH', '3J98t1WpEZ73CNmQviecrnyiWrnqRhWNLy', '3J98t1WpEZ73CNmQviecrnyiWrnqRhWNLy'],
  ['BTC:BTC', 'bech32', segwit, segwit],
  ['BTC:BTC', 'bech32, in capitals as QR codes have it', segwit.toUpperCase(), segwit],
  [
    'BTC:BTC',
    'bech32 of a script',
    'bc1qwqdg6squsna38e46795at95yu9atm8azzmyvckulcc7kytlcckxswvvzej',
    'bc1qwqdg6squsna38e46795at95yu9atm8azzmyvckulcc7kytlcckxswvvzej',
  ],
  ['BTC:BTC', 'bech32m', taproot, taproot],
  ['ETH:ETH', 'checksummed', vitalik, vitalik],
  ['ETH:ETH', 'lowercase', vitalik.toLowerCase(), vitalik],
  ['ETH:ETH', 'a contract, for wallets are contracts too', router, router],
  ['USDT:ERC20', 'checksummed', vitalik, vitalik],
  ['USDT:BEP20', 'checksummed', vitalik, vitalik],
  ['BNB:BNB', 'lowercase', router.toLowerCase(), router],
  ['TRX:TRX', 'base58', binanceTron, binanceTron],
  ['USDT:TRC20', 'base58', binanceTron, binanceTron],
  ['SOL:SOL', 'base58', binanceSolana, binanceSolana],
  ['USDC:SOL', 'the owner of a token account', binanceSolana, binanceSolana],
]

const invalid: readonly (readonly [AssetId, string, string])[] = [
  ['BTC:BTC', 'a legacy one with two letters exchanged', '1A1zP1eP5QGefi2DMPTfTL5SLmv7DviNfa'],
  ['BTC:BTC', 'bech32 with a wrong letter', segwit.replace('srrr7', 'srrs7')],
  ['BTC:BTC', 'bech32 in mixed case', segwit.replace('xfkvy', 'XFKVY')],
  ['BTC:BTC', 'a legacy one in small letters', satoshi.toLowerCase()],
  ['BTC:BTC', "the test network's legacy", 'mipcBbFg9gMiCh81Kj8tqqdgoZub1ZJRfn'],
  ['BTC:BTC', "the test network's P2SH", '2MzQwSSnBHWHqSAqtTVQ6v47XtaisrJa1Vc'],
  ['BTC:BTC', "the test network's bech32", 'tb1qw508d6qejxtdg4y5r3zarvary0c5xw7kxpjzsx'],
  ['BTC:BTC', "a local network's bech32", 'bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080'],
  ['BTC:BTC', "Litecoin's bech32", 'ltc1qw508d6qejxtdg4y5r3zarvary0c5xw7kgmn4n9'],
  ['BTC:BTC', 'Bitcoin Cash', 'bitcoincash:qpm2qsznhks23z7629mms6s4cwef74vcwvy22gdx6a'],
  ['BTC:BTC', 'a payment URI', `bitcoin:${satoshi}`],
  ['BTC:BTC', 'a private key', '5HueCGU8rMjxEXxiPuD5BDku4MkFqeZyd4dZ1jvhTVqvbTLvyTJ'],
  ['BTC:BTC', 'an Ethereum address', vitalik],
  ['BTC:BTC', 'with a space before it', ` ${segwit}`],
  ['BTC:BTC', 'with the sign of kelvins, which becomes a k', segwit.toUpperCase().replace('K', '\u212a')],
  ['BTC:BTC', 'no text that an address could be', 'zürich-✓\u0000'],
  ['ETH:ETH', 'a letter in the wrong case', vitalik.replace('dA6BF', 'da6BF')],
  ['ETH:ETH', 'all in capitals, which is no checksum', `0x${vitalik.slice(2).toUpperCase()}`],
  ['ETH:ETH', 'a digit missing', vitalik.slice(0, -1)],
  ['ETH:ETH', 'without 0x', vitalik.slice(2)],
  ['ETH:ETH', 'a name', 'vitalik.eth'],
  ['ETH:ETH', 'the address of nobody', `0x${'0'.repeat(40)}`],
  ['ETH:ETH', 'ICAP', 'XE7338O073KYGTWWZN0F2WZ0R8PX5ZPPZS'],
  ['ETH:ETH', 'a Bitcoin address', satoshi],
  ['ETH:ETH', 'with a line break behind it', `${vitalik}\n`],
  ['ETH:ETH', 'with a letter of another script that looks the same', vitalik.replace('a', '\u0430')],
  ['USDT:ERC20', "the token's own contract", USDT_ERC20],
  ['ETH:ETH', "a token's contract", USDT_ERC20.toLowerCase()],
  ['USDT:BEP20', "the token's own contract", USDT_BEP20],
  ['USDT:ERC20', 'a TRON address', binanceTron],
  ['BNB:BNB', 'an address of the Beacon Chain that was', 'bnb1grpf0955h0ykzq3ar5nmum7y6gdfl6lxfn46h2'],
  ['XRP:XRP', 'with two letters exchanged', 'rEb8TK3gBgk5auZkwc6sHnwrGVJH8DuLah'],
  ['XRP:XRP', 'the account of nobody', 'rrrrrrrrrrrrrrrrrrrrrhoLvTp'],
  ['XRP:XRP', 'a Bitcoin address', satoshi],
  ['XRP:XRP', 'a Stellar address', stellar],
  ['XRP:XRP', 'with a letter of another script that looks the same', binanceXrp.replace('a', '\u0430')],
  ['XLM:XLM', 'with a letter missing', stellar.slice(0, -1)],
  ['XLM:XLM', 'with a wrong letter', stellar.replace('5OJH', '5OJG')],
  ['XLM:XLM', 'a contract', 'CA3D5KRYM6CB7OWQ6TWYRR3Z4T7GNZLKERYNZGGA5SOAOPIFY6YQGAXE'],
  ['XLM:XLM', 'a federated name', 'alice*stellar.org'],
  ['XLM:XLM', 'with a space behind it', `${stellar} `],
  ['XLM:XLM', 'an XRP address', binanceXrp],
  ['TRX:TRX', 'with a wrong letter', binanceTron.replace('2Ax', '2Ay')],
  ['TRX:TRX', 'in small letters', binanceTron.toLowerCase()],
  ['TRX:TRX', 'with a space behind it', `${binanceTron} `],
  ['TRX:TRX', 'in hex', '4174472e7d35395a6b5add427eecb7f4b62ad2b071'],
  ['TRX:TRX', "a token's contract", USDT_TRC20],
  ['USDT:TRC20', "the token's own contract", USDT_TRC20],
  ['USDT:TRC20', 'an Ethereum address', vitalik],
  ['EOS:EOS', 'a capital', 'Binancecleos'],
  ['EOS:EOS', 'a digit that no name has', 'binancecleo6'],
  ['EOS:EOS', 'thirteen letters', 'binancecleos1'],
  ['EOS:EOS', 'a dot at its end', 'binance.'],
  ['EOS:EOS', 'with a letter that is none', 'binancecleös'],
  ['EOS:EOS', 'a public key', 'EOS6MRyAjQq8ud7hVNYcfnVPJqcVpscN5So8BhtHuGYqET5GDW5CV'],
  ['EOS:EOS', "the token's own contract", 'eosio.token'],
  ['SOL:SOL', 'with a letter that base58 has not', binanceSolana.replace('5tz', '0tz')],
  ['SOL:SOL', 'with letters missing', binanceSolana.slice(0, -2)],
  ['SOL:SOL', 'an account of a program', '5Q544fKrFoe6tsEbD7S8EmxGTJYAKtTVhAW5Q5pge4j1'],
  ['SOL:SOL', 'the system program', '11111111111111111111111111111111'],
  ['SOL:SOL', "a token's mint", USDC_SOL],
  ['USDC:SOL', "the token's own mint", USDC_SOL],
  ['USDC:SOL', 'an Ethereum address', vitalik],
  ['SOL:SOL', 'a TRON address', binanceTron],
  ['SOL:SOL', 'with a tab before it', `\t${binanceSolana}`],
]

describe('rule 2: the destination is valid on its network', () => {
  test.each(valid)('%s to %s is accepted', async (to, _, pasted, spelt) => {
    const order = await create(to, { destination: pasted })
    expect(order).toMatchObject({ destination: spelt, status: 'NEW' })
  })

  test.each(invalid)('%s to %s is refused', async (to, _, destination) => {
    // With a tag, so that none is missing where one is needed.
    const refused = create(to, { destination, destination_tag: '1' })
    await expect(refused).rejects.toMatchObject({
      code: 'INVALID_ADDRESS',
      status: 400,
      details: [{ field: 'destination' }],
    })
  })

  test.each<[AssetId, string, string]>([
    ['BTC:BTC', 'our change', ownChange],
    ['BTC:BTC', 'our change as in a QR code', ownChange.toUpperCase()],
    ['ETH:ETH', 'our reserve', ownReserve.evm],
    ['USDT:BEP20', 'our reserve without its checksum', ownReserve.evm.toLowerCase()],
    ['USDT:TRC20', 'our reserve', ownReserve.tron],
    ['XRP:XRP', 'our account', ownReserve.xrp],
    ['XRP:XRP', 'our account as an X-address', ownTagged.xrp],
    ['XLM:XLM', 'our account as a muxed address', ownTagged.stellar],
    ['EOS:EOS', 'our account with a memo', ownTagged.eos],
  ])('%s to %s is refused: nothing would leave', async (to, _, destination) => {
    const tag = destination === ownReserve.xrp ? { destination_tag: '1' } : {}
    await expect(create(to, { destination, ...tag })).rejects.toMatchObject({
      code: 'INVALID_ADDRESS',
      message: expect.stringContaining('of the exchange itself'),
      details: [{ field: 'destination' }],
    })
  })

  test('a refund to our reserve is refused', async () => {
    const refund_address = ownReserve.evm.toLowerCase()
    await expect(create('BTC:BTC', { destination: satoshi, refund_address })).rejects.toMatchObject({
      code: 'INVALID_ADDRESS',
      details: [{ field: 'refund_address' }],
    })
  })

  test.each([
    ['XRP', ownReserve.xrp],
    ['XRP', ownTagged.xrp],
    ['XLM', ownReserve.stellar],
    ['XLM', ownTagged.stellar],
    ['EOS', ownReserve.eos],
    ['EOS', ownTagged.eos],
  ])('a refund of %s to our account is refused, whoever is meant there: %s', async (from, refund_address) => {
    const source = { from, from_network: from, amount: '100' }
    const refused = create('BTC:BTC', { ...source, destination: satoshi, refund_address })
    await expect(refused).rejects.toMatchObject({
      code: 'INVALID_ADDRESS',
      message: expect.stringContaining('of the exchange itself'),
      details: [{ field: 'refund_address' }],
    })
  })

  test.each([
    ['of the network that pays', vitalik, null],
    ['of the network that is paid to', satoshi, 'INVALID_ADDRESS'],
    ['that was copied with a space', `${vitalik} `, 'INVALID_ADDRESS'],
  ])('a refund address %s', async (_, refund_address, code) => {
    const created = create('BTC:BTC', { destination: satoshi, refund_address })
    if (code === null) expect(await created).toMatchObject({ refund_address })
    else await expect(created).rejects.toMatchObject({ code, details: [{ field: 'refund_address' }] })
  })
})

describe('rule 4: networks fit their currencies', () => {
  test.each<[string, string, string, string]>([
    ['BTC', 'TRC20', satoshi, 'NETWORK_MISMATCH'],
    ['BTC', 'ERC20', vitalik, 'NETWORK_MISMATCH'],
    ['ETH', 'BEP20', vitalik, 'NETWORK_MISMATCH'],
    ['TRX', 'ERC20', binanceTron, 'NETWORK_MISMATCH'],
    ['XRP', 'XLM', binanceXrp, 'NETWORK_MISMATCH'],
    ['USDT', 'BTC', satoshi, 'NETWORK_MISMATCH'],
    ['USDC', 'TRC20', binanceTron, 'NETWORK_MISMATCH'],
  ])('%s does not travel on %s, whatever the address', async (to, to_network, destination, code) => {
    const refused = create('BNB:BNB', { to, to_network, destination })
    await expect(refused).rejects.toMatchObject({ code, status: 400 })
  })
})

describe('rule 6: a tag where many share an address, and nowhere else', () => {
  test.each<[AssetId, string]>([
    ['XRP:XRP', binanceXrp],
    ['XLM:XLM', stellar],
    ['EOS:EOS', 'binancecleos'],
    ['EOS:EOS', 'bitfinex.dep'],
  ])('%s needs one beside the account', async (to, destination) => {
    const wanted = { code: 'DESTINATION_TAG_REQUIRED', status: 400, details: [{ field: 'destination_tag' }] }
    await expect(create(to, { destination })).rejects.toMatchObject(wanted)
    const order = await create(to, { destination, destination_tag: '108618262' })
    expect(order).toMatchObject({ destination, destination_tag: '108618262' })
  })

  test.each<[AssetId, string, string, string, string]>([
    [
      'XRP:XRP',
      'X-address',
      'XV5sbjUmgPpvXv4ixFWZ5ptAYZ6PD28Sq49uo34VyjnmK5H',
      'rPEPPER7kfTD9w2To4CQk6UCfuHM9c6GDY',
      '12345',
    ],
    ['XLM:XLM', 'muxed address', muxed, muxed, '9223372036854775808'],
    ['EOS:EOS', 'account with a memo', 'krakenkraken/104233', 'krakenkraken', '104233'],
  ])('%s takes it out of its %s, and refuses another beside it', async (to, _, pasted, destination, tag) => {
    const order = await create(to, { destination: pasted })
    expect(order).toMatchObject({ destination, destination_tag: tag })
    const other = create(to, { destination: pasted, destination_tag: '1' })
    await expect(other).rejects.toMatchObject({
      code: 'INVALID_ADDRESS',
      details: [{ field: 'destination_tag' }],
    })
  })

  test.each<[AssetId, string, string]>([
    ['XRP:XRP', binanceXrp, 'my memo'],
    ['XRP:XRP', binanceXrp, '4294967296'],
    ['XRP:XRP', binanceXrp, '47\n'],
    ['XLM:XLM', stellar, '47\n11'],
    ['XLM:XLM', stellar, 'a text of more than 28 bytes'.repeat(2)],
    ['EOS:EOS', 'binancecleos', 'ä'.repeat(129)],
    ['EOS:EOS', 'binancecleos', 'my\tmemo'],
  ])('%s takes no tag that its network does not', async (to, destination, destination_tag) => {
    const refused = create(to, { destination, destination_tag })
    await expect(refused).rejects.toMatchObject({
      code: 'INVALID_ADDRESS',
      details: [{ field: 'destination_tag' }],
    })
  })

  test.each<[AssetId, string]>([
    ['BTC:BTC', segwit],
    ['USDT:TRC20', binanceTron],
    ['BNB:BNB', vitalik],
  ])('%s ignores one', async (to, destination) => {
    for (const destination_tag of ['108618262', 'any words at all'])
      expect(await create(to, { destination, destination_tag })).toMatchObject({ destination, status: 'NEW' })
  })
})
