import { expect, test } from 'vitest'
import type { EvmIntent } from '../../domain/payouts/intent.ts'
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
const look = (script: Script, attempt?: EvmIntent) =>
  lookup(scriptedNode(script), 'ETH:ETH', hash('a'), attempt)
const saying = (eth_getTransactionByHash: unknown, eth_getTransactionReceipt: unknown, attempt?: EvmIntent) =>
  look(
    {
      eth_getTransactionByHash: () => eth_getTransactionByHash,
      eth_getTransactionReceipt: () => eth_getTransactionReceipt,
    },
    attempt,
  )

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

const [reserve, payee, stranger] = ['1', '2', '3'].map((digit) => `0x${digit.repeat(40)}`) as [
  string,
  string,
  string,
]
const usdt = '0xdAC17F958D2ee523a2206206994597C13D831ec7'
const attempt: EvmIntent = {
  ...{ family: 'evm', chain: 'ETH', evmChainId: 1, payoutId: 'CB1:1', attempt: 1, nonce: 0 },
  from: { purpose: 'reserve', index: 0 },
  to: payee,
  units: 1_000n,
  token: usdt,
  ...{ gasLimit: 90_000n, maxFeePerGasWei: 2n, maxPriorityFeePerGasWei: 1n },
}
const word = (hex: string) => `0x${hex.padStart(64, '0')}`
const event = (from: string, to: string, units: bigint, contract = usdt) => ({
  address: contract,
  topics: [
    '0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef',
    word(from.slice(2)),
    word(to.slice(2)),
  ],
  data: word(units.toString(16)),
})
const tokenStatus = (logs: readonly unknown[], of: EvmIntent = attempt) =>
  saying(tx, { ...receipt, status: '0x1', from: reserve, logs }, of)

test('a token has been paid when its contract says that just this was moved', async () => {
  const paid = await tokenStatus([event(reserve, payee, 1_000n)])
  expect(paid).toMatchObject({ succeeded: true })
  expect(paid).not.toHaveProperty('movedOtherwise')
  const among = [event(stranger, payee, 5n), event(reserve, payee, 1_000n), event(payee, stranger, 1_000n)]
  expect(await tokenStatus(among)).not.toHaveProperty('movedOtherwise')
  const coin = await tokenStatus([], { ...attempt, token: null })
  expect(coin, 'coin says nothing').toMatchObject({ succeeded: true })
})

test('a token that answers false has not been paid, though its transaction did not fail', async () => {
  expect(await tokenStatus([])).toMatchObject({ where: 'block', succeeded: false })
  expect(await tokenStatus([event(stranger, payee, 1_000n)]), 'somebody else paid').toMatchObject({
    succeeded: false,
  })
})

test.each([
  ['less, and the rest to somebody else', [event(reserve, payee, 990n), event(reserve, stranger, 10n)]],
  ['it to somebody else', [event(reserve, stranger, 1_000n)]],
  ['it by another contract', [event(reserve, payee, 1_000n, `0x${'4'.repeat(40)}`)]],
])('a token that moved %s is for a person to look at', async (_, logs) => {
  expect(await tokenStatus(logs)).toMatchObject({
    succeeded: true,
    movedOtherwise: expect.stringContaining('was to move 1000 units'),
  })
})

test('a receipt that leaves out what its bloom says that was logged is no answer', async () => {
  const bloom = `0x${'0'.repeat(511)}1`
  const said = saying(tx, { ...receipt, status: '0x1', from: reserve, logsBloom: bloom }, attempt)
  await expect(said).rejects.toThrow('logs')
})

test('a fee beside the gas is refused, because nothing counts on it', async () => {
  await expect(saying(tx, { ...receipt, l1Fee: '0x1' })).rejects.toThrow('L1 fee')
  expect(await saying(tx, { ...receipt, l1Fee: '0x0' })).toMatchObject({ where: 'block' })
})
