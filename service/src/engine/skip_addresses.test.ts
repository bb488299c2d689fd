import { Command } from 'commander'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { CommandRefused } from '../command_refused.ts'
import { registerAddressesCommands } from '../commands/addresses.ts'
import { insertAddresses, takeChangeAddress } from '../db/addresses.ts'
import { houseChain, operator, readAuditBackwards } from '../db/audit_log.ts'
import { connectionName } from '../db/connected_roles.ts'
import { listUnclaimed } from '../db/house_deposits.ts'
import { takeLease } from '../db/leases.ts'
import { assert } from '../domain/assert.ts'
import type { AssetId } from '../domain/catalog/assets.ts'
import { HOUR_MS } from '../domain/time.ts'
import type { Signer } from '../signer/signer.ts'
import { fillPools } from './pool.ts'
import { type SkipPlace, skipAddresses } from './skip_addresses.ts'
import { type BooksStage, openBooksStage, placeOrder } from './testing/books_stage.ts'
import { watchOnce } from './testing/watch_once.ts'

/**
 * What: what a restored database may have given away is given to no order again, and is watched.
 * How: a real PostgreSQL whose pools were filled as ever, addresses named after their keys, orders that take theirs as ever.
 */
let stage: BooksStage
let keystore: string
/** How often it derives before it fails; null: it does not. */
let derivesLeft: number | null

beforeAll(async () => {
  stage = await openBooksStage('skip')
})
beforeEach(async () => {
  await stage.reset()
  keystore = 'ours'
  derivesLeft = null
  for (let pass = 0; pass < 3; pass += 1) await fillPools(engine())
})
afterAll(() => stage?.stop())

const POOL_SIZE = 40

const signer: Signer = {
  addresses: async (family, purpose, from, count) => {
    if (derivesLeft === 0) throw new Error('it was killed')
    if (derivesLeft !== null) derivesLeft -= 1
    return Array.from({ length: count }, (_, at) => `${keystore}-${family}-${purpose}-${from + at}`)
  },
  room: () => Promise.reject(new Error('nothing is signed here')),
  lastSigned: () => Promise.reject(new Error('nothing is signed here')),
  lastOutflow: () => Promise.reject(new Error('nothing is signed here')),
  sign: () => Promise.reject(new Error('nothing is signed here')),
}

function engine() {
  const policy = { ...stage.world.policy, poolSize: POOL_SIZE }
  return { ...stage.world, policy, seal: () => 'seal', signer }
}

function place(): SkipPlace {
  const families = [...new Set([...stage.chains.values()].map(({ family }) => family))]
  return { db: stage.db, clock: stage.world.clock, signer, families, by: operator }
}

type Row = { readonly family: string; readonly key_index: number; readonly assigned: boolean }

function deposits(): Promise<Row[]> {
  return stage.db.query<Row>(
    `SELECT family, key_index, assigned_at_ms IS NOT NULL AS assigned FROM addresses
     WHERE purpose = 'deposit' ORDER BY family, key_index`,
  )
}

async function lastOf(family: string): Promise<number> {
  const [row] = await stage.db.query<{ last: number }>(
    `SELECT max(key_index) AS last FROM addresses WHERE family = $1 AND purpose = 'deposit'`,
    [family],
  )
  return row?.last ?? -1
}

/** The index of the key of a new order's deposit address. */
async function keyOfNewOrder(from: AssetId): Promise<number> {
  const { terms } = await placeOrder(stage, from, 'USDC:SOL', { asks: 1_000n, promises: 1_000n })
  const rows = await stage.db.query<{ key_index: number }>(
    `SELECT key_index FROM addresses WHERE order_id = $1`,
    [terms.id],
  )
  assert(rows[0] !== undefined && rows.length === 1, 'it has one address')
  return rows[0].key_index
}

test('an order gets no address that was free, nor one of as many as were asked for behind them', async () => {
  const outcome = await skipAddresses(place(), 1_234)
  assert(outcome.ok, 'nothing speaks against it')
  expect(outcome.value).toContainEqual({
    ...{ family: 'evm', purpose: 'deposit', assigned: POOL_SIZE, derived: 1_234, nextIndex: 1_274 },
  })
  // Tags begin at 1.
  expect(outcome.value).toContainEqual({
    ...{ family: 'xrp', purpose: 'deposit', assigned: POOL_SIZE, derived: 1_234, nextIndex: 1_275 },
  })
  expect((await deposits()).filter(({ assigned }) => !assigned)).toEqual([])
  await fillPools(engine())
  for (const from of ['BTC:BTC', 'ETH:ETH', 'TRX:TRX', 'SOL:SOL'] as const) {
    expect(await keyOfNewOrder(from), from).toBeGreaterThanOrEqual(1_274)
  }
  for (const from of ['XRP:XRP', 'XLM:XLM', 'EOS:EOS'] as const) {
    expect(await keyOfNewOrder(from), from).toBeGreaterThanOrEqual(1_275)
  }
})

test('on a database that has no addresses yet it begins with the first key, and with the first tag', async () => {
  await stage.db.query('DELETE FROM addresses')
  const outcome = await skipAddresses(place(), 3)
  assert(outcome.ok, 'any keystore is right')
  const of = async (family: string) => (await deposits()).filter((row) => row.family === family)
  expect((await of('evm')).map(({ key_index }) => key_index)).toEqual([0, 1, 2])
  expect((await of('xrp')).map(({ key_index }) => key_index)).toEqual([1, 2, 3])
})

test('what is paid to a skipped address behind the pool is noted as unclaimed', async () => {
  await skipAddresses(place(), 100)
  const lease = await takeLease(stage.db, 'watch:BTC', 'me', stage.world.clock.wallMs(), HOUR_MS)
  assert(lease !== null, 'nobody else looks')
  const paid = `ours-bitcoin-deposit-${POOL_SIZE + 99}`
  const bitcoin = stage.chain('BTC')
  const chain = Object.assign(bitcoin, {
    assets: [],
    readMempool: async () => [],
    readBlock: async (height: number, findOurs: (asked: readonly string[]) => Promise<Set<string>>) => {
      const ours = await findOurs([paid, 'a stranger’s'])
      const transfers = [...ours].map((to) => {
        return { id: `lost:${height}`, txHash: 'lost', to, asset: 'BTC:BTC', units: 5_000n }
      })
      const parentHash = (await bitcoin.blockHash(height - 1)) ?? ''
      const hash = (await bitcoin.blockHash(height)) ?? ''
      return { height, hash, parentHash, timeMs: stage.world.clock.wallMs(), transfers }
    },
  })
  chain.setHead(101)
  await watchOnce(stage.world, chain as never, lease)
  expect(await listUnclaimed(stage.db, 100)).toMatchObject([
    { kind: 'stray', asset: 'BTC:BTC', units: 5_000n },
  ])
  const rows = await stage.db.query('SELECT address FROM house_deposits')
  expect(rows).toEqual([{ address: paid }])
})

test('killed in the middle and called again it skips more than was asked for, and never less', async () => {
  // What it is compared with takes one question for each key that is stored outermost.
  const compared = 2 * place().families.length
  derivesLeft = compared + 3
  await expect(skipAddresses(place(), 2_000)).rejects.toThrow('it was killed')
  derivesLeft = null
  const [noted] = await readAuditBackwards(stage.db, houseChain('addresses'), 1_000, 1)
  expect(noted).toMatchObject({ act: 'addresses_skipped', actor: 'operator', subject: 'addresses' })
  expect(JSON.parse(noted?.detail ?? '')).toEqual({ count: '2000', families: place().families.join(',') })
  const before = await deposits()
  expect(before.length).toBeGreaterThan(place().families.length * POOL_SIZE)
  const again = await skipAddresses(place(), 2_000)
  assert(again.ok, 'it goes on')
  const after = await deposits()
  expect(after.filter(({ assigned }) => !assigned)).toEqual([])
  for (const family of place().families) {
    const keys = after.filter((row) => row.family === family).map(({ key_index }) => key_index)
    const first = keys[0] ?? 0
    expect(keys, family).toEqual(keys.map((_, at) => first + at))
    expect(keys.length, family).toBeGreaterThanOrEqual(POOL_SIZE + 2_000)
  }
})

test('change addresses that are free stay free, and as many further ones are there to be watched', async () => {
  const outcome = await skipAddresses(place(), 700)
  assert(outcome.ok, 'nothing speaks against it')
  expect(outcome.value.filter(({ purpose }) => purpose === 'change')).toEqual([
    { family: 'bitcoin', purpose: 'change', assigned: 0, derived: 700, nextIndex: POOL_SIZE + 700 },
  ])
  expect(await takeChangeAddress(stage.db, 'bitcoin', 'BTC', 1)).toMatchObject({ key: { index: 0 } })
  const [change] = await stage.db.query(
    `SELECT count(*)::int AS all, count(*) FILTER (WHERE assigned_at_ms IS NULL)::int AS free
     FROM addresses WHERE purpose = 'change'`,
  )
  expect(change).toEqual({ all: POOL_SIZE + 700, free: POOL_SIZE - 1 })
  const [reserves] = await stage.db.query(
    `SELECT count(*)::int AS count FROM addresses WHERE purpose = 'reserve' AND assigned_at_ms IS NULL`,
  )
  expect(reserves).toEqual({ count: 10 })
})

test('what another process stored as free meanwhile is assigned, and what it gave to an order stays that order’s', async () => {
  await insertAddresses(stage.db, 'evm', 'deposit', 40, ['forty', 'forty-one'])
  await stage.db.query(
    `UPDATE addresses SET assigned_at_ms = 7, order_id = 'CB' WHERE family = 'evm' AND key_index = 41`,
  )
  await insertAddresses(stage.db, 'evm', 'deposit', 40, ['forty', 'forty-one', 'forty-two'], 9)
  // Filling the pool takes nothing back.
  await insertAddresses(stage.db, 'evm', 'deposit', 40, ['forty', 'forty-one', 'forty-two'])
  expect(
    await stage.db.query(
      `SELECT assigned_at_ms AS at, order_id FROM addresses WHERE family = 'evm' AND key_index >= 40 ORDER BY key_index`,
    ),
  ).toEqual([
    { at: 9, order_id: null },
    { at: 7, order_id: 'CB' },
    { at: 9, order_id: null },
  ])
})

/** As from the terminal: what was printed, or the refusal. */
async function run(from: SkipPlace, ...args: string[]) {
  const printed: string[] = []
  let closed = 0
  const close = async () => {
    closed += 1
  }
  const program = new Command().exitOverride()
  const open = async () => ({ ...from, close })
  registerAddressesCommands(program.command('addresses'), { open, print: (text) => printed.push(text) })
  let refused: string | null = null
  try {
    await program.parseAsync(['addresses', 'skip', ...args], { from: 'user' })
  } catch (error) {
    if (!(error instanceof CommandRefused)) throw error
    refused = error.message
  }
  return { printed: printed.join('\n'), refused, closed }
}

test('it prints what it did, and takes no count that is none', async () => {
  const { printed, refused, closed } = await run(place(), '10')
  expect({ refused, closed }).toEqual({ refused: null, closed: 1 })
  expect(printed).toMatch(/^FAMILY +PURPOSE +WERE FREE, NOW ASSIGNED +DERIVED +NEXT INDEX$/m)
  expect(printed).toMatch(/^bitcoin +deposit +40 +10 +50$/m)
  expect(printed).toMatch(/^bitcoin +change +- +10 +50$/m)
  expect(printed).toMatch(/^eos +deposit +40 +10 +51$/m)
  expect(JSON.parse((await run(place(), '10', '--json')).printed)).toContainEqual({
    ...{ family: 'evm', purpose: 'deposit', assigned: 0, derived: 10, nextIndex: 60 },
  })
  for (const count of ['0', '1.5', 'all', '1000001']) {
    expect(await run(place(), count)).toEqual({
      ...{ printed: '', refused: `${count} is not a count from 1 to 1000000`, closed: 0 },
    })
  }
})

async function expectRefusal(from: SkipPlace, message: RegExp): Promise<void> {
  const before = await deposits()
  const { printed, refused, closed } = await run(from, '10')
  expect(refused).toMatch(message)
  expect({ printed, closed }).toEqual({ printed: '', closed: 1 })
  expect(await deposits()).toEqual(before)
}

test('a keystore that is not the one of this database is refused, and nothing is changed', async () => {
  keystore = 'another'
  await expectRefusal(
    place(),
    /^Nothing was changed: the signer derives another-\w+-reserve-0 .* \(CAMBIST_KEYSTORE_FILE\)/,
  )
})

test('a family that has addresses and no chain in the configuration is not passed over', async () => {
  const families = place().families.filter((family) => family !== 'xrp' && family !== 'solana')
  await expectRefusal({ ...place(), families }, /^The database has addresses of xrp, solana, and no chain/)
  await stage.db.query(`DELETE FROM addresses WHERE family IN ('xrp', 'solana')`)
  expect((await run({ ...place(), families }, '10')).refused).toBeNull()
  expect(await lastOf('xrp')).toBe(-1)
})

test.each(['api', 'watcher', 'engine'])(
  'while a process with the role %s is connected it is refused',
  async (role) => {
    const called = (name: string) => stage.asOwner.query(`SET application_name = '${name}'`)
    await called(connectionName(['notifier', role]))
    await expectRefusal(place(), new RegExp(`^A process with the roles notifier,${role} is connected`))
    await called(connectionName(['notifier', 'signer']))
    expect((await run(place(), '10')).refused).toBeNull()
    await called('a person')
  },
)
