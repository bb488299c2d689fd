import { numberToHex } from 'viem'
import type { TestSandbox } from '../../harness/test_sandbox.ts'

/** Chains whose newest blocks may leave them before the service's eyes. */
export const forkingChains = ['BTC', 'ETH', 'BNB', 'TRX'] as const
export type ForkingChain = (typeof forkingChains)[number]

/** What a chain has said about transactions, kept by the test itself: it asks the node, never the service. */
export type ChainDiary = {
  /** Drops the blocks that left the chain and reads the ones that came. */
  read(): Promise<void>
  /** 1: in the newest block; 0: in no block. */
  depthOf(txHash: string): number
  /** The deepest that it was at any moment at which the diary was read. */
  deepestOf(txHash: string): number
  /** What is in the newest `depth` blocks. */
  above(depth: number): readonly string[]
}

type Block = { readonly height: number; readonly hash: string; readonly txHashes: readonly string[] }

export async function openDiary(sandbox: TestSandbox, chain: ForkingChain): Promise<ChainDiary> {
  const node = nodeOf(sandbox, chain)
  const blocks: Block[] = []
  const heights = new Map<string, number>()
  const deepest = new Map<string, number>()
  const firstHeight = await node.height()
  const depthOf = (txHash: string) => {
    const height = heights.get(txHash)
    return height === undefined ? 0 : firstHeight + blocks.length - height
  }
  const read = async () => {
    for (let last = blocks.at(-1); last !== undefined; last = blocks.at(-1)) {
      if ((await node.blockHash(last.height)) === last.hash) break
      for (const txHash of last.txHashes) heights.delete(txHash)
      blocks.pop()
    }
    const height = await node.height()
    while (firstHeight + blocks.length < height + 1) {
      const block = await node.block(firstHeight + blocks.length)
      blocks.push(block)
      for (const txHash of block.txHashes) heights.set(txHash, block.height)
    }
    for (const txHash of heights.keys()) {
      deepest.set(txHash, Math.max(deepest.get(txHash) ?? 0, depthOf(txHash)))
    }
  }
  return {
    read,
    depthOf,
    deepestOf: (txHash) => deepest.get(txHash) ?? 0,
    above: (depth) => blocks.slice(-depth).flatMap(({ txHashes }) => txHashes),
  }
}

type Node = {
  height(): Promise<number>
  blockHash(height: number): Promise<string | null>
  block(height: number): Promise<Block>
}

function nodeOf(sandbox: TestSandbox, chain: ForkingChain): Node {
  if (chain === 'BTC') return bitcoinNode(sandbox)
  return chain === 'TRX' ? tronNode(sandbox) : evmNode(sandbox, chain)
}

function bitcoinNode({ devnet }: TestSandbox): Node {
  const { rpc } = devnet.bitcoin
  const blockHash = (height: number) => rpc<string>('getblockhash', [height]).catch(() => null)
  return {
    height: () => rpc<number>('getblockcount'),
    blockHash,
    block: async (height) => {
      const { hash, tx } = await rpc<{ hash: string; tx: string[] }>('getblock', [await blockHash(height), 1])
      return { height, hash, txHashes: tx }
    },
  }
}

/** A transaction that failed has moved nothing: to the diary it is in no block. */
function evmNode({ devnet }: TestSandbox, chain: 'ETH' | 'BNB'): Node {
  const { client } = devnet.evm(chain)
  const ask = <Answer>(method: string, params: readonly unknown[]) =>
    client.request({ method, params } as never) as Promise<Answer>
  const blockHash = async (height: number) => {
    const block = await ask<{ hash: string } | null>('eth_getBlockByNumber', [numberToHex(height), false])
    return block?.hash ?? null
  }
  return {
    height: async () => Number(await client.getBlockNumber()),
    blockHash,
    block: async (height) => {
      type Receipt = { transactionHash: string; status: string }
      const receipts = await ask<Receipt[]>('eth_getBlockReceipts', [numberToHex(height)])
      const txHashes = receipts
        .filter(({ status }) => status === '0x1')
        .map(({ transactionHash }) => transactionHash)
      return { height, hash: (await blockHash(height)) ?? 'gone', txHashes }
    },
  }
}

type TronBlock = {
  readonly blockID?: string
  readonly block_header: { readonly raw_data: { readonly number: number } }
  readonly transactions?: readonly { readonly txID: string; readonly ret: { contractRet: string }[] }[]
}

/** Here too what failed is in no block. */
function tronNode({ devnet }: TestSandbox): Node {
  const ask = async (query: string) => {
    const response = await fetch(`${devnet.networks.TRX?.fullNodeUrl}/wallet/getblock?${query}`)
    return (await response.json()) as TronBlock
  }
  return {
    height: async () => (await ask('detail=false')).block_header.raw_data.number,
    blockHash: async (height) => (await ask(`detail=false&id_or_num=${height}`)).blockID ?? null,
    block: async (height) => {
      const { blockID: hash = 'gone', transactions = [] } = await ask(`detail=true&id_or_num=${height}`)
      const succeeded = transactions.filter(({ ret }) => ret[0]?.contractRet === 'SUCCESS')
      return { height, hash, txHashes: succeeded.map(({ txID }) => txID) }
    },
  }
}
