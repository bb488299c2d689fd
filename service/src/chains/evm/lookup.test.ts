import { expect, test } from 'vitest'
import { lookup } from './lookup.ts'
import { refusal, type Script, scriptedNode } from './testing/scripted_node.ts'

const hash = (digit: string) => `0x${digit.repeat(64)}`
const tx = {
  hash: hash('a'),
  from: `0x${'1'.repeat(40)}`,
  to: null,
  value: '0x0',
  input: '0x',
  blockHash: null,
}
const receipt = {
  transactionHash: hash('a'),
  blockHash: hash('b'),
  blockNumber: '0x7',
  status: '0x0',
  gasUsed: '0x5208',
  effectiveGasPrice: '0x2',
  logs: [],
}
const look = (script: Script) => lookup(scriptedNode(script), 'ETH:ETH', hash('a'))
const saying = (eth_getTransactionByHash: unknown, eth_getTransactionReceipt: unknown) =>
  look({
    eth_getTransactionByHash: () => eth_getTransactionByHash,
    eth_getTransactionReceipt: () => eth_getTransactionReceipt,
  })

test('absent, waiting, and in a block with what it cost', async () => {
  expect(await saying(null, null)).toEqual({ where: 'absent' })
  expect(await saying(tx, null)).toEqual({ where: 'mempool' })
  const status = {
    where: 'block',
    block: { height: 7, hash: hash('b') },
    succeeded: false,
    cost: { asset: 'ETH:ETH', units: 42_000n },
  }
  expect(await saying({ ...tx, blockHash: hash('b') }, receipt)).toEqual(status)
  expect(await saying(null, receipt), 'mined between the two questions').toEqual(status)
})

test('a node that cannot tell never says absent', async () => {
  await expect(saying({ ...tx, blockHash: hash('b') }, null)).rejects.toThrow(/ask again/)
  await expect(saying(undefined, null)).rejects.toThrow()
  await expect(saying(null, undefined)).rejects.toThrow()
  await expect(saying({ ...tx, hash: hash('c') }, null)).rejects.toThrow()
  await expect(saying(null, { ...receipt, transactionHash: hash('c') })).rejects.toThrow()
  const indexing = () => refusal(-32000, 'transaction indexing is in progress')
  await expect(look({ eth_getTransactionByHash: indexing })).rejects.toThrow(/indexing/)
})
