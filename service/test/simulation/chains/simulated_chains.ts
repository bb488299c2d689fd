import type { Chain } from '../../../src/chains/chain.ts'
import { assert } from '../../../src/domain/assert.ts'
import type { ChainId } from '../../../src/domain/catalog/networks.ts'
import { type AccountRules, accountChain, accountRules } from './account_chain.ts'
import { AccountNode } from './account_node.ts'
import { coinsChain } from './coins_chain.ts'
import { CoinsNode } from './coins_node.ts'
import { datedRules, tagsChain, timedChain } from './dated_chains.ts'
import { DatedNode } from './dated_node.ts'
import { directLine, type Line } from './line.ts'

/**
 * The nodes of all chains, in memory: one of each for however many processes look at them. `nowMs` stamps blocks.
 * Nothing happens by itself: whoever holds them pays, mines, replaces and reorganises.
 */
export type SimulatedNodes = {
  readonly BTC: CoinsNode
  readonly ETH: AccountNode
  readonly BNB: AccountNode
  readonly XRP: DatedNode
  readonly TRX: DatedNode
}

export type SimulatedChainId = keyof SimulatedNodes

/** The rest of the catalogue has no node in memory, and nothing that is simulated is on it. */
export function simulatedChain(chain: ChainId): SimulatedChainId {
  assert(chain !== 'XLM' && chain !== 'EOS' && chain !== 'SOL', `${chain} is not simulated`)
  return chain
}

export function openNodes(nowMs: () => number): SimulatedNodes {
  return {
    BTC: new CoinsNode(nowMs),
    ETH: new AccountNode('ETH', accountRules.ETH.tokens, nowMs),
    BNB: new AccountNode('BNB', accountRules.BNB.tokens, nowMs),
    XRP: new DatedNode(datedRules.XRP, nowMs),
    TRX: new DatedNode(datedRules.TRX, nowMs),
  }
}

/** How each node is reached: directly, through a port (thread_line.ts), or over something that fails. */
type AllLines = { readonly [Id in SimulatedChainId]: Line<SimulatedNodes[Id]> }
/** Some are not reached everywhere. */
export type NodeLines = Omit<AllLines, 'XRP' | 'TRX'> & Partial<Pick<AllLines, 'XRP' | 'TRX'>>

export function directLines(nodes: SimulatedNodes): AllLines {
  return {
    BTC: directLine(nodes.BTC),
    ETH: directLine(nodes.ETH),
    BNB: directLine(nodes.BNB),
    XRP: directLine(nodes.XRP),
    TRX: directLine(nodes.TRX),
  }
}

/** The chains of one process, as the engine takes them. */
export function connectSimulated(
  lines: NodeLines,
  reserveAddress: (chain: ChainId) => Promise<string>,
): ReadonlyMap<ChainId, Chain> {
  const account = (rules: AccountRules, line: Line<AccountNode>) =>
    [rules.id, accountChain(rules, line, () => reserveAddress(rules.id))] as const
  return new Map<ChainId, Chain>([
    ['BTC', coinsChain(lines.BTC)],
    account(accountRules.ETH, lines.ETH),
    account(accountRules.BNB, lines.BNB),
    ...(lines.XRP === undefined ? [] : [['XRP', tagsChain(lines.XRP, () => reserveAddress('XRP'))] as const]),
    ...(lines.TRX === undefined
      ? []
      : [['TRX', timedChain(lines.TRX, () => reserveAddress('TRX'))] as const]),
  ])
}

/** What the world of a process says of the simulated chains. */
export const simulatedTokens = {
  tokens: Object.fromEntries(
    Object.values(accountRules).flatMap(({ tokens }) =>
      Object.entries(tokens).map(([contract, asset]) => [asset, contract]),
    ),
  ),
  evmChainIds: { ETH: accountRules.ETH.evmChainId, BNB: accountRules.BNB.evmChainId },
}
