import { expect, test } from 'vitest'
import type { Block } from '../../src/chains/chain.ts'
import { assert } from '../../src/domain/assert.ts'
import { chainFacts } from '../../src/domain/catalog/networks.ts'
import { payingSigner } from './chains/paying_signer.ts'
import { connectSimulated, directLines, openNodes } from './chains/simulated_chains.ts'
import { type Course, pathsOf, receivable } from './receipts.ts'

/**
 * What: which amounts an order may have received, by the blocks that there ever were.
 * How: a few blocks made by hand, with payments of amounts that tell them apart.
 */
const { confirmations, confirmationsLarge } = chainFacts.BTC
const ASKED = 100_000n
const UNTIL: Course = { untilMs: 1_000, isChosen: false, lookedHeight: 0, requiredDepth: confirmations }

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

function sumsOf(history: readonly Block[], course: Partial<Course> = {}): bigint[] {
  const paths = pathsOf(history, { asset: 'BTC:BTC', address: 'the order', asked: ASKED })
  return [...receivable(paths, { ...UNTIL, ...course })].sort()
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

test('dust counts that makes of too little what was asked, whichever comes first, and one alone', () => {
  const rest = 999n
  const short = ASKED - rest
  expect(sumsOf(chainOf(null, 'a', [[[short]], [[rest]], ...above]))).toEqual([ASKED])
  expect(sumsOf(chainOf(null, 'a', [[[rest]], [[short]], ...above]))).toEqual([ASKED])
  expect(sumsOf(chainOf(null, 'a', [[[short]], [[rest], [rest]], ...above]))).toEqual([ASKED])
  expect(sumsOf(chainOf(null, 'a', [[[short]], [[rest - 1n]], [[1n]], ...above]))).toEqual([short])
  expect(sumsOf(chainOf(null, 'a', [[[ASKED]], [[rest]], ...above]))).toEqual([ASKED])
  expect(sumsOf(chainOf(null, 'a', [[[short]], [[rest]], [[10_000n]], ...above]))).toEqual([short + 10_000n])
})

test('an order waits for what lies in a block, unless its client does not', () => {
  const history = chainOf(null, 'a', [[[10_000n]], [[50_000n]], ...above])
  expect(sumsOf(history)).toEqual([60_000n])
  expect(sumsOf(history, { isChosen: true })).toEqual([10_000n, 60_000n])
})

test('who chooses is given all that was deep when the chain was looked at before', () => {
  const history = chainOf(null, 'a', [[[10_000n]], [[50_000n]], ...above])
  const lookedHeight = (history.at(-1) as Block).height
  expect(sumsOf(history, { isChosen: true, lookedHeight })).toEqual([60_000n])
  expect(sumsOf(history, { isChosen: true, lookedHeight: lookedHeight - 1 })).toEqual([10_000n, 60_000n])
})

test('an order of a large amount is given nothing before it is deep enough for that', () => {
  const history = chainOf(null, 'a', [[[10_000n]], [[50_000n]], ...above])
  const large = { isChosen: true, requiredDepth: confirmationsLarge }
  expect(sumsOf(history, large)).toEqual([])
  const more = chainOf(history.at(-1) as Block, 'b', [...above, nothing])
  expect(sumsOf([...history, ...more.slice(0, -1)], large)).toEqual([10_000n])
  expect(sumsOf([...history, ...more], large)).toEqual([10_000n, 60_000n])
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

test('what the house pays for a sweep to an address is nothing that came for its order', async () => {
  const nodes = openNodes(() => 1_800_000_000_000)
  const keys = payingSigner()
  const [reserve, address] = [
    await keys.address('evm', 'reserve', 0),
    await keys.address('evm', 'deposit', 0),
  ]
  nodes.ETH.pay([{ to: reserve, asset: 'ETH:ETH', units: 10n ** 18n }])
  nodes.ETH.mine(1)
  const chain = connectSimulated(directLines(nodes), async () => reserve).get('ETH')
  assert(chain !== undefined, 'it is simulated')
  const gas = { payoutId: 'sweep-ETH-0-1:1', kind: 'sweep', asset: 'ETH:ETH', units: 10n ** 15n } as const
  const bid = await chain.bid({ ...gas, address, tag: null })
  assert(bid.ok, 'the reserve has enough')
  const from = { purpose: 'reserve', index: 0 } as const
  const draft = chain.draft({ ...gas, address, tag: null }, bid.value, { model: 'account', from, nonce: 0 })
  assert(draft.ok, 'and so it is drafted')
  await nodes.ETH.send((await keys.pay(draft.value)).bytes)
  nodes.ETH.pay([{ to: address, asset: 'ETH:ETH', units: 10n ** 17n }])
  nodes.ETH.mine(1)
  const last = pathsOf(nodes.ETH.history(), { asset: 'ETH:ETH', address, asked: 10n ** 17n }).at(-1)
  expect(last?.arrivals.map(({ units }) => units)).toEqual([10n ** 17n])
})
