import { expect, test } from 'vitest'
import { defaultExplorers, depositUrl, type Explorers, explorerText, transactionUrl } from './explorers.ts'

/** What: where each network's transactions and addresses are looked up. How: the whole table, as people would open it. */
const HASH = 'abc123'
const nowhere: Explorers = {
  ...defaultExplorers,
  BTC: null,
  ETH: { tx: 'https://e.example/{tx}', address: null },
}

test('a transaction is looked up where its network is', () => {
  const networks = ['BTC', 'ETH', 'ERC20', 'BNB', 'BEP20', 'XRP', 'XLM', 'TRX', 'TRC20', 'EOS', 'SOL']
  const urls = networks.map((network) => [network, transactionUrl(defaultExplorers, network, HASH)])
  expect(Object.fromEntries(urls)).toEqual({
    BTC: 'https://mempool.space/tx/abc123',
    ETH: 'https://etherscan.io/tx/abc123',
    ERC20: 'https://etherscan.io/tx/abc123',
    BNB: 'https://bscscan.com/tx/abc123',
    BEP20: 'https://bscscan.com/tx/abc123',
    XRP: 'https://livenet.xrpl.org/transactions/abc123',
    XLM: 'https://stellar.expert/explorer/public/tx/abc123',
    TRX: 'https://tronscan.org/#/transaction/abc123',
    TRC20: 'https://tronscan.org/#/transaction/abc123',
    EOS: 'https://eosauthority.com/transaction/abc123',
    SOL: 'https://solscan.io/tx/abc123',
  })
})

test('an order’s address has a page where it is the order’s alone', () => {
  const networks = ['BTC', 'ERC20', 'BEP20', 'XRP', 'XLM', 'TRC20', 'EOS', 'SOL']
  const urls = networks.map((network) => [network, depositUrl(defaultExplorers, network, 'here')])
  expect(Object.fromEntries(urls)).toEqual({
    BTC: 'https://mempool.space/address/here',
    ERC20: 'https://etherscan.io/address/here',
    BEP20: 'https://bscscan.com/address/here',
    XRP: null,
    XLM: null,
    TRC20: 'https://tronscan.org/#/address/here',
    EOS: null,
    SOL: 'https://solscan.io/account/here',
  })
})

test('an account that all orders share has no page even where an explorer would show it', () => {
  const shown: Explorers = {
    ...defaultExplorers,
    XRP: { tx: 'https://x.example/{tx}', address: 'https://x.example/{address}' },
  }
  expect(depositUrl(shown, 'XRP', 'here')).toBeNull()
})

test('where there is nothing to look up, or nowhere, there is no link', () => {
  expect(transactionUrl(defaultExplorers, 'BTC', null)).toBeNull()
  expect(transactionUrl(defaultExplorers, 'DOGE', HASH)).toBeNull()
  expect(transactionUrl(nowhere, 'BTC', HASH)).toBeNull()
  expect(depositUrl(defaultExplorers, 'DOGE', 'here')).toBeNull()
  expect(depositUrl(nowhere, 'BTC', 'here')).toBeNull()
  expect(depositUrl(nowhere, 'ETH', 'here')).toBeNull()
})

test('what is looked up cannot lead elsewhere, and comes in wherever it is asked for', () => {
  const twice: Explorers = {
    ...defaultExplorers,
    BTC: { tx: 'https://b.example/{tx}?of={tx}', address: 'https://b.example/{address}/{address}' },
  }
  expect(transactionUrl(twice, 'BTC', 'a/?#')).toBe('https://b.example/a%2F%3F%23?of=a%2F%3F%23')
  expect(depositUrl(twice, 'BTC', 'a/')).toBe('https://b.example/a%2F/a%2F')
})

test('the defaults are written down as an operator would write them', () => {
  expect(explorerText('BTC')).toBe('https://mempool.space/tx/{tx}, https://mempool.space/address/{address}')
  expect(explorerText('XRP')).toBe('https://livenet.xrpl.org/transactions/{tx}')
})
