import { encodeFunctionData, erc20Abi, pad, toEventSelector } from 'viem'
import { expect, test } from 'vitest'
import type { EvmLog, EvmReceipt } from './decode.ts'
import { tokenMoves, transferCall } from './token_moves.ts'

const [token, from, to] = ['0x11', '0x22', '0x33'].map((start) => start.padEnd(42, '0')) as [
  `0x${string}`,
  `0x${string}`,
  `0x${string}`,
]
const topic = toEventSelector('Transfer(address,address,uint256)')
const word = (units: bigint) => pad(`0x${units.toString(16)}`)
const log = (change: Partial<EvmLog> = {}): EvmLog => ({
  contract: token,
  topics: [topic, pad(from), pad(to)],
  data: word(7n),
  ...change,
})
const receipt = (logs: readonly EvmLog[], isSuccess = true): EvmReceipt => ({
  txHash: '0x',
  blockHash: '0x',
  height: 1,
  isSuccess,
  gasUsed: 1n,
  effectiveGasPriceWei: 1n,
  logs,
})

test('a Transfer is told with its place among the logs of its transaction', () => {
  const other = log({ topics: [toEventSelector('Approval(address,address,uint256)'), pad(from), pad(to)] })
  expect(tokenMoves(receipt([other, log()]))).toEqual([{ contract: token, from, to, units: 7n, ordinal: 1 }])
})

const nothings = [
  { what: 'an NFT', log: log({ topics: [topic, pad(from), pad(to), word(1n)], data: '0x' }) },
  {
    what: 'coin that the network itself tells of (EIP-7708)',
    log: log({ contract: `0x${'f'.repeat(39)}e` }),
  },
  { what: 'no amount', log: log({ data: '0x' }) },
  { what: 'more than an amount', log: log({ data: `${word(7n)}00` }) },
  { what: 'zero', log: log({ data: word(0n) }) },
  { what: 'to oneself', log: log({ topics: [topic, pad(to), pad(to)] }) },
  { what: 'a recipient that is no address', log: log({ topics: [topic, pad(from), word(2n ** 200n)] }) },
  { what: 'no topics at all', log: log({ topics: [] }) },
]
test.each(nothings)('nothing comes of a Transfer of $what', ({ log: empty }) => {
  expect(tokenMoves(receipt([empty]))).toEqual([])
})

test('nothing comes of a transaction that failed', () => {
  expect(tokenMoves(receipt([log()], false))).toEqual([])
})

test('a plain transfer call is read, any other call is not', () => {
  const input = encodeFunctionData({ abi: erc20Abi, functionName: 'transfer', args: [to, 7n] })
  expect(transferCall(input)).toEqual({ to, units: 7n })
  const others = [
    encodeFunctionData({ abi: erc20Abi, functionName: 'approve', args: [to, 7n] }),
    encodeFunctionData({ abi: erc20Abi, functionName: 'transferFrom', args: [from, to, 7n] }),
    `${input}00`,
    input.slice(0, -2),
    '0x',
  ]
  for (const other of others) expect(transferCall(other)).toBeNull()
})
