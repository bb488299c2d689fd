import type { AssetId } from '../../domain/catalog/assets.ts'
import { fromChainUnits } from '../../domain/money/amount.ts'
import type { Block, FindOurs, Transfer } from '../chain.ts'
import { type Arrival, type BlockMoves, believeCoin, findGaps, pairOf } from './believe_hits.ts'
import {
  checksummed,
  decodeBlockTxs,
  decodeHeader,
  decodeReceipt,
  decodeRewards,
  type EvmHeader,
  type EvmReceipt,
  type EvmRewards,
  type EvmTx,
  list,
  NOBODY,
} from './decode.ts'
import { type JsonRpc, NodeNonsense, NodeRefusal } from './json_rpc.ts'
import { tokenMoves } from './token_moves.ts'
import type { TraceBlock } from './traces.ts'
import { type ValueMove, valueMoves } from './value_moves.ts'

export type BlockReader = {
  readonly rpc: JsonRpc
  readonly trace: TraceBlock
  readonly native: AssetId
  /** Listed assets by their contract in lowercase. */
  readonly listed: ReadonlyMap<string, AssetId>
}

/**
 * Asks for everything after the header by the block's hash, so that a reorg between two requests can only make
 * the reading fail, never mix two blocks. Cost: three requests for a block, and one more for every fifty of our addresses that coin or
 * a listed token came to (`findGaps`).
 */
export async function readBlock(
  reader: BlockReader,
  height: number,
  findOurs: FindOurs,
): Promise<Block | null> {
  try {
    return await readWhole(reader, height, findOurs)
  } catch (error) {
    if (!(error instanceof NodeRefusal) || !STATE_GONE.test(error.message)) throw error
    throw new Error(
      `block ${height} is older than the state this node keeps: catching up takes an archive node`,
      { cause: error },
    )
  }
}

export async function blockHash(rpc: JsonRpc, height: number): Promise<string | null> {
  const answer = await rpc.call('eth_getBlockByNumber', [`0x${height.toString(16)}`, false])
  return answer === null ? null : checkHeight(decodeHeader(answer), height).hash
}

function checkHeight(header: EvmHeader, height: number): EvmHeader {
  if (header.height !== height) throw new NodeNonsense(`asked for block ${height}, got ${header.height}`)
  return header
}

/** Geth and bsc keep the state of 128 blocks unless told otherwise; tracing and balances take it. */
const STATE_GONE =
  /missing trie node|historical state|state (?:is |at block )?.{0,80}(?:not|un)available|state .{0,40}pruned|BlockOutOfRange/i

async function readWhole(reader: BlockReader, height: number, findOurs: FindOurs): Promise<Block | null> {
  const answer = await reader.rpc.call('eth_getBlockByNumber', [`0x${height.toString(16)}`, true])
  if (answer === null) return null
  const header = checkHeight(decodeHeader(answer), height)
  const moves = await movesIn(reader, header, decodeBlockTxs(answer), decodeRewards(answer))
  const recipients = [...new Set(moves.arrivals.map(({ to }) => to))]
  const ours = recipients.length === 0 ? new Set<string>() : await findOurs(recipients)
  const hits = moves.arrivals.filter(({ to }) => ours.has(to))
  const gaps = await findGaps(reader.rpc, reader.listed, header, moves, hits)
  const { hash, parentHash, timeMs } = header
  // Of a block that has left the chain meanwhile some nodes tell what holds on the new branch: that is no verdict.
  if (gaps.size > 0 && (await blockHash(reader.rpc, height)) !== hash) throw changed(height)
  return {
    height,
    hash,
    parentHash,
    timeMs,
    transfers: believeCoin(height, hits, moves, gaps).map((hit) =>
      transferOf(reader, hit, hit.contract !== null && gaps.has(pairOf(hit))),
    ),
  }
}

async function movesIn(
  reader: BlockReader,
  header: EvmHeader,
  txs: readonly EvmTx[],
  rewards: EvmRewards,
): Promise<BlockMoves> {
  if (txs.length === 0) return { arrivals: rewardsIn(header, [], rewards), feesWei: new Map() }
  const receipts = await receiptsOf(reader.rpc, header, txs)
  const moves = await nativeMoves(reader.trace, header, txs, receipts)
  const sent = receipts.flatMap((receipt, index) => {
    const { txHash } = receipt
    const coins = (moves[index] ?? []).map(({ path, from, to, wei, selfdestructOf }) => ({
      id: `${txHash}:call:${path}`,
      txHash,
      from,
      to: checksummed(to),
      contract: null,
      units: wei,
      ...(selfdestructOf !== undefined && { selfdestructOf }),
    }))
    const tokens = tokenMoves(receipt).map(({ ordinal, from, to, contract, units }) => ({
      id: `${txHash}:log:${ordinal}`,
      txHash,
      from,
      to: checksummed(to),
      contract,
      units,
    }))
    return [...coins, ...tokens]
  })
  return { arrivals: [...sent, ...rewardsIn(header, receipts, rewards)], feesWei: feesIn(txs, receipts) }
}

function feesIn(txs: readonly EvmTx[], receipts: readonly EvmReceipt[]): ReadonlyMap<string, bigint> {
  const feesWei = new Map<string, bigint>()
  for (const [index, { gasUsed, effectiveGasPriceWei }] of receipts.entries()) {
    const sender = txs[index]?.from ?? NOBODY
    feesWei.set(sender, (feesWei.get(sender) ?? 0n) + gasUsed * effectiveGasPriceWei)
  }
  return feesWei
}

/**
 * Anybody with a validator may have it pay us, and what no transaction sent is held all the same. The base fee of the gas
 * is burnt; a name of the tips is worth as much as their block.
 */
function rewardsIn(
  { hash, baseFeePerGasWei }: EvmHeader,
  receipts: readonly EvmReceipt[],
  { feeRecipient, withdrawals }: EvmRewards,
): readonly Arrival[] {
  const baseWei = baseFeePerGasWei ?? 0n
  const tipsWei = receipts.reduce(
    (sum, { gasUsed, effectiveGasPriceWei }) => sum + gasUsed * (effectiveGasPriceWei - baseWei),
    0n,
  )
  const tips = feeRecipient === null ? [] : [{ id: `${hash}:tips`, to: feeRecipient, wei: tipsWei }]
  const withdrawn = withdrawals.map(({ index, to, wei }) => ({ id: `withdrawal:${index}`, to, wei }))
  return [...tips, ...withdrawn]
    .filter(({ wei }) => wei > 0n)
    .map(({ id, to, wei }) => ({
      id,
      txHash: hash,
      from: NOBODY,
      to: checksummed(to),
      contract: null,
      units: wei,
      isOfBlock: true,
    }))
}

function changed(height: number): NodeNonsense {
  return new NodeNonsense(`block ${height} changed while it was being read: read it again`)
}

async function receiptsOf(
  rpc: JsonRpc,
  header: EvmHeader,
  txs: readonly EvmTx[],
): Promise<readonly EvmReceipt[]> {
  const answer = await rpc.call('eth_getBlockReceipts', [header.hash])
  if (answer === null) throw changed(header.height)
  const receipts = list(answer, 'receipts').map(decodeReceipt)
  const areAllThere =
    receipts.length === txs.length &&
    receipts.every(({ blockHash, txHash }, index) => blockHash === header.hash && txHash === txs[index]?.hash)
  if (!areAllThere) throw new NodeNonsense(`block ${header.height}: the receipts are not this block's`)
  return receipts
}

/** What a transfer without data costs when its recipient runs no code, and so can make no inner call. */
const PLAIN_TRANSFER_GAS = 21_000n

/** For each transaction, the native coin it really moved. The block is traced only if some code ran in it. */
async function nativeMoves(
  trace: TraceBlock,
  header: EvmHeader,
  txs: readonly EvmTx[],
  receipts: readonly EvmReceipt[],
): Promise<readonly (readonly ValueMove[])[]> {
  const isPlain = (tx: EvmTx, receipt: EvmReceipt | undefined) =>
    tx.to !== null && tx.input === '0x' && receipt?.gasUsed === PLAIN_TRANSFER_GAS
  const arePlain = txs.every((tx, index) => isPlain(tx, receipts[index]))
  const trees = arePlain ? txs.map(plainTree) : await trace(header, txs)
  return txs.map((tx, index) => {
    const tree = trees[index]
    if (receipts[index]?.isSuccess !== true) return []
    const isOfTx =
      tree !== undefined && !tree.isFailed && tree.from === tx.from && tree.wei === tx.wei && tree.to !== null
    if (!isOfTx)
      throw new NodeNonsense(`block ${header.height}: the trace of ${tx.hash} contradicts its receipt`)
    return valueMoves(tree)
  })
}

function plainTree({ from, to, wei }: EvmTx) {
  return { kind: 'CALL', from, to, wei, isFailed: false, calls: [] }
}

function transferOf(
  { native, listed }: BlockReader,
  { id, txHash, to, contract, units, isOfBlock }: Arrival,
  isShort: boolean,
): Transfer {
  const assetId = contract === null ? native : listed.get(contract)
  if (assetId === undefined || isShort) {
    return { id, txHash, to, asset: { unlisted: checksummed(contract ?? '') }, units }
  }
  const transfer = { id, txHash, to, asset: assetId, units: fromChainUnits(assetId, units).units }
  return isOfBlock ? { ...transfer, isOfBlock } : transfer
}
