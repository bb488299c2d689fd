import { relative } from 'node:path'
import type { Sandbox } from './start_sandbox.ts'

/** One screen: where everything is, and what to do next. */
export function greet({ service, devnet, account, sandboxFile }: Sandbox, logFile: string): string {
  const { BTC, ETH, BNB, XRP, XLM, TRX, EOS, SOL } = devnet.networks
  const here = (path: string) => relative(process.cwd(), path)
  const chain = (name: string, what: string) => `  ${name.padEnd(16)}${what}`
  const simulated = [
    ...(XRP === undefined ? [] : [`XRP Ledger (network ${XRP.networkId})`]),
    ...(XLM === undefined ? [] : ['Stellar']),
    ...(TRX === undefined ? [] : ['TRON']),
    ...(EOS === undefined ? [] : ['EOS']),
    ...(SOL === undefined ? [] : ['Solana']),
  ]
  return [
    '',
    chain('Interface', service.baseUrl),
    chain('Pages', `${service.baseUrl}/docs (reference), /sandbox/mailbox (mails)`),
    chain('API key', account.api_key),
    chain('API secret', account.api_secret),
    '',
    chain('Bitcoin', bitcoinLine(BTC)),
    ...(ETH === undefined
      ? []
      : [chain('Ethereum', `anvil (chain id ${ETH.chainId}), a block every second`)]),
    ...(BNB === undefined
      ? []
      : [chain('BNB Smart Chain', `anvil (chain id ${BNB.chainId}), a block every second`)]),
    ...(simulated.length === 0 ? [] : [chain('Simulated', simulated.join(', '))]),
    ...devnet.missing
      .filter(({ network }) => network === 'SOL')
      .map(({ why }) => chain('Solana', `off: ${why}, so SOL is not enabled`)),
    '',
    chain('For programs', here(sandboxFile)),
    chain('Log', here(logFile)),
    '',
    'Try this in another terminal:',
    '  npm run demo                  an exchange from quote to DONE, step by step',
    '  npm run demo -- underpaid     too little is sent; the order is recalculated',
    '  npm run demo -- late          paid too late; the deposit is refunded',
    `  curl '${service.baseUrl}/v1/rate?from=BTC&to=USDT&to_network=ERC20&amount=0.1'`,
    '',
    'Ctrl-C stops everything; the next start continues with the same data.',
    `Cambist sandbox ready at ${service.baseUrl}`,
  ].join('\n')
}

function bitcoinLine(bitcoin: Sandbox['devnet']['networks']['BTC']): string {
  if (bitcoin === undefined)
    return "off: its chain is a bitcoind's and no bitcoind was found, so BTC is not enabled"
  const node =
    bitcoin.backing === 'bitcoind'
      ? 'bitcoind on regtest'
      : 'simulated on regtest (no bitcoind was found when it began)'
  return `${node}, a block every 3 s`
}
