import { chanceFrom } from '../../test/harness/chance.ts'
import { OWN_ACCOUNT } from '../blocks/own_addresses.ts'
import { makeStellarLedger, type StellarLedger } from '../blocks/stellar_ledger.ts'
import type { OpenBlockNode, Question } from './block_node.ts'

/** What a Horizon answers: https://developers.stellar.org/docs/data/apis/horizon/api-reference */
export const stellarNode: OpenBlockNode = (last) => {
  const chance = chanceFrom(4)
  const ledgers: StellarLedger[] = []
  for (let height = 0; height <= last; height += 1) {
    ledgers.push(makeStellarLedger(chance, ledgers.at(-1)?.hash ?? '00'.repeat(32), height))
  }
  return (question, head) => {
    const { path } = question
    if (path === '/ledgers') return pageOf(question, [ledgers[head]?.ledger ?? ''])
    if (path === '/fee_stats') return FEES
    if (path === `/accounts/${OWN_ACCOUNT.XLM}`) return ACCOUNT
    const [, height, payments] = /^\/ledgers\/(\d+)(\/payments)?$/.exec(path) ?? []
    const ledger = Number(height) > head ? undefined : ledgers[Number(height)]
    if (ledger === undefined) throw new Error(`a watcher does not ask ${path}`)
    return payments === undefined ? ledger.ledger : paymentsOf(question, ledger)
  }
}

function paymentsOf(question: Question, { payments }: StellarLedger): string {
  const after = BigInt(question.query.get('cursor') ?? '0')
  const found = payments.filter(({ token }) => token > after)
  return pageOf(
    question,
    found.slice(0, Number(question.query.get('limit'))).map(({ record }) => record),
  )
}

function pageOf({ path, query }: Question, records: readonly string[]): string {
  const links = JSON.stringify({ self: { href: `https://horizon.stellar.org${path}?${query}` } })
  return `{"_links":${links},"_embedded":{"records":[${records.join(',')}]}}`
}

const FEES = JSON.stringify({ last_ledger_base_fee: '100', fee_charged: { mode: '100' } })

const ACCOUNT = JSON.stringify({
  account_id: OWN_ACCOUNT.XLM,
  sequence: '4294967296',
  last_modified_ledger: 0,
  subentry_count: 0,
  num_sponsoring: 0,
  num_sponsored: 0,
  balances: [{ balance: '1000000.0000000', selling_liabilities: '0.0000000', asset_type: 'native' }],
  data: {},
})
