import { chanceFrom } from '../../test/harness/chance.ts'
import { OWN_ACCOUNT } from '../blocks/own_addresses.ts'
import { makeXrpLedger, type XrpLedger } from '../blocks/xrp_ledger.ts'
import type { OpenBlockNode } from './block_node.ts'

type Call = {
  readonly id: number
  readonly method: string
  readonly params: readonly [
    {
      readonly ledger_index?: number | 'validated'
      readonly ledger_hash?: string
      readonly expand?: boolean
    },
  ]
}

/** What a rippled answers: https://xrpl.org/docs/references/http-websocket-apis */
export const xrpNode: OpenBlockNode = (last) => {
  const chance = chanceFrom(3)
  const ledgers: XrpLedger[] = []
  for (let height = 0; height <= last; height += 1) {
    ledgers.push(makeXrpLedger(chance, ledgers.at(-1)?.hash ?? '00'.repeat(32), height))
  }
  return ({ body }, head) => {
    const { id, method, params } = body as Call
    return `{"id":${id},"result":${resultOf(ledgers, method, params[0], head)}}`
  }
}

function resultOf(
  ledgers: readonly XrpLedger[],
  method: string,
  { ledger_index: asked, ledger_hash: hash, expand }: Call['params'][0],
  head: number,
): string {
  switch (method) {
    case 'ledger': {
      const height = typeof asked === 'number' ? asked : head
      const ledger = height > head ? undefined : ledgers[height]
      if (ledger === undefined) return '{"status":"error","error":"lgrNotFound"}'
      return expand === true ? ledger.whole : ledger.header
    }
    case 'account_info': {
      const of = { Account: OWN_ACCOUNT.XRP, Flags: 131_072, OwnerCount: 0, Sequence: 7 }
      const height = hash === undefined ? head : ledgers.findIndex((ledger) => ledger.hash === hash)
      const account = { ...of, Balance: '99000000000', ...ledgers[height]?.thread }
      return JSON.stringify({
        account_data: account,
        ledger_index: height,
        validated: true,
        status: 'success',
      })
    }
    case 'fee': {
      const drops = { base_fee: '10', median_fee: '5000', minimum_fee: '10', open_ledger_fee: '10' }
      return JSON.stringify({ drops, ledger_current_index: head + 1, status: 'success' })
    }
    case 'server_state': {
      const ledger = { base_fee: 10, reserve_base: 1_000_000, reserve_inc: 200_000, seq: head }
      return JSON.stringify({ state: { validated_ledger: ledger }, status: 'success' })
    }
    default:
      throw new Error(`a watcher does not ask ${method}`)
  }
}
