import { expect, test } from 'vitest'
import { blocksOf } from './blocks.ts'
import { blockAt, scriptedNode } from './testing/scripted_node.ts'

test('of the blocks that were read the last 256 are remembered, which is further than balances are counted', async () => {
  const asked: string[] = []
  const node = scriptedNode({
    'wallet/getblock': ({ id_or_num: height }) => {
      asked.push(String(height))
      return blockAt(Number(height), 1_000)
    },
  })
  const blocks = blocksOf(node)
  for (let height = 1; height <= 257; height += 1) await blocks.at(height)
  asked.length = 0
  const named = (height: number) => blocks.named({ height, hash: blockAt(height, 1_000).blockID })
  await named(2)
  await named(257)
  expect(asked).toEqual([])
  expect(await named(1)).toMatchObject({ height: 1 })
  expect(asked).toEqual(['1'])
})

test('a block whose results are asked for while another takes its place is read again', async () => {
  const txID = 'cd'.repeat(32)
  const tx = {
    txID,
    ret: [{ contractRet: 'SUCCESS' }],
    raw_data: { contract: [{ type: 'AccountCreateContract', parameter: { value: {} } }] },
  }
  const first = blockAt(9, 27_000, [tx])
  const other = { ...first, blockID: `${first.blockID.slice(0, 16)}${'ef'.repeat(24)}` }
  let asked = 0
  const blocks = blocksOf(
    scriptedNode({
      'wallet/getblock': () => (asked++ === 0 ? first : other),
      'wallet/gettransactioninfobyblocknum': () => [{ id: txID }],
    }),
  )
  await expect(blocks.at(9)).rejects.toThrow('read it again')
  expect((await blocks.at(9))?.hash).toBe(other.blockID)
})
