import { afterAll, beforeAll, expect, test } from 'vitest'
import { evm } from '../../src/chains/evm/index.ts'
import { insertAddresses } from '../../src/db/addresses.ts'
import { type Lease, takeLease } from '../../src/db/leases.ts'
import { assert } from '../../src/domain/assert.ts'
import { HOUR_MS } from '../../src/domain/time.ts'
import { reconcileChain } from '../../src/engine/books/reconcile.ts'
import { REACH_BLOCKS } from '../../src/engine/reach.ts'
import { type BooksStage, openBooksStage } from '../../src/engine/testing/books_stage.ts'
import { nobodyElse } from '../../src/engine/testing/nobody_else.ts'
import { watchOnce } from '../../src/engine/testing/watch_once.ts'
import { type EvmDriver, startEvmDriver } from './evm_driver.ts'

/**
 * What: a second EVM chain that is offered later, and a token that is listed later, have in the books what addresses of ours held before.
 * How: a real anvil, coins and tokens that came before anybody looked, a real PostgreSQL; what each block holds is told by the node.
 */
let driver: EvmDriver
let stage: BooksStage
let lease: Lease
const deposit: string[] = []

beforeAll(async () => {
  stage = await openBooksStage('evm-opening')
  driver = await startEvmDriver('BNB')
  await stage.reset()
  await stage.empty('chain_heads')
  const taken = await takeLease(stage.db, 'watch:BNB', 'me', stage.world.clock.wallMs(), 48 * HOUR_MS)
  assert(taken !== null, 'nobody else looks')
  lease = taken
  // Given out on the chain that was offered first.
  for (let index = 0; index < 3; index += 1) deposit.push(await driver.ourAddress())
  await insertAddresses(stage.db, 'evm', 'reserve', 0, [await driver.reserveAddress()])
  await insertAddresses(stage.db, 'evm', 'deposit', 0, deposit)
})

afterAll(async () => {
  await driver?.stop()
  await stage?.stop()
})

async function expectBooksLikeChain(): Promise<void> {
  await watchOnce(stage.world, driver.chain, lease)
  const compared = await reconcileChain(stage.world, driver.chain, { guard: nobodyElse })
  assert(compared?.kind === 'compared', 'both are at the same block')
  expect(compared.comparisons.map(({ asset }) => asset).sort()).toEqual([...driver.chain.assets].sort())
  for (const { asset, difference } of compared.comparisons) expect(difference, asset).toBe(0n)
}

const strays = () =>
  stage.db.query(
    "SELECT address, asset, units, state FROM house_deposits WHERE kind = 'stray' ORDER BY asset, address, units",
  )

test('what came before the first look, around it and after it is in the books, to the unit', async () => {
  const [first = '', second = '', third = ''] = deposit
  const [coin, token] = [1n, 5n * 10n ** 18n]
  await driver.send('BNB:BNB', first, coin)
  await driver.send('USDT:BEP20', first, token)
  await driver.send('USDC:BEP20', second, token)
  await driver.mine(REACH_BLOCKS + 1)
  // Not final yet when the chain is first looked at: these are read in their blocks.
  await driver.send('BNB:BNB', second, coin)
  await driver.mine(2)
  await expectBooksLikeChain()
  const opening = [
    { address: first, asset: 'BNB:BNB', units: coin, state: 'confirmed' },
    { address: second, asset: 'USDC:BEP20', units: token, state: 'confirmed' },
    { address: first, asset: 'USDT:BEP20', units: token, state: 'confirmed' },
  ]
  expect(await strays()).toEqual(
    expect.arrayContaining([...opening, { address: second, asset: 'BNB:BNB', units: coin, state: 'mined' }]),
  )
  expect(await strays()).toHaveLength(4)

  await driver.reorg(2)
  await driver.send('USDT:BEP20', third, token)
  await driver.mine(30)
  await expectBooksLikeChain()
  expect(await strays()).toEqual(expect.arrayContaining(opening))
  expect(await strays()).toContainEqual({
    ...{ address: third, asset: 'USDT:BEP20', units: token, state: 'confirmed' },
  })
})

test('what came of a token before it was listed is in the books once it is, also when its block is lost', async () => {
  await stage.reset()
  await stage.empty('chain_heads', 'opened_assets')
  const taken = await takeLease(stage.db, 'watch:BNB', 'me', stage.world.clock.wallMs(), 48 * HOUR_MS)
  assert(taken !== null, 'nobody else looks')
  lease = taken
  await insertAddresses(stage.db, 'evm', 'reserve', 0, [await driver.reserveAddress()])
  await insertAddresses(stage.db, 'evm', 'deposit', 0, deposit)
  const { 'USDC:BEP20': _, ...tokens } = driver.settings.tokens
  const before = evm({ ...driver.settings, tokens })
  await watchOnce(stage.world, before, lease)
  const [first = '', second = '', third = ''] = deposit
  const token = 5n * 10n ** 18n
  await driver.send('USDC:BEP20', first, token)
  await driver.mine(30)
  await driver.send('USDC:BEP20', third, token)
  await driver.mine(1)
  await watchOnce(stage.world, before, lease)
  const held = (address: string) => driver.chain.balance('USDC:BEP20', [address])
  const heldBySecond = await held(second)
  await expectBooksLikeChain()
  const sums = async () =>
    stage.db.query(
      `SELECT address, units, state FROM house_deposits
       WHERE asset = 'USDC:BEP20' AND kind = 'stray' AND state <> 'orphaned' ORDER BY address`,
    )
  expect(await sums()).toEqual(
    expect.arrayContaining([
      { address: first, units: token, state: 'mined' },
      { address: second, units: heldBySecond, state: 'mined' },
      { address: third, units: await held(third), state: 'mined' },
    ]),
  )
  await driver.reorg(2)
  await driver.mine(1)
  await expectBooksLikeChain()
  await driver.send('USDC:BEP20', second, token)
  await driver.mine(40)
  await expectBooksLikeChain()
  expect(await sums()).toContainEqual({ address: first, units: token, state: 'confirmed' })
  expect(await sums()).toContainEqual({ address: second, units: token, state: 'confirmed' })
})
