import type { Devnet } from '@cambist/devnet'
import { connect as connectEos } from '../../src/chains/eos/rpc.ts'
import { connect as connectStellar } from '../../src/chains/stellar/horizon.ts'
import { connect as connectXrp, NodeRefusal } from '../../src/chains/xrp/rpc.ts'
import { type ChainId, chainFacts, chainIds, depositsLie } from '../../src/domain/catalog/networks.ts'
import { PATIENCE_MS } from './patience.ts'

/** For whom of those who share an account something arrived there, each time in the words of the chain; null: it does not say. */
export type ToldTags = ReadonlyMap<string, readonly (string | null)[]>

/** Chains on which many share an account. */
export const sharingChains = chainIds.filter((chain) => depositsLie[chainFacts[chain].family] === 'tags')

/** How a chain tells the tag that was asked for beside an account. Stellar's memos are of a kind. */
export function toldAs(chain: ChainId, tag: string | null): string | null {
  if (chain !== 'XLM' || tag === null) return tag
  return /^\d{1,19}$/.test(tag) ? `id ${tag}` : `text ${tag}`
}

/** Asks the nodes, not the service, about everything that ever arrived at these accounts. Of chains without tags: nothing. */
export async function readTags(
  { networks }: Pick<Devnet, 'networks'>,
  chain: ChainId,
  accounts: readonly string[],
): Promise<ToldTags> {
  if (accounts.length === 0) return new Map()
  if (chain === 'XRP') return askEach(accounts, (account) => tagsOnXrp(networks, account))
  if (chain === 'XLM') return askEach(accounts, (account) => memosOnStellar(networks, account))
  if (chain === 'EOS') return memosOnEos(networks, accounts)
  return new Map()
}

async function askEach(
  accounts: readonly string[],
  ask: (account: string) => Promise<(string | null)[]>,
): Promise<ToldTags> {
  const told = new Map<string, (string | null)[]>()
  for (const account of accounts) told.set(account, await ask(account))
  return told
}

type XrpPayment = {
  readonly Destination?: string
  readonly DestinationTag?: number
}

async function tagsOnXrp({ XRP }: Devnet['networks'], account: string): Promise<(string | null)[]> {
  const rpc = connectXrp(XRP?.rpcUrl ?? '', PATIENCE_MS)
  const answer = await rpc.call('account_tx', { account }).catch((error: unknown) => {
    // Nothing has made it yet.
    if (error instanceof NodeRefusal && error.code === 'actNotFound') return { transactions: [] }
    throw error
  })
  const transactions = answer.transactions as {
    readonly tx: XrpPayment
    readonly meta: { readonly TransactionResult: string }
  }[]
  return transactions.flatMap(({ tx, meta }) => {
    const isPaid = tx.Destination === account && meta.TransactionResult === 'tesSUCCESS'
    return isPaid ? [tx.DestinationTag === undefined ? null : String(tx.DestinationTag)] : []
  })
}

type StellarPayment = {
  readonly account?: string
  readonly to?: string
  readonly to_muxed_id?: string
  readonly transaction: { readonly memo_type: string; readonly memo?: string }
}

async function memosOnStellar({ XLM }: Devnet['networks'], account: string): Promise<(string | null)[]> {
  const horizon = connectStellar(XLM?.horizonUrl ?? '', PATIENCE_MS)
  const page = await horizon.get(`/accounts/${account}/payments?join=transactions&limit=200`)
  if (page === null) return []
  const { records } = page._embedded as { records: StellarPayment[] }
  return records
    .filter((payment) => (payment.to ?? payment.account) === account)
    .map(({ to_muxed_id: id, transaction: { memo_type: kind, memo } }) => {
      if (id !== undefined) return `muxed ${id}`
      return kind === 'none' ? null : `${kind} ${memo}`
    })
}

type EosTrace = {
  readonly actions: readonly {
    readonly account: string
    readonly receiver: string
    readonly action: string
    readonly params?: { readonly to: string; readonly memo: string }
  }[]
}

/** No node knows what reached an account: block after block is read. */
async function memosOnEos({ EOS }: Devnet['networks'], accounts: readonly string[]): Promise<ToldTags> {
  const rpc = connectEos(EOS?.rpcUrl ?? '', PATIENCE_MS)
  const told = new Map<string, (string | null)[]>(accounts.map((account) => [account, []]))
  const { head_block_num: newest } = (await rpc('chain/get_info', {})) as { head_block_num: number }
  for (let block_num = 2; block_num <= newest; block_num += 1) {
    const block = (await rpc('trace_api/get_block', { block_num })) as { transactions: EosTrace[] }
    for (const { account, receiver, action, params } of block.transactions.flatMap(
      ({ actions }) => actions,
    )) {
      // Those who are told of a transfer have a trace of it each.
      if (action !== 'transfer' || account !== receiver || params === undefined) continue
      told.get(params.to)?.push(params.memo === '' ? null : params.memo)
    }
  }
  return told
}
