import { expect, test } from 'vitest'
import { head, readBlock } from './read_block.ts'
import { NoAnswer, RpcRefusal } from './rpc.ts'
import { refusing, type Script, scriptedRpc, silent } from './testing/scripted_rpc.ts'

/** Block 0 of Bitcoin. */
const genesis = {
  hash: '000000000019d6689c085ae165831e934ff763ae46a2a6c172b3f1b60a8ce26f',
  hex: '0100000000000000000000000000000000000000000000000000000000000000000000003ba3edfd7a7b12b27ac72c3e67768f617fc81bc3888a51323a9fb8aa4b1e5e4a29ab5f49ffff001d1dac2b7c0101000000010000000000000000000000000000000000000000000000000000000000000000ffffffff4d04ffff001d0104455468652054696d65732030332f4a616e2f32303039204368616e63656c6c6f72206f6e206272696e6b206f66207365636f6e64206261696c6f757420666f722062616e6b73ffffffff0100f2052a01000000434104678afdb0fe5548271967f1a67130b7105cd6a828e03909a67962e0ea1f61deb649f6bc3f4cef38c4f35504e51ec112de5c384df7ba0b8d578a4c702b6bf11d5fac00000000',
}
const right: Script = { getblockhash: () => genesis.hash, getblock: () => genesis.hex }

function read(changes: Script = {}, height = 0) {
  const rpc = scriptedRpc({ ...right, ...changes })
  return readBlock(rpc, 'mainnet', height, async (addresses) => new Set(addresses))
}

test('a block is what its bytes say', async () => {
  expect(await read()).toEqual({
    height: 0,
    hash: genesis.hash,
    parentHash: '0'.repeat(64),
    timeMs: 1_231_006_505_000,
    transfers: [],
  })
})

test('null is said only for a height the node calls out of range, or that no chain can have', async () => {
  expect(await read({ getblockhash: refusing(-8, 'Block height out of range') })).toBeNull()
  expect(await read({ getblockhash: silent }, 2 ** 31)).toBeNull()
  await expect(read({ getblockhash: silent })).rejects.toThrow(NoAnswer)
  await expect(read({ getblockhash: refusing(-28, 'Loading block index…') })).rejects.toThrow(RpcRefusal)
  await expect(read({ getblockhash: refusing(-1, 'JSON value is not of expected type') })).rejects.toThrow()
})

test.each<[string, Script]>([
  ['another block than the one asked for', { getblockhash: () => '00'.repeat(32) }],
  ['half a block', { getblock: () => genesis.hex.slice(0, -2) }],
  ['a block with another amount', { getblock: () => genesis.hex.replace('00f2052a01', '00f2052a02') }],
  ['no bytes', { getblock: () => 'zz' }],
  ['nothing', { getblock: () => '' }],
  ['JSON instead of bytes', { getblock: () => ({ hash: genesis.hash, tx: [] }) }],
  ['a block that was pruned', { getblock: refusing(-1, 'Block not available (pruned data)') }],
])('%s is an error and never an empty block', async (_, changes) => {
  await expect(read(changes)).rejects.toThrow()
})

test('a height that is none stops us', async () => {
  for (const height of [-1, 0.5, Number.NaN]) await expect(read({}, height)).rejects.toThrow('assertion')
})

test('a node that knows of blocks that it has not fetched yet tells no head', async () => {
  const info = { blocks: 100, headers: 112, bestblockhash: genesis.hash }
  await expect(head(scriptedRpc({ getblockchaininfo: () => info }))).rejects.toThrow('lacks 12 blocks')
})

test('the head is height and hash out of one reply', async () => {
  const info = { blocks: 7, headers: 8, bestblockhash: genesis.hash }
  expect(await head(scriptedRpc({ getblockchaininfo: () => info }))).toEqual({
    height: 7,
    hash: genesis.hash,
  })
  await expect(head(scriptedRpc({ getblockchaininfo: () => ({ ...info, blocks: '7' }) }))).rejects.toThrow(
    NoAnswer,
  )
})
