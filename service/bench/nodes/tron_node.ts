import { chanceFrom } from '../../test/harness/chance.ts'
import { makeTronBlock, type TronBlock } from '../blocks/tron_block.ts'
import type { OpenBlockNode, Question } from './block_node.ts'

/** How far what is solid is behind: https://developers.tron.network/docs/dpos */
const SOLID_BEHIND = 18

/** What a java-tron answers: https://developers.tron.network/reference */
export const tronNode: OpenBlockNode = (last) => {
  const chance = chanceFrom(5)
  const blocks: TronBlock[] = []
  for (let height = 0; height <= last; height += 1) {
    blocks.push(makeTronBlock(chance, blocks.at(-1)?.hash ?? '00'.repeat(32), height))
  }
  return (question, head) => answer(blocks, question, head)
}

function answer(blocks: readonly TronBlock[], { path, query, body }: Question, head: number): string {
  switch (path) {
    case '/wallet/getblock':
    case '/walletsolidity/getblock': {
      const newest = path === '/wallet/getblock' ? head : Math.max(0, head - SOLID_BEHIND)
      const height = Number(query.get('id_or_num') ?? newest)
      const block = height > head ? undefined : blocks[height]
      return (query.get('detail') === 'true' ? block?.whole : block?.header) ?? '{}'
    }
    case '/wallet/gettransactioninfobyblocknum':
      return blocks[Number(query.get('num'))]?.infos ?? '[]'
    case '/wallet/gettransactionlistfrompending':
      return JSON.stringify({ txId: [...(blocks[head + 1]?.waiting.keys() ?? [])] })
    case '/wallet/gettransactionfrompending':
      return blocks[head + 1]?.waiting.get(query.get('value') ?? '') ?? '{}'
    case '/walletsolidity/getaccount':
      return JSON.stringify({ address: query.get('address'), balance: 1_000_000_000_000 })
    case '/wallet/getchainparameters':
      return PARAMETERS
    case '/wallet/triggerconstantcontract':
    case '/walletsolidity/triggerconstantcontract':
      return CALLED
    case '/wallet/estimateenergy':
      return '{"result":{"result":true},"energy_required":131000}'
    default:
      throw new Error(`a watcher does not ask ${path} ${JSON.stringify(body)}`)
  }
}

const CALLED = JSON.stringify({
  result: { result: true },
  energy_used: 64_895,
  constant_result: [(10n ** 12n).toString(16).padStart(64, '0')],
})

const PARAMETERS = JSON.stringify({
  chainParameter: [
    { key: 'getTransactionFee', value: 1_000 },
    { key: 'getEnergyFee', value: 100 },
    { key: 'getCreateNewAccountFeeInSystemContract', value: 1_000_000 },
    { key: 'getCreateAccountFee', value: 100_000 },
  ],
})
