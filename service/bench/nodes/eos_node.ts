import { chanceFrom } from '../../test/harness/chance.ts'
import { type EosBlock, makeEosBlock } from '../blocks/eos_block.ts'
import { EOS_CHAIN_ID } from '../blocks/own_addresses.ts'
import type { OpenBlockNode } from './block_node.ts'

/** Since Savanna what is irreversible is about a second behind: https://docs.antelope.io/spring */
const IRREVERSIBLE_BEHIND = 2

/** What a nodeos with traces answers: https://docs.antelope.io/docs/latest/api-reference. `head` is what is irreversible. */
export const eosNode: OpenBlockNode = (last) => {
  const chance = chanceFrom(6)
  const blocks: EosBlock[] = []
  for (let height = 0; height <= last + IRREVERSIBLE_BEHIND; height += 1) {
    blocks.push(makeEosBlock(chance, blocks.at(-1)?.hash ?? '00'.repeat(32), height))
  }
  return ({ path, body }, irreversible) => {
    switch (path) {
      case '/v1/chain/get_info':
        return infoOf(blocks, irreversible)
      case '/v1/trace_api/get_block': {
        const { block_num: height } = body as { readonly block_num: number }
        const block = blocks[height]
        return (height <= irreversible ? block?.irreversible : block?.pending) ?? '{}'
      }
      case '/v1/chain/get_account':
        return accountOf(body as { readonly account_name: string })
      case '/v1/chain/get_currency_balance':
        return '["1000000.0000 EOS"]'
      default:
        throw new Error(`a watcher does not ask ${path}`)
    }
  }
}

/** One that has all that transfers take: nothing of it is limited. */
function accountOf({ account_name }: { readonly account_name: string }): string {
  const unlimited = { used: -1, available: -1, max: -1, current_used: -1 }
  return JSON.stringify({
    account_name,
    cpu_limit: unlimited,
    net_limit: unlimited,
    ram_quota: -1,
    ram_usage: 3_000,
    permissions: [],
  })
}

function infoOf(blocks: readonly EosBlock[], irreversible: number): string {
  const head = irreversible + IRREVERSIBLE_BEHIND
  return JSON.stringify({
    chain_id: EOS_CHAIN_ID,
    head_block_num: head,
    head_block_id: blocks[head]?.hash,
    head_block_time: new Date(1_800_000_000_000 + head * 500).toISOString().slice(0, -1),
    last_irreversible_block_num: irreversible,
    last_irreversible_block_id: blocks[irreversible]?.hash,
  })
}
