import { expect, test } from 'vitest'
import type { Block } from '../../src/chains/chain.ts'
import { chainFacts } from '../../src/domain/catalog/networks.ts'
import { pathsOf, receivable, sumOf } from './receipts.ts'

/**
 * What: which amounts an order may have received, by the blocks that there ever were.
 * How: a few blocks made by hand, with payments of amounts that tell them apart.
 */
const UNTIL = { untilMs: 1_000, isChosen: false, isReopened: false }
const { confirmations } = chainFacts.BTC

/** Each is above the one before it, and brings these satoshi, in one transaction for each list. */
function chainOf(start: Block | null, branch: string, brought: readonly (readonly bigint[][])[]): Block[] {
  const blocks: Block[] = []
  for (const [index, txs] of brought.entries()) {
    const below = blocks.at(-1) ?? start
    const height = (below?.height ?? 0) + 1
    const transfers = txs.flatMap((outputs, tx) =>
      outputs.map((units, output) => {
        const txHash = `${branch}${index}${tx}`
        return { id: `${txHash}:${output}`, txHash, to: 'the order', asset: 'BTC:BTC' as const, units }
      }),
    )
    const hash = `${branch} ${height}`
    blocks.push({ height, hash, parentHash: below?.hash ?? 'nothing', timeMs: height, transfers })
  }
  return blocks
}

const nothing: bigint[][] = []
const above = Array.from({ length: confirmations - 1 }, () => nothing)

function sumsOf(history: readonly Block[], course: Partial<typeof UNTIL> = {}): bigint[] {
  const paths = pathsOf(history, { asset: 'BTC:BTC', address: 'the order' })
  return [...receivable(paths, 'BTC:BTC', { ...UNTIL, ...course })].sort()
}

test('both outputs of a transaction count', () => {
  expect(sumsOf(chainOf(null, 'a', [[[10_000n, 50_000n]], ...above]))).toEqual([60_000n])
})

test('nothing counts before it is deep, nor from another address or asset, nor dust', () => {
  expect(sumsOf(chainOf(null, 'a', [[[10_000n]], ...above.slice(1)]))).toEqual([])
  expect(sumsOf(chainOf(null, 'a', [[[999n]], ...above]))).toEqual([])
  const [first, ...others] = chainOf(null, 'a', [[[10_000n]], ...above]) as [Block, ...Block[]]
  const foreign = first.transfers.map((transfer) => ({ ...transfer, to: 'somebody' }))
  expect(sumsOf([{ ...first, transfers: foreign }, ...others])).toEqual([])
})

test('an order waits for what lies in a block, unless its client does not', () => {
  const history = chainOf(null, 'a', [[[10_000n]], [[50_000n]], ...above])
  expect(sumsOf(history)).toEqual([60_000n])
  expect(sumsOf(history, { isChosen: true })).toEqual([10_000n, 60_000n])
})

test('what was settled before a block was made had nothing of it', () => {
  const history = chainOf(null, 'a', [[[10_000n]], ...above, [[50_000n]], ...above])
  expect(sumsOf(history, { untilMs: confirmations })).toEqual([10_000n])
})

test('a branch that has lost may have been gone by, and never two at once', () => {
  const [root] = chainOf(null, 'root', [nothing]) as [Block]
  const lost = chainOf(root, 'lost', [[[10_000n]], ...above])
  const stands = chainOf(root, 'stands', [[[50_000n]], ...above, nothing])
  expect(sumsOf([root, ...lost, ...stands])).toEqual([10_000n, 50_000n])
})

test('where an order was open again a whole transaction may be missing', () => {
  const history = chainOf(null, 'a', [[[10_000n, 20_000n]], [[50_000n]], ...above])
  expect(sumsOf(history, { isReopened: true })).toEqual([30_000n, 50_000n, 80_000n])
  const paths = pathsOf(history, { asset: 'BTC:BTC', address: 'the order' })
  expect(sumOf(paths.at(-1)?.arrivals ?? [])).toBe(80_000n)
})
