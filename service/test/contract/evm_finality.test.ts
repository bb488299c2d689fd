import { afterAll, expect, test } from 'vitest'
import { type EvmDriver, startEvmDriver } from './evm_driver.ts'

/**
 * What: where a validator makes more blocks in its turn than a deposit has to be deep, the node is asked what is final.
 * How: a real anvil, to which what is twice as deep as its epoch is long is final: four blocks.
 */
const FINAL_BEHIND_HEAD = 4
const drivers: EvmDriver[] = []

afterAll(async () => {
  for (const driver of drivers) await driver.stop()
})

async function start(id: 'ETH' | 'BNB') {
  const driver = await startEvmDriver(id)
  drivers.push(driver)
  return driver
}

test('what is final on BNB Smart Chain its node says, and it follows the head', async () => {
  const { chain, mine } = await start('BNB')
  for (const blocks of [10, 3]) {
    await mine(blocks)
    const height = (await chain.head()).height - FINAL_BEHIND_HEAD
    expect(await chain.finalBlock?.()).toEqual({ height, hash: await chain.blockHash(height) })
  }
})

test('on Ethereum depth decides', async () => {
  expect((await start('ETH')).chain.finalBlock).toBeUndefined()
})
