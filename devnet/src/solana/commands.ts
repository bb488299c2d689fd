import { accountAnswer, blockAnswer, numberOf, statusAnswer, transactionAnswer } from './answers.ts'
import {
  CommandError,
  contextOf,
  inContext,
  numberIn,
  optionsIn,
  readable,
  type SolanaNode,
  textIn,
  textsIn,
  viewOf,
} from './command.ts'
import { decodeTransaction } from './decode_transaction.ts'
import { readAccount, readReference } from './entries.ts'
import { rentExemptMinimum } from './programs.ts'
import { heightOf, slotOf } from './rules.ts'
import { BLOCKHASH_BLOCKS } from './run_transaction.ts'
import { sendTransaction, simulateTransaction } from './submit.ts'
import { readHolding, readMint, uiAmount } from './token_accounts.ts'

type Command = (node: SolanaNode, params: readonly unknown[]) => unknown

/** https://solana.com/docs/rpc/http */
export const commands: Readonly<Record<string, Command>> = {
  getHealth: () => 'ok',
  getVersion: () => ({ 'feature-set': 0, 'solana-core': '4.1.2' }),
  getGenesisHash: ({ genesisHash, troubles }) =>
    troubles.now.isStranger ? genesisHash.split('').reverse().join('') : genesisHash,
  getSlot: (node, [options]) => slotOf(viewOf(node, optionsIn(options)).head.height),
  getBlockHeight: (node, [options]) => viewOf(node, optionsIn(options)).head.height,
  getEpochInfo: (node, [options]) => {
    const { height } = viewOf(node, optionsIn(options)).head
    const [absoluteSlot, slotsInEpoch] = [slotOf(height), 432_000]
    const [epoch, slotIndex] = [Math.floor(absoluteSlot / slotsInEpoch), absoluteSlot % slotsInEpoch]
    return { absoluteSlot, blockHeight: height, epoch, slotIndex, slotsInEpoch, transactionCount: null }
  },
  getFirstAvailableBlock: () => 0,
  minimumLedgerSlot: () => 0,
  getLatestBlockhash: (node, [options]) => {
    const view = viewOf(node, optionsIn(options))
    const { height, seal } = view.head
    return inContext(view, { blockhash: seal.hash, lastValidBlockHeight: height + BLOCKHASH_BLOCKS - 1 })
  },
  isBlockhashValid: (node, [blockhash, options]) => {
    const view = viewOf(node, optionsIn(options))
    const height = readReference(view.state, textIn(blockhash, 'blockhash'))
    return inContext(view, height !== undefined && view.head.height - height < BLOCKHASH_BLOCKS)
  },
  getBlock: (node, [slot, given]) => {
    const options = optionsIn(given)
    const block = finalBlock(node, numberIn(slot, 'slot'))
    return blockAnswer(block, detailsIn(options.transactionDetails), options.rewards !== false)
  },
  getBlockTime: (node, [slot]) => Math.floor(finalBlock(node, numberIn(slot, 'slot')).timeMs / 1000),
  getBlocks: (node, [from, to]) => blocksFrom(node, from, typeof to === 'number' ? to : Infinity, 500_000),
  getBlocksWithLimit: (node, [from, limit]) => blocksFrom(node, from, Infinity, numberIn(limit, 'limit')),
  getSignatureStatuses: (node, [signatures]) => {
    const view = node.told()
    const final = viewOf(node, {}).head.height
    const statuses = textsIn(signatures, 'signatures', 256).map((signature) => {
      const found = view.find(signature)
      return found === undefined ? null : statusAnswer(found, found.block.height <= final)
    })
    return inContext(view, statuses)
  },
  getTransaction: (node, [signature, options]) => {
    const found = viewOf(node, optionsIn(options)).find(textIn(signature, 'signature'))
    if (found === undefined) return null
    const { block } = found
    const place = { slot: slotOf(block.height), blockTime: Math.floor(block.timeMs / 1000) }
    return { ...transactionAnswer(found, 'full'), ...place }
  },
  getBalance: (node, [address, options]) => {
    const view = viewOf(node, optionsIn(options))
    return inContext(view, numberOf(readAccount(view.state, textIn(address, 'address'))?.lamports ?? 0n))
  },
  getAccountInfo: (node, [address, options]) => {
    const view = viewOf(node, optionsIn(options))
    return inContext(view, accountAnswer(readAccount(view.state, textIn(address, 'address'))))
  },
  getMultipleAccounts: (node, [addresses, options]) => {
    const view = viewOf(node, optionsIn(options))
    const found = textsIn(addresses, 'addresses', 100).map((each) => readAccount(view.state, each))
    return inContext(view, found.map(accountAnswer))
  },
  getTokenAccountBalance: (node, [address, options]) => {
    const view = viewOf(node, optionsIn(options))
    const holding = readHolding(view.state, textIn(address, 'address'))
    const mint = holding && readMint(view.state, holding.mint)
    if (holding === undefined || mint === undefined)
      throw new CommandError(-32602, 'Invalid param: could not find account')
    return inContext(view, uiAmount(holding.units, mint.decimals))
  },
  getTokenSupply: (node, [address, options]) => {
    const view = viewOf(node, optionsIn(options))
    const mint = readMint(view.state, textIn(address, 'address'))
    if (mint === undefined) throw new CommandError(-32602, 'Invalid param: not a Token mint')
    return inContext(view, uiAmount(mint.supply, mint.decimals))
  },
  getMinimumBalanceForRentExemption: (_node, [bytes]) =>
    numberOf(rentExemptMinimum(numberIn(bytes, 'bytes'))),
  getRecentPrioritizationFees: (node) => [{ slot: contextOf(node.told()).slot, prioritizationFee: 0 }],
  getFeeForMessage: (node, [message, options]) => {
    const view = viewOf(node, optionsIn(options))
    const bytes = Buffer.from(textIn(message, 'message'), 'base64')
    const signers = bytes[(bytes[0] ?? 0) & 0x80 ? 1 : 0] ?? 0
    const wire = Buffer.concat([Buffer.from([signers]), Buffer.alloc(64 * signers), bytes])
    return inContext(view, numberOf(readable(() => decodeTransaction(wire.toString('base64'))).fee))
  },
  simulateTransaction,
  sendTransaction,
}

function detailsIn(value: unknown) {
  const details = ['full', 'accounts', 'signatures', 'none'] as const
  return details.find((each) => each === value) ?? 'full'
}

/** Blocks are told when they are final: a node tells confirmed ones as well, and nobody needs them here. */
function finalBlock(node: SolanaNode, slot: number) {
  const view = viewOf(node, {})
  if (slot > slotOf(view.head.height)) throw new CommandError(-32004, `Block not available for slot ${slot}`)
  const block = view.block(heightOf(slot) ?? -1)
  if (block === undefined)
    throw new CommandError(
      -32007,
      `Slot ${slot} was skipped, or missing due to ledger jump to recent snapshot`,
    )
  return block
}

function blocksFrom(node: SolanaNode, from: unknown, to: number, limit: number): readonly number[] {
  const { height } = viewOf(node, {}).head
  const first = numberIn(from, 'slot')
  const slots: number[] = []
  for (let slot = first; slot <= Math.min(to, slotOf(height)) && slots.length < limit; slot++)
    if (heightOf(slot) !== undefined) slots.push(slot)
  return slots
}
