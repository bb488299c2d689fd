import { createHash } from 'node:crypto'
import type { Chain, Fault, TxStatus } from '../../chains/chain.ts'
import { assert } from '../../domain/assert.ts'
import { type AssetId, assets, nativeAsset } from '../../domain/catalog/assets.ts'
import { type ChainId, chainFacts } from '../../domain/catalog/networks.ts'
import { amountOf } from '../../domain/money/amount.ts'

/** A chain on paper: what addresses hold is the sum of the moves up to a block, and nothing else is known. */
export type PaperChain = Chain & {
  /** Money appears at (or, negative, leaves) an address in the block at `height`. */
  move(height: number, asset: AssetId, address: string, units: bigint): void
  /** `lookup` says that the transaction is in the block at `height`. */
  mined(txHash: string, height: number, cost: bigint, succeeded?: boolean, fault?: Fault): void
  setHead(height: number): void
  /** From `height` on the blocks are other ones. */
  fork(height: number): void
  /** Called at the start of every balance question, so that a test can let something happen meanwhile. */
  onBalance: () => void
  readonly asked: string[][]
}

export function paperChain(id: ChainId): PaperChain {
  const model = id === 'BTC' ? 'coins' : 'account'
  const native = nativeAsset(id).id
  const moves: { height: number; asset: AssetId; address: string; units: bigint }[] = []
  const statuses = new Map<string, TxStatus>()
  const asked: string[][] = []
  let headHeight = 100
  let forkHeight = Number.POSITIVE_INFINITY
  const hashAt = (height: number) => hash(`${id}:${height}:${height >= forkHeight ? 'fork' : 'first'}`)
  const never = (): never => assert(false, 'a paper chain is only looked at') as never

  const chain: PaperChain = {
    id,
    family: chainFacts[id].family,
    model,
    assets: assets.filter((asset) => asset.chain === id).map((asset) => asset.id),
    head: async () => ({ height: headHeight, hash: hashAt(headHeight) }),
    blockHash: async (height) => (height > headHeight ? null : hashAt(height)),
    lookup: async (txHash) => statuses.get(txHash) ?? { where: 'absent' },
    balance: async (asset, addresses, height) => {
      chain.onBalance()
      assert((height === undefined) === (model === 'coins'), 'only account chains are asked at a height')
      asked.push([...addresses])
      return moves
        .filter((one) => one.asset === asset && addresses.includes(one.address))
        .filter((one) => one.height <= (height ?? headHeight))
        .reduce((sum, { units }) => sum + units, 0n)
    },
    parseAddress: never,
    checkIdentity: never,
    readBlock: never,
    readMempool: never,
    estimatePayout: never,
    bid: never,
    draft: never,
    raise: never,
    broadcast: never,
    minedNonce: never,
    move: (height, asset, address, units) => {
      moves.push({ height, asset, address, units })
    },
    mined: (txHash, height, cost, succeeded = true, fault) => {
      const block = { height, hash: hashAt(height) }
      const told = { where: 'block', block, succeeded, cost: amountOf(native, cost) } as const
      statuses.set(txHash, { ...told, ...(fault && { fault }) })
    },
    setHead: (height) => {
      headHeight = height
    },
    fork: (height) => {
      forkHeight = height
    },
    onBalance: () => {},
    asked,
  }
  return chain
}

function hash(text: string): string {
  return createHash('sha256').update(text).digest('hex')
}
