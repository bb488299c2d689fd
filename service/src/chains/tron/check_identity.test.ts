import { expect, test } from 'vitest'
import { blocksOf } from './blocks.ts'
import { requireFirstBlock } from './check_identity.ts'
import { blockAt, scriptedNode } from './testing/scripted_node.ts'

const ours = {
  ...blockAt(0, 1_000),
  block_header: { raw_data: { number: 0, timestamp: 1_000, parentHash: '0'.repeat(64) } },
}
const other = { ...ours, blockID: `${'0'.repeat(16)}${'cd'.repeat(24)}` }

test.each([
  ['both tell the configured network', ours, ours, null],
  ['another network tells what is newest', other, ours, "the TRON node's first block is"],
  ['another network tells what is solid', ours, other, 'the first block that is solid is'],
  ['nothing is told of what is solid', ours, {}, 'the first block that is solid is undefined'],
])('%s', async (_what, head, solid, problem) => {
  const node = scriptedNode({ 'wallet/getblock': () => head, 'walletsolidity/getblock': () => solid })
  const checked = requireFirstBlock(blocksOf(node), ours.blockID)
  if (problem === null) await checked
  else await expect(checked).rejects.toThrow(problem)
})
