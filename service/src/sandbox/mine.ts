import type { Devnet } from '@cambist/devnet'
import { readHead } from '../db/chain_heads.ts'
import { type ChainId, chainFacts } from '../domain/catalog/networks.ts'
import type { DeskOutcome } from '../engine/desks/desk.ts'
import type { World } from '../engine/world.ts'

export type Miner = (chain: ChainId, blocks: number) => Promise<DeskOutcome<Record<string, never>>>

/** A local EVM node remembers the state of its last 40 blocks, and to believe a deposit the watcher asks for it. */
const AHEAD_OF_STATE_MAX = 20
/** Others remember everything; but a reorganisation deeper than 200 blocks is not followed. */
const AHEAD_MAX = 150
const REST_MS = 40
const PATIENCE_MS = 30_000

/**
 * Mines no faster than the service follows: a chain that has run away from its watcher cannot be read any more, in the
 * sandbox as elsewhere (docs/operating/nodes.md). One request after the other, because together they run as well.
 */
export function steadyMiner(world: World, devnet: Devnet): Miner {
  const last = new Map<ChainId, Promise<unknown>>()
  return (chain, blocks) => {
    const mined = (last.get(chain) ?? Promise.resolve()).then(() => mine(world, devnet, chain, blocks))
    last.set(
      chain,
      mined.catch(() => {}),
    )
    return mined
  }
}

async function mine(world: World, devnet: Devnet, chain: ChainId, blocks: number) {
  const aheadMax = chainFacts[chain].family === 'evm' ? AHEAD_OF_STATE_MAX : AHEAD_MAX
  let left = blocks
  let untilMs = world.clock.wallMs() + PATIENCE_MS
  while (left > 0) {
    const step = Math.min(left, aheadMax - (await aheadOf(world, chain)))
    if (step > 0) {
      await devnet.mine(chain, step)
      left -= step
      untilMs = world.clock.wallMs() + PATIENCE_MS
    } else if (world.clock.wallMs() > untilMs) {
      const message = `the service does not follow ${chain}: ${left} of ${blocks} blocks were not mined`
      return { ok: false, rejection: { code: 'MAINTENANCE', message } } as const
    } else {
      await world.clock.sleep(REST_MS)
    }
  }
  return { ok: true, value: {} } as const
}

/** So many until what waits is told: of EOS only what is irreversible is. */
export function blocksToBeTold({ networks }: Devnet, chain: ChainId): number {
  return chain === 'EOS' ? 1 + (networks.EOS?.reversibleBlocks ?? 0) : 1
}

/** How many blocks the node has that the watcher has not looked at. 0 where a network is off, which the devnet itself says then. */
async function aheadOf(world: World, chain: ChainId): Promise<number> {
  const looked = await readHead(world.db, chain)
  const node = await world.chains.get(chain)?.head()
  return looked === null || node === undefined ? 0 : node.height - looked.block.height
}
