import { expect, test } from 'vitest'
import { finalBlock } from './final_block.ts'
import { scriptedNode } from './testing/scripted_node.ts'

const hash = `0x${'0a'.repeat(32)}`

test('height and hash of the final block are of one answer: another one may be of another node', async () => {
  const node = scriptedNode({
    eth_getBlockByNumber: (tag) => {
      const number = tag === 'finalized' ? '0x3ea' : '0x3f8'
      return { number, hash, parentHash: `0x${'0b'.repeat(32)}`, timestamp: '0x1', transactions: [] }
    },
  })
  expect(await finalBlock(node)).toEqual({ height: 1_002, hash })
  expect(node.asked).toEqual(['eth_getBlockByNumber'])
})
