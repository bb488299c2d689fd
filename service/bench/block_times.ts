import type { ChainId } from '../src/domain/catalog/networks.ts'

/** How often the main network of each chain makes a block, in seconds. */
export const secondsABlock: Readonly<Record<ChainId, number>> = {
  BTC: 600,
  ETH: 12,
  // https://docs.bnbchain.org/announce/fermi-bsc: since January 2026.
  BNB: 0.45,
  // https://devnull.network/blog/2020/07/02/xrp-2020-quarter-2.html: 22,493 ledgers a day.
  XRP: 3.84,
  // https://developers.stellar.org/docs/learn/fundamentals/stellar-data-structures/ledgers: every five to six.
  XLM: 5.8,
  // https://developers.tron.network/docs/dpos
  TRX: 3,
  // https://docs.antelope.io/docs/latest/core-concepts
  EOS: 0.5,
  // https://solana.com/docs/references/terminology#slot
  SOL: 0.4,
}
