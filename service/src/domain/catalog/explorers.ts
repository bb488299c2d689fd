import { type ChainId, chainFacts, depositsLie, isNetworkId, networkChains } from './networks.ts'

/** Where people look a transaction or an address up: URLs with `{tx}` and `{address}` in them. */
export type Explorer = { readonly tx: string; readonly address: string | null }

export type Explorers = Readonly<Record<ChainId, Explorer | null>>

/**
 * For the main networks. Where deposits carry tags there is no page for an order's address: the account is everybody's,
 * and explorers do not know its spelling with the tag in it.
 */
export const defaultExplorers = {
  BTC: { tx: 'https://mempool.space/tx/{tx}', address: 'https://mempool.space/address/{address}' },
  ETH: { tx: 'https://etherscan.io/tx/{tx}', address: 'https://etherscan.io/address/{address}' },
  BNB: { tx: 'https://bscscan.com/tx/{tx}', address: 'https://bscscan.com/address/{address}' },
  XRP: { tx: 'https://livenet.xrpl.org/transactions/{tx}', address: null },
  XLM: { tx: 'https://stellar.expert/explorer/public/tx/{tx}', address: null },
  TRX: {
    tx: 'https://tronscan.org/#/transaction/{tx}',
    address: 'https://tronscan.org/#/address/{address}',
  },
  EOS: { tx: 'https://eosauthority.com/transaction/{tx}', address: null },
  SOL: { tx: 'https://solscan.io/tx/{tx}', address: 'https://solscan.io/account/{address}' },
} as const satisfies Explorers

/** The defaults of a chain as one writes them down. */
export function explorerText(chain: ChainId): string {
  const { tx, address } = defaultExplorers[chain]
  return address === null ? tx : `${tx}, ${address}`
}

/** Null where there is nothing to look up, or nowhere. */
export function transactionUrl(explorers: Explorers, network: string, txHash: string | null): string | null {
  const explorer = isNetworkId(network) ? explorers[networkChains[network]] : null
  return explorer === null || txHash === null
    ? null
    : explorer.tx.replaceAll('{tx}', encodeURIComponent(txHash))
}

/** Null where addresses of orders have no page, or no explorer shows them. */
export function depositUrl(explorers: Explorers, network: string, address: string): string | null {
  if (!isNetworkId(network)) return null
  const chain = networkChains[network]
  const template = explorers[chain]?.address ?? null
  if (template === null || depositsLie[chainFacts[chain].family] === 'tags') return null
  return template.replaceAll('{address}', encodeURIComponent(address))
}
