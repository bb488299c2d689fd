import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import {
  type Block,
  type BlockRef,
  type Chain,
  type FindOurs,
  NodeTrouble,
  type Transfer,
} from '../../src/chains/chain.ts'
import type { AssetId } from '../../src/domain/catalog/assets.ts'
import { assetOf } from '../../src/domain/catalog/assets.ts'
import { chainFacts, excludesOnChain } from '../../src/domain/catalog/networks.ts'
import type { Intent, Outflow } from '../../src/domain/payouts/intent.ts'
import { HOUR_MS } from '../../src/domain/time.ts'
import { defaultPolicy } from '../../src/engine/default_policy.ts'
import { expectGrowth } from '../../src/engine/watching/growth.ts'
import type { World as Engine } from '../../src/engine/world.ts'
import { httpFaults, openHttpLine } from '../harness/http_line.ts'
import type { ChainDriver, ChainSubject, ChainUnderTest, ChainWorld } from './chain_driver.ts'

/**
 * What: everything the engine relies on in a chain (chains/chain.ts), the same for every chain.
 * How: a real node that mines when told to, people outside who pay, and a proxy that fails in front of the node.
 */
export function describeChain(subject: ChainUnderTest) {
  describe(`${subject.name} as a chain`, () => {
    const world = startBefore(subject)
    describeAddresses(subject, world)
    describeIdentity(world)
    describeHead(world)
    describeLedger(subject, world)
    describeFakes(subject, world)
    describeBadLines(subject, world)
    describeFaults(subject, world)
  })
}

/** The part that a chain without a wire keeps as well: what happens on it, and how that is told. */
export function describeSimulatedChain(subject: ChainSubject<ChainWorld>) {
  describe(`${subject.name} as a chain`, () => {
    describeLedger(subject, startBefore(subject))
  })
}

function startBefore<Driver extends ChainWorld>(subject: ChainSubject<Driver>): () => Driver {
  let driver: Driver | undefined
  beforeAll(async () => {
    driver = await subject.start()
  })
  afterAll(() => driver?.stop())
  return () => {
    if (driver === undefined) throw new Error('the chain was started')
    return driver
  }
}

function describeLedger(subject: ChainSubject<ChainWorld>, world: World) {
  describeScan(subject, world)
  describeLookups(world)
  if (subject.isFinal !== true) {
    describeMempool(subject, world)
    describeReorgs(subject, world)
    if (subject.neverReplaces !== true) describeReplacement(subject, world)
  }
  describePayouts(subject, world)
  describeUnheard(subject, world)
  describeExclusion(subject, world)
  describeCosts(subject, world)
}

type World = () => ChainWorld
type WiredWorld = () => ChainDriver

function describeAddresses({ addresses }: ChainUnderTest, world: World) {
  test.each(addresses.valid)('an address is accepted: $what', ({ text, canonical }) => {
    expect(world().chain.parseAddress(text)).toEqual({ ok: true, value: canonical })
    expect(world().chain.parseAddress(canonical)).toEqual({ ok: true, value: canonical })
  })

  test.each([...addresses.invalid, ...addressesNowhereValid])('no address: $what', ({ text }) => {
    expect(world().chain.parseAddress(text).ok).toBe(false)
  })

  test('an address with anything around or inside it is no address', async () => {
    for (const { text } of addresses.valid) {
      const broken = [
        ` ${text}`,
        `${text} `,
        `${text}\n`,
        `\u200b${text}`,
        `${text}\u0000`,
        ...(addresses.areUnchecked === true ? [] : [text.slice(0, -1)]),
        text + text,
      ]
      for (const spoilt of broken)
        expect(world().chain.parseAddress(spoilt).ok, JSON.stringify(spoilt)).toBe(false)
    }
  })
}

const addressesNowhereValid = [
  { what: 'nothing', text: '' },
  { what: 'words', text: 'an address' },
  { what: 'letters that only look right', text: 'ｂｃ１ｑ０х０' },
  { what: 'an emoji', text: '🦊' },
  { what: 'a lone surrogate', text: '\ud800' },
  { what: 'a property of every object', text: '__proto__' },
  { what: 'ten thousand characters', text: '1'.repeat(10_000) },
]

function describeIdentity(world: WiredWorld) {
  test('the node that was configured is recognised', async () => {
    await expect(world().chain.checkIdentity()).resolves.toBeUndefined()
  })

  test('a node of another network is refused', async () => {
    await expect(world().stranger().checkIdentity()).rejects.toThrow()
  })
}

/** Of the others a node says itself that it is catching up, or the time of a block is an estimate. */
const TELLING_TIME: readonly Chain['family'][] = ['evm', 'tron', 'stellar', 'eos']

function describeHead(world: WiredWorld) {
  test('a head that is old is believed nowhere where heads tell their time', async () => {
    const { chain, mine } = world()
    await mine(1)
    const head = await chain.head()
    const wallMs = Date.now() + 24 * HOUR_MS
    const aDayLater = { clock: { wallMs: () => wallMs }, policy: defaultPolicy } as unknown as Engine
    const look = () => expectGrowth(aDayLater, chain.id)(head)
    if (TELLING_TIME.includes(chain.family)) expect(look).toThrow('has stood at block')
    else expect(look).not.toThrow()
  })
}

function describeScan({ assets, isFinal }: ChainSubject<ChainWorld>, world: World) {
  test('a scan finds every deposit exactly once, however they fall into blocks', async () => {
    const driver = world()
    const start = await driver.chain.head()
    const expected: Expected[] = []
    const pay = async (asset: AssetId, units: bigint) => {
      const to = await driver.ourAddress()
      expected.push({ to, asset, units, txHash: await driver.send(asset, to, units) })
      await driver.send(asset, await driver.outsideAddress(), units)
    }
    for (let round = 1n; round <= 4n; round += 1n) {
      for (const asset of assets) {
        await pay(asset, credit(asset) + round * grain(asset))
        await pay(asset, credit(asset) + 10n * round * grain(asset))
      }
      await driver.mine(Number(round))
    }
    if (isFinal !== true) await payTogether(driver, assets[0], expected)

    const ours = new Set(expected.map(({ to }) => to))
    const blocks = await scan(driver.chain, start, ours)
    for (const { height, hash } of blocks) expect(await driver.chain.blockHash(height)).toBe(hash)
    const found = blocks.flatMap(({ transfers }) => transfers)
    expect(sorted(found.map(withoutId))).toEqual(sorted(expected))
    expect(new Set(found.map(({ id }) => id)).size).toBe(expected.length)
    expect(await scan(driver.chain, start, ours), 'the same again').toEqual(blocks)
  })
}

async function payTogether(driver: ChainWorld, native: AssetId, expected: Expected[]): Promise<void> {
  const twice = await driver.ourAddress()
  const together = [
    { to: twice, units: credit(native) + 1n },
    { to: await driver.outsideAddress(), units: credit(native) },
    { to: twice, units: credit(native) + 1n },
    { to: await driver.ourAddress(), units: credit(native) + 2n },
  ]
  const txHash = await driver.sendTogether(together)
  await driver.mine(1)
  for (const payment of together.filter((_, index) => index !== 1))
    expected.push({ ...payment, asset: native, txHash })
}

function describeMempool({ assets }: ChainSubject<ChainWorld>, world: World) {
  test('a deposit is told while it waits, and by the same id once it is mined', async () => {
    const driver = world()
    for (const asset of assets) {
      const start = await driver.chain.head()
      const to = await driver.ourAddress()
      const txHash = await driver.send(asset, to, credit(asset))
      const waiting = await seenInMempool(driver, [to], txHash)
      expect(waiting).toMatchObject([{ to, asset, units: credit(asset), txHash }])
      const again = await seenInMempool(driver, [to], txHash, new Set([txHash]))
      expect(again, 'told again where that is asked for').toEqual(waiting)
      expect(await driver.chain.lookup(txHash)).toEqual({ where: 'mempool' })
      await driver.mine(1)
      const [block] = await scan(driver.chain, start, new Set([to]))
      expect(block?.transfers).toEqual(waiting)
      expect(await driver.chain.lookup(txHash)).toMatchObject({
        where: 'block',
        block: refOf(block),
        succeeded: true,
      })
      expect(await driver.chain.balance(asset, [to, await driver.ourAddress()])).toBe(credit(asset))
    }
  })
}

function describeLookups(world: World) {
  test('a block that is not there is null, at any height', async () => {
    const { chain } = world()
    const { height } = await chain.head()
    for (const missing of [height + 1, height + 1_000, 2 ** 31, 2 ** 32, 2 ** 40, Number.MAX_SAFE_INTEGER]) {
      expect(await chain.readBlock(missing, nobody)).toBeNull()
      expect(await chain.blockHash(missing)).toBeNull()
    }
  })

  test('a transaction that nobody made is absent', async () => {
    const { chain } = world()
    expect(await chain.lookup(unknownHash(world()))).toEqual({ where: 'absent' })
  })
}

function describeReorgs(
  { assets: [native], reorgDepthMax = Infinity }: ChainSubject<ChainWorld>,
  world: World,
) {
  test('after a reorg of any depth that matters the new branch is read and the fork can be found', async () => {
    const driver = world()
    const { chain } = driver
    await driver.mine(1)
    const deepest = Math.min(reorgDepthMax, chainFacts[chain.id].confirmationsLarge + 1)
    for (let depth = 1; depth <= deepest; depth += 1) {
      const fork = await chain.head()
      const to = await driver.ourAddress()
      const ours = new Set([to])
      const txHash = await driver.send(native, to, credit(native))
      await driver.mine(depth)
      const before = await scan(chain, fork, ours)
      expect(before[0]?.transfers, `depth ${depth}`).toMatchObject([{ to, txHash }])

      await driver.reorg(depth)
      const after = await scan(chain, fork, ours)
      expect(after.length).toBeGreaterThan(depth)
      const known = new Set([fork, ...before].map(({ hash }) => hash))
      expect(after.every(({ hash }) => !known.has(hash))).toBe(true)
      expect(after[0]?.parentHash).toBe(fork.hash)
      expect(after.flatMap(({ transfers }) => transfers)).toEqual([])
      expect(['mempool', 'absent']).toContain((await chain.lookup(txHash)).where)

      const waits = (await chain.lookup(txHash)).where === 'mempool'
      await driver.mine(1)
      const again = (await scan(chain, fork, ours)).flatMap(({ transfers }) => transfers)
      expect(again, 'found again by the same id if it is mined again').toEqual(
        waits ? before[0]?.transfers : [],
      )
      expect((await chain.lookup(txHash)).where).toBe(waits ? 'block' : 'absent')
    }
  })
}

function describeReplacement({ assets: [native] }: ChainSubject<ChainWorld>, world: World) {
  const changes = [
    { what: 'another amount', units: credit(native) * 2n },
    { what: 'another address of ours', to: 'ours' as const },
    { what: 'an address outside', to: 'outside' as const },
    { what: 'only a higher fee' },
  ]
  test.each(changes)(
    'a waiting deposit that is replaced is gone and the new one counts: $what',
    async (change) => {
      const driver = world()
      const start = await driver.chain.head()
      const first = await driver.ourAddress()
      const second = change.to === 'outside' ? await driver.outsideAddress() : await driver.ourAddress()
      const old = await driver.send(native, first, credit(native))
      await seenInMempool(driver, [first, second], old)

      const to = change.to === undefined ? first : second
      const units = change.units ?? credit(native)
      const fresh = await driver.replace(old, {
        ...(change.to === undefined ? {} : { to }),
        ...(change.units === undefined ? {} : { units }),
      })
      const ours = change.to === 'outside' ? [first] : [first, second]
      const expected = change.to === 'outside' ? [] : [{ to, units, asset: native, txHash: fresh }]
      expect(await driver.chain.lookup(old)).toEqual({ where: 'absent' })
      expect(await driver.chain.lookup(fresh)).toEqual({ where: 'mempool' })
      if (change.to !== 'outside') expect(await seenInMempool(driver, ours, fresh)).toMatchObject(expected)

      await driver.mine(1)
      const blocks = await scan(driver.chain, start, new Set(ours))
      expect(blocks.flatMap(({ transfers }) => transfers)).toMatchObject(expected)
      expect(await driver.chain.lookup(old)).toEqual({ where: 'absent' })
      expect((await driver.chain.lookup(fresh)).where).toBe('block')
    },
  )
}

function describeFakes({ assets: [native], fakeDeposits }: ChainUnderTest, world: WiredWorld) {
  test.each(fakeDeposits)('no deposit, beside a true one: $what', async (fake) => {
    const driver = world()
    const start = await driver.chain.head()
    const to = await driver.ourAddress()
    const trueHash = await driver.send(native, to, credit(native))
    const { txHash } = await fake.make(driver, to)
    await driver.mine(1)
    const found = (await scan(driver.chain, start, new Set([to]))).flatMap(({ transfers }) => transfers)
    const isUnlisted = ({ asset }: Transfer) => typeof asset !== 'string'
    expect(found.filter((transfer) => !isUnlisted(transfer)).map(withoutId)).toEqual([
      { to, asset: native, units: credit(native), txHash: trueHash },
    ])
    const recorded = found.filter(isUnlisted)
    if (fake.shows === 'nothing') expect(recorded).toEqual([])
    else expect(recorded.map((transfer) => transfer.txHash)).toContain(txHash)
  })
}

function whileWaiting({ hidesWaiting }: ChainSubject<ChainWorld>) {
  return { where: hidesWaiting === true ? 'absent' : 'mempool' }
}

function describePayouts(subject: ChainSubject<ChainWorld>, world: World) {
  const { assets } = subject
  test.each(assets)('a payout of %s is the same bytes every time and arrives once', async (asset) => {
    const driver = world()
    const { chain } = driver
    const { outflow, intent } = await drafted(driver, asset)
    const tx = await driver.sign(intent)
    expect(await driver.sign(intent)).toEqual(tx)
    expect(await chain.lookup(tx.txHash)).toEqual({ where: 'absent' })

    expect(await chain.broadcast(tx)).toBe('accepted')
    expect(await chain.broadcast(tx), 'already waiting').toBe('accepted')
    expect(await chain.lookup(tx.txHash)).toEqual(whileWaiting(subject))
    await driver.mine(1)
    expect(await chain.broadcast(tx), 'already mined').toBe('accepted')
    await driver.mine(3)
    expect(await chain.broadcast(tx), 'mined and buried').toBe('accepted')

    const status = await chain.lookup(tx.txHash, intent)
    expect(status).toMatchObject({ where: 'block', succeeded: true, cost: { asset: assets[0] } })
    expect(status).not.toHaveProperty('movedOtherwise')
    if (status.where === 'block') expect(status.cost.units > 0n).toBe(subject.isFree !== true)
    expect(await driver.holds(asset, outflow.address)).toBe(outflow.units)
    expect(await chain.balance(asset, [outflow.address])).toBe(outflow.units)
  })

  test.each(assets)('of a payout of %s and its raised attempt only one is mined', async (asset) => {
    const driver = world()
    const { chain } = driver
    const { outflow, intent } = await drafted(driver, asset)
    const first = await driver.sign(intent)
    const send = async () => expect(await chain.broadcast(first)).toBe('accepted')
    await (driver.lose === undefined ? send() : driver.lose(send))
    const raised = chain.raise(intent, await bidFor(chain, outflow))
    if (!raised.ok) throw new Error(raised.rejection.message)
    expect(raised.value.attempt).toBe(intent.attempt + 1)
    const second = await driver.sign(raised.value)
    expect(second.txHash).not.toBe(first.txHash)
    expect(await chain.broadcast(second)).toBe('accepted')
    expect(await chain.lookup(first.txHash)).toEqual({ where: 'absent' })
    await driver.mine(1)
    expect((await chain.lookup(second.txHash)).where).toBe('block')
    expect(await chain.broadcast(second)).toBe('accepted')
    expect(await chain.broadcast(first), 'the earlier attempt can never be mined').toBe('refused')
    expect(await chain.lookup(first.txHash)).toEqual({ where: 'absent' })
    expect(await driver.holds(asset, outflow.address)).toBe(outflow.units)
  })
}

function describeUnheard({ assets }: ChainSubject<ChainWorld>, world: World) {
  test.each(assets)(
    'a payout of %s that is mined while nobody hears excludes a further attempt',
    async (asset) => {
      const driver = world()
      const { chain } = driver
      const { outflow, intent } = await drafted(driver, asset)
      const first = await driver.sign(intent)
      expect(await chain.broadcast(first)).toBe('accepted')
      await driver.mine(driver.lose === undefined ? 1 : BLOCKS_TO_RUN_OUT)
      expect(await chain.lookup(first.txHash)).toMatchObject({ where: 'block', succeeded: true })
      if (chain.isOver !== undefined) {
        expect(await chain.isOver(intent, first.txHash), 'there is none to sign').toBe(false)
      } else {
        const raised = chain.raise(intent, await bidFor(chain, outflow))
        if (!raised.ok) throw new Error(raised.rejection.message)
        const second = await driver.sign(raised.value)
        expect(await chain.broadcast(second)).toBe('refused')
        await driver.mine(1)
        expect(await chain.lookup(second.txHash)).toEqual({ where: 'absent' })
      }
      expect(await driver.holds(asset, outflow.address)).toBe(outflow.units)
    },
  )
}

/** More than any transaction has, where they have a time. */
const BLOCKS_TO_RUN_OUT = 100

function describeExclusion({ assets: [native] }: ChainSubject<ChainWorld>, world: World) {
  test('its node says whether an attempt is over where nothing on chain excludes another, and nowhere else', () => {
    const { chain } = world()
    expect(chain.isOver === undefined).toBe(excludesOnChain[chain.family])
  })

  test('a payout whose coins were undone and spent otherwise is excluded when that is deep; accounts have no coins', async () => {
    const driver = world()
    const { chain } = driver
    const { areExcluded, isUnspent } = chain
    if (chain.model === 'account') return expect([areExcluded, isUnspent]).toEqual([undefined, undefined])
    const { confirmations } = chainFacts[chain.id]
    const { intent } = await drafted(driver, native)
    const tx = await driver.sign(intent)
    const [coin] = intent.family === 'bitcoin' ? intent.inputs : []
    if (intent.family !== 'bitcoin' || coin === undefined) throw new Error('a payout spends a coin')
    const ofChange: Intent = { ...intent, inputs: [{ ...coin, txHash: tx.txHash, index: 1 }] }
    const look = async () => [await areExcluded?.([intent]), await areExcluded?.([ofChange])]
    const possible = [false, false]

    expect(await chain.broadcast(tx)).toBe('accepted')
    expect(await look(), 'it waits').toEqual(possible)
    expect(await isUnspent?.(coin)).toBe(true)
    await driver.mine(confirmations)
    expect(await look(), 'it has spent its coins itself').toEqual(possible)
    expect(await isUnspent?.(coin)).toBe(false)
    await driver.reorg(confirmations + 1)
    expect(await look(), 'it waits again, and what it spends does').toEqual(possible)
    await driver.replace(coin.txHash, { to: await driver.outsideAddress() })
    expect(await look(), 'what waits has spent nothing').toEqual(possible)
    await driver.mine(confirmations - 1)
    expect(await look(), 'one block less than deep').toEqual(possible)
    await driver.mine(1)
    expect(await look()).toEqual([true, true])
  })
}

function describeCosts({ assets }: ChainSubject<ChainWorld>, world: World) {
  test('a quote for the cost covers what a payout then costs', async () => {
    const driver = world()
    for (const asset of assets) {
      const estimate = await driver.chain.estimatePayout(asset)
      expect(estimate.isAboveFeeCap).toBe(false)
      const { intent } = await drafted(driver, asset)
      const tx = await driver.sign(intent)
      expect(await driver.chain.broadcast(tx)).toBe('accepted')
      await driver.mine(1)
      const status = await driver.chain.lookup(tx.txHash)
      if (status.where !== 'block') throw new Error('the payout was mined')
      expect(estimate.cost.asset).toBe(status.cost.asset)
      expect(estimate.cost.units).toBeGreaterThanOrEqual(status.cost.units)
    }
  })

  test('an account with a nonce counts its mined payouts; others have no such count', async () => {
    const driver = world()
    const { chain } = driver
    const [native] = assets
    const reserve = await driver.reserveAddress()
    if (chain.model === 'coins' || chain.isOver !== undefined)
      return expect(chain.minedNonce(reserve)).rejects.toThrow()
    const before = await chain.minedNonce(reserve)
    const { height } = await chain.head()
    const { intent } = await drafted(driver, native)
    expect(await chain.broadcast(await driver.sign(intent))).toBe('accepted')
    expect(await chain.minedNonce(reserve), 'waiting is not mined').toBe(before)
    await driver.mine(1)
    expect(await chain.minedNonce(reserve)).toBe(before + 1)
    const isFinal = chainFacts[chain.id].confirmations === 1
    expect(await chain.minedNonce(reserve, height), 'as of the block before').toBe(
      isFinal ? before + 1 : before,
    )
  })
}

function describeBadLines(subject: ChainUnderTest, world: WiredWorld) {
  const { assets, isPlain } = subject
  // A node that is well may take longer on a busy machine: it is asked until it answers.
  const timeoutMs = 1_000
  const [native] = assets

  test('a broadcast whose reply is lost is unknown; the same bytes again are accepted and pay once', async () => {
    const driver = world()
    const line = await openHttpLine(driver.rpcUrl)
    try {
      const chain = driver.chainAt(line.url, timeoutMs)
      const { outflow, intent } = await drafted(driver, native)
      const tx = await driver.sign(intent)
      let isSent = false
      line.meddle(({ method }) => {
        isSent ||= method === driver.broadcastMethod
        return isSent ? 'drop_reply' : null
      })
      const isGot = async () => [await chain.broadcast(tx), line.count() > 0]
      await expect.poll(isGot, { message: 'the node did get it' }).toEqual(['unknown', true])
      await expect.poll(() => driver.chain.lookup(tx.txHash)).toEqual(whileWaiting(subject))
      line.meddle(null)
      await expect.poll(() => chain.broadcast(tx)).toBe('accepted')
      await driver.mine(1)
      await expect.poll(() => chain.broadcast(tx)).toBe('accepted')
      expect(await driver.holds(native, outflow.address)).toBe(outflow.units)
    } finally {
      await line.stop()
    }
  })

  if (isPlain === true) return
  test('the answer to an earlier request is no answer', async () => {
    const driver = world()
    const line = await openHttpLine(driver.rpcUrl)
    try {
      const chain = driver.chainAt(line.url, timeoutMs)
      const { intent } = await drafted(driver, native)
      const tx = await driver.sign(intent)
      await expect.poll(() => chain.lookup(`${tx.txHash.slice(0, -6)}abcdef`)).toEqual({ where: 'absent' })
      line.meddle(() => 'stray')
      const toldStrays = async () => {
        await expect(chain.lookup(tx.txHash)).rejects.toThrow()
        return [await chain.broadcast(tx), (line.happened().get('stray') ?? 0) > 1]
      }
      await expect.poll(toldStrays).toEqual(['unknown', true])
      line.meddle(null)
      await expect.poll(() => chain.lookup(tx.txHash)).toEqual(whileWaiting(subject))
    } finally {
      await line.stop()
    }
  })
}

/** After these the caller knows nothing: not even whether the node has done what it was asked to. */
const fruitless = httpFaults.filter((fault) => fault !== 'delay' && fault !== 'twice' && fault !== 'stray')

function describeFaults({ assets, isFinal, isPlain, hasNoIds }: ChainUnderTest, world: WiredWorld) {
  const timeoutMs = 1_000
  const [native] = assets

  const faults =
    isPlain === true || hasNoIds === true ? fruitless.filter((fault) => fault !== 'wrong_id') : fruitless

  test.each(faults)('a node that fails by "%s" answers nothing', async (fault) => {
    const driver = world()
    const line = await openHttpLine(driver.rpcUrl)
    try {
      const chain = driver.chainAt(line.url, timeoutMs)
      const { outflow, intent } = await drafted(driver, native)
      const tx = await driver.sign(intent)
      line.meddle(() => fault)
      expect(await chain.broadcast(tx)).toBe('unknown')
      const asked = {
        'a lookup is never absent': chain.lookup(tx.txHash),
        'a block is never null': chain.readBlock(1, nobody),
        'there is no head': chain.head(),
        ...(isFinal !== true && { 'the mempool is never empty': chain.readMempool(nobody) }),
        'a balance is never zero': chain.balance(native, [outflow.address]),
        'nobody is recognised': chain.checkIdentity(),
      }
      const answers = await Promise.allSettled(Object.values(asked))
      for (const [index, what] of Object.keys(asked).entries()) {
        expect(answers[index]?.status, what).toBe('rejected')
      }
      // By its class the watcher knows that it is the node that cannot tell.
      expect(answers[0]).toMatchObject({ reason: expect.any(NodeTrouble) })
      line.meddle(null)
      const where = expect.poll(async () => (await chain.lookup(tx.txHash)).where, {
        message: 'the node has it or not',
      })
      await where.toMatch(/absent|mempool/)
      await expect.poll(() => chain.broadcast(tx), { message: 'as good as new' }).toBe('accepted')
      await driver.mine(1)
      expect(await driver.holds(native, outflow.address)).toBe(outflow.units)
    } finally {
      await line.stop()
    }
  })
}

type Expected = Omit<Transfer, 'id'>

/** A deposit that counts, in ledger units. */
function credit(asset: AssetId): bigint {
  return assetOf(asset).minCredit * 3n
}

/** The least that the chain can carry, in ledger units: USDT has 6 decimals on Ethereum and 18 in the ledger. */
function grain(asset: AssetId): bigint {
  const { decimals, chainDecimals } = assetOf(asset)
  return 10n ** BigInt(decimals - chainDecimals)
}

async function drafted(driver: ChainWorld, asset: AssetId): Promise<{ outflow: Outflow; intent: Intent }> {
  const units = assetOf(asset).minPayout * 2n
  const outflow: Outflow = {
    payoutId: `CB${Math.random().toString().slice(2, 18).padEnd(16, '0')}:1`,
    kind: 'payout',
    asset,
    units,
    address: await driver.outsideAddress(),
    tag: null,
  }
  const bid = await bidFor(driver.chain, outflow)
  const funds = await driver.funds(asset, units)
  const drafted = driver.chain.draft(outflow, bid, funds)
  if (!drafted.ok) throw new Error(drafted.rejection.message)
  expect(driver.chain.draft(outflow, bid, funds), 'a draft is pure').toEqual(drafted)
  return { outflow, intent: drafted.value }
}

async function bidFor(chain: Chain, outflow: Outflow) {
  const bid = await chain.bid(outflow)
  if (!bid.ok) throw new Error(bid.rejection.message)
  return bid.value
}

/** Reads every block after `start` up to the head as a watcher does, checking that each hangs on the one before. */
async function scan(chain: Chain, start: BlockRef, ours: ReadonlySet<string>): Promise<readonly Block[]> {
  const blocks: Block[] = []
  let asked = 0
  const findOurs: FindOurs = async (recipients) => {
    asked += 1
    return new Set(recipients.filter((recipient) => ours.has(recipient)))
  }
  const head = await chain.head()
  for (let height = start.height + 1; height <= head.height; height += 1) {
    asked = 0
    const block = await chain.readBlock(height, findOurs)
    if (block === null) throw new Error(`block ${height} is there`)
    expect(asked, 'the address table is asked at most once a block').toBeLessThanOrEqual(1)
    expect(block.height).toBe(height)
    expect(block.parentHash).toBe((blocks.at(-1) ?? start).hash)
    blocks.push(block)
  }
  expect(blocks.at(-1)?.hash ?? start.hash).toBe(head.hash)
  return blocks
}

/** Looks into the mempool until `txHash` was told; answers what was told of it. */
async function seenInMempool(
  driver: ChainWorld,
  ours: readonly string[],
  txHash: string,
  again?: ReadonlySet<string>,
) {
  const findOurs: FindOurs = async (recipients) => new Set(recipients.filter((one) => ours.includes(one)))
  let seen: readonly Transfer[] = []
  await expect
    .poll(
      async () => {
        const told = await driver.chain.readMempool(findOurs, again)
        seen = told.filter((transfer) => transfer.txHash === txHash)
        return seen.length
      },
      { interval: 50 },
    )
    .toBeGreaterThan(0)
  return seen
}

const nobody: FindOurs = async () => new Set()

function withoutId({ id: _, ...rest }: Transfer): Expected {
  return rest
}

function refOf(block: Block | undefined): BlockRef {
  if (block === undefined) throw new Error('a block was mined')
  return { height: block.height, hash: block.hash }
}

function sorted(transfers: readonly Expected[]) {
  const key = ({ txHash, to, units }: Expected) => `${txHash} ${to} ${units.toString().padStart(40)}`
  return transfers.toSorted((left, right) => (key(left) < key(right) ? -1 : 1))
}

/** Well-formed, in the chain's own spelling, and of no transaction. */
function unknownHash({ chain }: ChainWorld): string {
  const digits = 'f00d'.repeat(16)
  return chain.family === 'evm' ? `0x${digits}` : digits
}
