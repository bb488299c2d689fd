import type { Chain } from '../../../src/chains/chain.ts'
import { type ChainId, chainIds } from '../../../src/domain/catalog/networks.ts'
import { type AccountRules, accountChain, accountRules } from './account_chain.ts'
import { AccountNode } from './account_node.ts'
import { coinsChain } from './coins_chain.ts'
import { CoinsNode } from './coins_node.ts'
import type { Asked } from './dated_chain.ts'
import { type DatedId, DatedNode } from './dated_node.ts'
import { datedIds, datedRules } from './dated_rules.ts'
import { directLine, type Line } from './line.ts'
import { stellarChain, xrpChain } from './tags_chains.ts'
import { eosChain, solanaChain, tronChain } from './timed_chains.ts'

/**
 * The nodes of all chains, in memory: one of each for however many processes look at them. `nowMs` stamps blocks.
 * Nothing happens by itself: whoever holds them pays, mines, replaces and reorganises.
 */
export type SimulatedNodes = {
  readonly BTC: CoinsNode
  readonly ETH: AccountNode
  readonly BNB: AccountNode
} & { readonly [Id in DatedId]: DatedNode }

export function openNodes(nowMs: () => number): SimulatedNodes {
  const dated = (id: DatedId) => new DatedNode(datedRules[id], nowMs)
  return {
    BTC: new CoinsNode(nowMs),
    ETH: new AccountNode('ETH', accountRules.ETH.tokens, nowMs),
    BNB: new AccountNode('BNB', accountRules.BNB.tokens, nowMs),
    XRP: dated('XRP'),
    XLM: dated('XLM'),
    TRX: dated('TRX'),
    EOS: dated('EOS'),
    SOL: dated('SOL'),
  }
}

/** How each node is reached: directly, through a port (thread_line.ts), or over something that fails. */
type AllLines = { readonly [Id in ChainId]: Line<SimulatedNodes[Id]> }
/** Some are not reached everywhere. */
export type NodeLines = Omit<AllLines, DatedId> & Partial<Pick<AllLines, DatedId>>

/** A line to each of the nodes, made by `line`. */
export function linesBy(line: <Id extends ChainId>(id: Id) => Line<SimulatedNodes[Id]>): AllLines {
  return Object.fromEntries(chainIds.map((id) => [id, line(id)])) as AllLines
}

export function directLines(nodes: SimulatedNodes): AllLines {
  return linesBy((id) => directLine(nodes[id]))
}

export const datedChains = {
  XRP: xrpChain,
  XLM: stellarChain,
  TRX: tronChain,
  EOS: eosChain,
  SOL: solanaChain,
} as const satisfies Record<DatedId, (asked: Asked) => Chain>

/** The chains of one process, as the engine takes them. */
export function connectSimulated(
  lines: NodeLines,
  reserveAddress: (chain: ChainId) => Promise<string>,
): ReadonlyMap<ChainId, Chain> {
  const account = (rules: AccountRules, line: Line<AccountNode>) =>
    [rules.id, accountChain(rules, line, () => reserveAddress(rules.id))] as const
  const dated = datedIds.flatMap((id) => {
    const ask = lines[id]
    if (ask === undefined) return []
    return [[id, datedChains[id]({ id, ask, reserveAddress: () => reserveAddress(id) })] as const]
  })
  return new Map<ChainId, Chain>([
    ['BTC', coinsChain(lines.BTC)],
    account(accountRules.ETH, lines.ETH),
    account(accountRules.BNB, lines.BNB),
    ...dated,
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
