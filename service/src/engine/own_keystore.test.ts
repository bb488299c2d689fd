import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { eventually } from '../../test/harness/eventually.ts'
import type { Chain } from '../chains/chain.ts'
import { insertAddresses } from '../db/addresses.ts'
import type { ChainId } from '../domain/catalog/networks.ts'
import { accept } from '../domain/outcome.ts'
import { MINUTE_MS } from '../domain/time.ts'
import type { Signer } from '../signer/signer.ts'
import { socketSigner } from '../signer/socket/socket_client.ts'
import { serveSigner } from '../signer/socket/socket_server.ts'
import { guardSigner, KEYSTORE_REST_MS } from './own_keystore.ts'
import { workPayouts } from './payouts/work.ts'
import { fillPools } from './pool.ts'
import { readReadiness } from './readiness.ts'
import { startEngine } from './run.ts'
import {
  type BooksStage,
  confirmDeposit,
  fundReserve,
  lookAt,
  mineDeposit,
  openBooksStage,
  placeOrder,
  RESERVE,
  tell,
} from './testing/books_stage.ts'
import { payingChain } from './testing/paying_chain.ts'
import { unlimited } from './testing/unlimited.ts'
import type { SigningWorld } from './world.ts'

/**
 * What: an engine whose signer has another keystore than the one that the stored addresses are of makes nothing with it, believes
 * nothing of what it says, and says so to all processes; it goes on by itself when the right one is there.
 * How: a real PostgreSQL, the real engine, a chain on paper that can be paid on, signers that derive addresses by a name, in this
 * process and behind a real socket.
 */
let stage: BooksStage
let folder: string

beforeAll(async () => {
  stage = await openBooksStage('own-keystore')
  folder = mkdtempSync(join(tmpdir(), 'cambist-own-keystore-'))
})

beforeEach(() => stage.reset())

afterAll(async () => {
  await stage?.stop()
  rmSync(folder, { recursive: true, force: true })
})

const ETHER = 10n ** 18n

type NamedSigner = Signer & {
  readonly signed: string[]
  /** By the name of its function. */
  readonly asked: string[]
  keystore: string | null
}

/** Derives `<keystore><purpose>-<index>`; null: it is away. It knows of what was signed for nobody else's keystore. */
function signerWith(keystore: string | null): NamedSigner {
  const signed: string[] = []
  const asked: string[] = []
  const answer = <Answer>(question: string, value: (name: string) => Answer): Answer => {
    asked.push(question)
    if (it.keystore === null) throw new Error('the signer is away')
    return value(it.keystore)
  }
  const it: NamedSigner = {
    keystore,
    signed,
    asked,
    addresses: async (_, purpose, from, count) =>
      answer('addresses', (name) =>
        Array.from({ length: count }, (_each, at) => `${name}${purpose}-${from + at}`),
      ),
    room: (asset) => answer('room', () => unlimited(asset)),
    lastSigned: async () => answer('lastSigned', () => signed.length),
    lastOutflow: async () => answer('lastOutflow', () => signed.length),
    sign: async ({ payoutId, attempt }) =>
      answer('sign', () => {
        signed.push(payoutId)
        return accept({ txHash: `tx-${payoutId}-${attempt}`, bytes: 'ff' })
      }),
  }
  return it
}

/** The keystore of the addresses that `placeOrder` and RESERVE give. */
const OURS = ''

function worldWith(signer: Signer): SigningWorld {
  const sleep = (ms: number, signal?: AbortSignal) =>
    pause(Math.min(ms, 20), undefined, { signal }).catch(() => {})
  return {
    ...stage.world,
    clock: { ...stage.world.clock, sleep },
    chains: new Map<ChainId, Chain>([
      ['ETH', payingChain(stage)],
      ['BTC', stage.chain('BTC')],
    ]),
    policy: { ...stage.world.policy, poolSize: 8, restMs: 10 },
    seal: () => 'seal',
    signer,
  }
}

const guarded = (signer: Signer, holder = 'the engine') => guardSigner(worldWith(signer), holder)

let lives = 0

/** Runs the engine until `look` finds what it looks for. */
async function engineWith(signer: Signer, what: string, look: () => Promise<void>): Promise<void> {
  lives += 1
  const loops = startEngine(worldWith(signer), `engine ${lives}`)
  try {
    await eventually(what, look)
  } finally {
    await Promise.all(loops.map((loop) => loop.stop()))
  }
}

/** Its payout is planned. */
async function pricedOrder() {
  await insertAddresses(stage.db, 'evm', 'reserve', 0, [RESERVE])
  await fundReserve(stage, 'ETH:ETH', 1_000n * ETHER)
  const order = await placeOrder(stage, 'BTC:BTC', 'ETH:ETH', { asks: 1_000_000n, promises: ETHER })
  const key = await mineDeposit(stage, order, 1_000_000n, 100)
  await confirmDeposit(stage, order, key)
  await tell(stage, order.terms.id, 'priced:1', { kind: 'ExchangePriced', quote: null })
  await lookAt(stage, 'BTC', 100)
}

function newOrder() {
  return placeOrder(stage, 'ETH:ETH', 'BTC:BTC', { asks: ETHER, promises: 1_000_000n })
}

/** As a process sees it that has no engine, such as one with the interface alone. */
async function expectKeystore(is: { ok: boolean }): Promise<void> {
  const { ready, checks } = await readReadiness(stage.world)
  expect({ ready, keystore: checks.keystore }).toMatchObject({ ready: is.ok, keystore: is })
}

async function outflows() {
  return stage.db.query<{ state: string; trouble: string | null }>('SELECT state, trouble FROM outflows')
}

async function statuses() {
  return stage.db.query('SELECT status FROM orders')
}

const addresses = () => stage.db.query('SELECT family, address FROM addresses ORDER BY family, address')

test('with another keystore nothing is derived, drafted, signed or handed out, until the right one is there', async () => {
  await pricedOrder()
  const before = await addresses()
  const other = signerWith('other ')
  await engineWith(other, 'what is wrong is told, and the payout waits', async () => {
    await expectKeystore({ ok: false })
    expect((await outflows())[0]?.trouble).toContain('keystore')
  })
  expect(new Set(other.asked), 'it was compared, and no more').toEqual(new Set(['addresses']))
  expect(await addresses()).toEqual(before)
  expect(await stage.db.query('SELECT FROM attempts')).toEqual([])
  await expect(newOrder(), 'no address is given away').rejects.toThrow('was created')
  const errors = stage.logged.filter(({ level }) => level === 'error')
  expect(errors, 'it is told once').toHaveLength(1)
  expect(errors[0]?.message).toContain(
    'the signer derives other reserve-0 as evm reserve 0, which is reserve-0 in this database',
  )

  stage.advance(MINUTE_MS)
  for (const chain of ['BTC', 'ETH'] as const) await lookAt(stage, chain, 100)
  const ours = signerWith(OURS)
  await engineWith(ours, 'the payout is sent', async () => {
    await expectKeystore({ ok: true })
    expect(await outflows()).toMatchObject([{ state: 'broadcast' }])
  })
  expect(ours.signed).toHaveLength(1)
  await newOrder()
})

test('an engine heals when the signer behind it has the right keystore again, and says so', async () => {
  await pricedOrder()
  const signer = signerWith('other ')
  const { compare } = guarded(signer)
  const before = stage.logged.length
  await compare()
  await expectKeystore({ ok: false })
  signer.keystore = OURS
  await compare()
  await expectKeystore({ ok: true })
  expect(stage.logged.slice(before).map(({ level }) => level)).toEqual(['error', 'warn'])
})

test('a signer that comes back with another keystore is found out while nothing is asked of it', async () => {
  await pricedOrder()
  const signer = signerWith(OURS)
  await engineWith(signer, 'what is wrong is told', async () => {
    if (signer.signed.length > 0) signer.keystore = 'other '
    await expectKeystore({ ok: false })
  })
})

test('a signer that is away is no other keystore, and is compared when it answers', async () => {
  await pricedOrder()
  const signer = signerWith(null)
  await engineWith(signer, 'the payout waits, then the other keystore is told', async () => {
    const [{ trouble } = { trouble: null }] = await outflows()
    if (signer.keystore === null) {
      expect(trouble).toContain('the signer is away')
      await expectKeystore({ ok: true })
    }
    signer.keystore = 'other '
    await expectKeystore({ ok: false })
  })
  signer.keystore = null
  await guarded(signer).compare()
  await expectKeystore({ ok: false })
})

test('what an engine has found stands until one that is right finds it noted no more, whoever else is right', async () => {
  await pricedOrder()
  const wrong = guarded(signerWith('other '), 'wrong')
  const right = guarded(signerWith(OURS), 'right')
  for (let look = 0; look < 5; look += 1) {
    await wrong.compare()
    await right.compare()
    await expectKeystore({ ok: false })
    stage.advance(KEYSTORE_REST_MS)
    for (const chain of ['BTC', 'ETH'] as const) await lookAt(stage, chain, 100)
  }
  expect(await right.signer.lastOutflow('CB0000000000000001'), 'who is right works on').toBe(0)
  stage.advance(3 * KEYSTORE_REST_MS)
  for (const chain of ['BTC', 'ETH'] as const) await lookAt(stage, chain, 100)
  await guarded(signerWith(null), 'silent').compare()
  await expectKeystore({ ok: false })
  await right.compare()
  await expectKeystore({ ok: true })
})

test('what a signer that was exchanged behind its socket says is not believed, though nobody had looked since', async () => {
  await pricedOrder()
  const path = join(folder, 'signer.sock')
  const onError = () => {}
  const ours = signerWith(OURS)
  let server = await serveSigner({ path, signer: ours, onError })
  const socket = socketSigner({ path, timeoutMs: 60_000 })
  const { signer } = guarded(socket)
  expect(await signer.lastOutflow('CB0000000000000001')).toBe(0)
  ours.asked.length = 0
  for (let time = 0; time < 3; time += 1) await signer.lastOutflow('CB0000000000000001')
  expect(ours.asked, 'over the same line it is compared once').toEqual(Array(3).fill('lastOutflow'))

  await server.close()
  const other = signerWith('other ')
  server = await serveSigner({ path, signer: other, onError })
  for (const ask of [
    () => signer.lastOutflow('CB0000000000000001'),
    () => signer.lastSigned('CB0000000000000001:1'),
    () => signer.room('ETH:ETH'),
    () => signer.addresses('evm', 'deposit', 1, 1),
    () => signer.sign({} as never, {} as never),
  ]) {
    // The first may go down the old line, and is told that it was cut.
    await eventually('it is refused', () => expect(ask()).rejects.toThrow('another keystore'))
  }
  expect(new Set(other.asked)).toEqual(new Set(['addresses']))
  await expectKeystore({ ok: false })

  await server.close()
  server = await serveSigner({ path, signer: ours, onError })
  await eventually('it is asked again', () => signer.lastOutflow('CB0000000000000001'))
  await expectKeystore({ ok: true })
  socket.close()
  await server.close()
})

test('no payout is given up on the word of another keystore, however long it waits', async () => {
  await pricedOrder()
  const signer = signerWith('other ')
  const world = { ...worldWith(signer), signer: guarded(signer).signer }
  const chain = payingChain(stage)
  const { stallMs } = world.policy
  for (let waitedMs = 0; waitedMs <= 2 * stallMs; waitedMs += stallMs / 4) {
    await workPayouts(world, chain)
    stage.advance(stallMs / 4)
    for (const id of ['BTC', 'ETH'] as const) await lookAt(stage, id, 100)
  }
  expect(await statuses()).toEqual([{ status: 'EXCHANGE' }])
  expect(await outflows()).toMatchObject([{ state: 'planned', trouble: expect.stringContaining('keystore') }])
  // With its own word it is: this one has a nonce, and nothing signed.
  signer.keystore = OURS
  signer.sign = () => Promise.reject(new Error('it does not sign'))
  signer.room = async () => ({ onePayout: 0n, together: null })
  const believing = { ...world, signer: guarded(signer, 'anew').signer }
  for (let waitedMs = 0; waitedMs <= 2 * stallMs; waitedMs += stallMs / 4) {
    await workPayouts(believing, chain)
    stage.advance(stallMs / 4)
    for (const id of ['BTC', 'ETH'] as const) await lookAt(stage, id, 100)
  }
  expect(await statuses()).toEqual([{ status: 'EMERGENCY' }])
})

test('an empty database takes any keystore, and the first one that fills it', async () => {
  const first = signerWith('any ')
  await engineWith(first, 'the pools are full', async () => {
    const [{ count } = { count: 0 }] = await stage.db.query<{ count: number }>(
      `SELECT count(*)::int AS count FROM addresses WHERE family = 'bitcoin' AND address LIKE 'any change-%'`,
    )
    expect(count).toBe(8)
  })
  await expectKeystore({ ok: true })
  await guarded(signerWith('other ')).compare()
  await expectKeystore({ ok: false })
})

test('of two engines that fill an empty database with two keystores at once one does, alone', async () => {
  for (let round = 0; round < 5; round += 1) {
    await stage.empty('addresses')
    // Anew: a guard that has compared once does not expect its database to be emptied under it.
    const filling = ['one ', 'other '].map((keystore) => {
      const { signer } = guarded(signerWith(keystore), keystore)
      return { ...worldWith(signer), signer }
    })
    for (let pass = 0; pass < 2; pass += 1) {
      await Promise.allSettled(filling.map((world) => fillPools(world)))
    }
    const names = await stage.db.query(`SELECT DISTINCT split_part(address, ' ', 1) AS name FROM addresses`)
    expect(names).toHaveLength(1)
  }
})

test('a network that another engine has begun meanwhile is compared before an address of it is derived', async () => {
  await insertAddresses(stage.db, 'evm', 'reserve', 0, [RESERVE])
  const ours = signerWith(OURS)
  const onOtherNetwork = { ...ours }
  onOtherNetwork.addresses = async (family, purpose, from, count) => {
    const derived = await ours.addresses(family, purpose, from, count)
    return family === 'bitcoin' ? derived.map((address) => `regtest ${address}`) : derived
  }
  const { signer, compare } = guarded(onOtherNetwork)
  await compare()
  await insertAddresses(stage.db, 'bitcoin', 'reserve', 0, ['reserve-0'])
  await expect(signer.addresses('bitcoin', 'deposit', 0, 1)).rejects.toThrow(
    'the signer derives regtest reserve-0 as bitcoin reserve 0, which is reserve-0 in this database: it has another CAMBIST_BTC_NETWORK',
  )
  await expect(signer.lastOutflow('CB0000000000000001'), 'nothing is asked of it then').rejects.toThrow(
    'CAMBIST_BTC_NETWORK',
  )
})

test('an engine of other networks alone is compared with what is stored of those whose addresses follow from the keystore', async () => {
  await insertAddresses(stage.db, 'evm', 'reserve', 0, [RESERVE])
  await insertAddresses(stage.db, 'xrp', 'reserve', 0, ['of an account that this engine knows nothing of'])
  const onBitcoin = (keystore: string) => {
    const bare = worldWith(signerWith(keystore))
    const { signer } = guardSigner({ ...bare, chains: new Map([['BTC', stage.chain('BTC')]]) }, keystore)
    return signer
  }
  await expect(onBitcoin('other ').addresses('bitcoin', 'reserve', 0, 1)).rejects.toThrow(
    'the signer derives other reserve-0 as evm reserve 0, which is reserve-0 in this database: it has another keystore',
  )
  await expectKeystore({ ok: false })
  expect(await onBitcoin(OURS).addresses('bitcoin', 'reserve', 0, 1)).toEqual(['reserve-0'])
})
