import { assert } from '../domain/assert.ts'
import { type AssetId, assets } from '../domain/catalog/assets.ts'
import { explorerText } from '../domain/catalog/explorers.ts'
import { type ChainId, chainFacts, chainIds } from '../domain/catalog/networks.ts'

export type Shape = 'sandbox' | 'serve'

/** One environment variable. The text here is what the program does and what the reference page prints. */
export type Variable = {
  readonly section: string
  readonly shapes: readonly Shape[]
  /** Text used when the variable is not set; null when there is none. */
  readonly default: string | null | { readonly [shape in Shape]: string | null }
  /** When it has to be set, in words; the readers enforce it. */
  readonly required?: string
  readonly example?: string
  readonly meaning: string
}

/** https://developers.stellar.org/docs/networks#network-passphrase */
export const STELLAR_MAIN = 'Public Global Stellar Network ; September 2015'

/** https://docs.eosnetwork.com: the network that began in June 2018. */
export const EOS_MAIN = 'aca376f206b8fc25a6ed44dbdc66547c36c6c33e3a119ffbeaef943642f0e906'

/** To the signer's own record, beside those to the database. */
export const RECORD_CONNECTIONS_MAX = 4

const both = ['sandbox', 'serve'] as const
const sandbox = ['sandbox'] as const
const serve = ['serve'] as const

const http = {
  PORT: {
    section: 'HTTP',
    shapes: both,
    default: '8080',
    meaning:
      'TCP port to listen on. Every process does: without the role api for `/healthz`, `/readyz` and `/metrics` only.',
  },
  HOST: {
    section: 'HTTP',
    shapes: both,
    default: '127.0.0.1',
    meaning: 'Address to listen on. The sandbox accepts loopback addresses only.',
  },
  CAMBIST_BASE_URL: {
    section: 'HTTP',
    shapes: serve,
    default: null,
    required: 'by the role api, and where `CAMBIST_SMTP_URL` is set',
    example: 'https://exchange.example.org',
    meaning: 'Where clients reach the service; links in answers and mails start with it. https on mainnet.',
  },
  CAMBIST_TRUSTED_PROXIES: {
    section: 'HTTP',
    shapes: serve,
    default: '',
    example: '10.0.0.0/8, 192.168.1.7',
    meaning:
      "Addresses or CIDR ranges of your reverse proxies. Only their `X-Forwarded-For` is believed; IP lists and limits see the client's own address through it.",
  },
  CAMBIST_METRICS_ALLOW: {
    section: 'HTTP',
    shapes: serve,
    default: '127.0.0.1, ::1',
    meaning:
      'Addresses or CIDR ranges that may read `/metrics`, and why a check of `/readyz` fails; `0.0.0.0/0, ::/0` is anyone.',
  },
  CAMBIST_RATE_LIMIT_UNITS_PER_MINUTE: {
    section: 'HTTP',
    shapes: both,
    default: { sandbox: '100000', serve: '250' },
    meaning:
      'Units a key or a session (or an address, when anonymous) may use in a minute; all keys of an account together four times as many, and so all its sessions.',
  },
  CAMBIST_RATE_LIMIT_BURST_PER_SECOND: {
    section: 'HTTP',
    shapes: both,
    default: { sandbox: '1000', serve: '10' },
    meaning:
      'Requests a key, session or address may send in one second; all keys of an account together four times as many, and so all its sessions.',
  },
  CAMBIST_RATE_LIMIT_CREATE_UNITS: {
    section: 'HTTP',
    shapes: both,
    default: { sandbox: '1', serve: '50' },
    meaning: 'Units that creating an order costs, or what is as much work; every other request costs 1.',
  },
  CAMBIST_MAIL_LIMIT_PER_EMAIL: {
    section: 'HTTP',
    shapes: serve,
    default: '5',
    meaning: 'Links that may be asked for to one email address, within a quarter of an hour.',
  },
  CAMBIST_MAIL_LIMIT_PER_ADDRESS: {
    section: 'HTTP',
    shapes: serve,
    default: '20',
    meaning: 'Links that may be asked for from one address, within a quarter of an hour.',
  },
  CAMBIST_STREAMS_MAX: {
    section: 'HTTP',
    shapes: both,
    default: '10000',
    meaning: 'Event streams that a process keeps open at once. Each is a connection: see to `ulimit -n`.',
  },
  CAMBIST_STREAMS_PER_CALLER: {
    section: 'HTTP',
    shapes: both,
    default: { sandbox: '10000', serve: '500' },
    meaning: 'How many of them one account (or address, when anonymous) may have open.',
  },
  CAMBIST_LOG_LEVEL: {
    section: 'HTTP',
    shapes: both,
    default: { sandbox: 'warn', serve: 'info' },
    meaning: 'One of `fatal`, `error`, `warn`, `info`, `debug`, `trace`, `silent`.',
  },
} as const satisfies Record<string, Variable>

const storage = {
  DATABASE_URL: {
    section: 'Database and roles',
    shapes: both,
    default: null,
    required: 'by serve; in the sandbox, unset means an embedded PostgreSQL',
    example: 'postgres://cambist:secret@db.internal/cambist',
    meaning: 'PostgreSQL 15 or later.',
  },
  SIGNER_DATABASE_URL: {
    section: 'Database and roles',
    shapes: serve,
    default: null,
    meaning: "The signer's own record of what it signed. Unset: the same as `DATABASE_URL`.",
  },
  CAMBIST_DATABASE_CONNECTIONS: {
    section: 'Database and roles',
    shapes: serve,
    default: '20',
    meaning: `How many connections to the database this process keeps at most. The role signer has up to ${RECORD_CONNECTIONS_MAX} more to its own record.`,
  },
  CAMBIST_ROLES: {
    section: 'Database and roles',
    shapes: serve,
    default: 'api,watcher,engine,notifier,signer',
    meaning: 'What this process does; `--roles` on the command line wins.',
  },
  CAMBIST_DATA_DIR: {
    section: 'Database and roles',
    shapes: sandbox,
    default: '.cambist',
    meaning: 'Where the sandbox keeps its database, chains and `sandbox.json`.',
  },
  CAMBIST_SIGNER_SOCKET: {
    section: 'Database and roles',
    shapes: serve,
    default: null,
    required: 'by the roles engine and signer when they run in different processes',
    example: '/run/cambist/signer.sock',
    meaning:
      'Unix socket at which the signer serves engines of other processes, also where it has an engine of its own.',
  },
} as const satisfies Record<string, Variable>

const chains = {
  CAMBIST_BTC_URL: {
    section: 'Chains',
    shapes: serve,
    default: null,
    required: 'at least one of the `CAMBIST_…_URL` by the roles api, watcher and engine',
    example: 'http://user:password@127.0.0.1:8332',
    meaning: 'RPC address of bitcoind. Unset: BTC is not offered.',
  },
  CAMBIST_BTC_NETWORK: {
    section: 'Chains',
    shapes: serve,
    default: 'mainnet',
    meaning: '`mainnet`, `testnet` or `regtest`; start-up checks that the node agrees.',
  },
  CAMBIST_BTC_LARGE_AMOUNT: {
    section: 'Chains',
    shapes: serve,
    default: '1',
    meaning: 'BTC deposits from this amount on wait for 6 confirmations instead of 3.',
  },
  CAMBIST_BTC_FEE_CAP_SAT_PER_VB: {
    section: 'Chains',
    shapes: serve,
    default: '300',
    meaning: 'The most a Bitcoin payout may pay per virtual byte, in satoshi.',
  },
  CAMBIST_BTC_FEE_CAP_TOTAL: {
    section: 'Chains',
    shapes: serve,
    default: '0.005',
    meaning: 'The most one Bitcoin transaction may pay its miner, in BTC. A payout that takes more waits.',
  },
  CAMBIST_ETH_URL: {
    section: 'Chains',
    shapes: serve,
    default: null,
    example: 'http://127.0.0.1:8545',
    meaning: 'RPC address of an Ethereum node. Unset: ETH and ERC20 are not offered.',
  },
  CAMBIST_ETH_CHAIN_ID: {
    section: 'Chains',
    shapes: serve,
    default: '1',
    meaning: 'EVM chain id; start-up checks that the node agrees.',
  },
  CAMBIST_ETH_FEE_CAP_GWEI: {
    section: 'Chains',
    shapes: serve,
    default: '300',
    meaning: 'The most an Ethereum payout may pay per gas, in gwei.',
  },
  CAMBIST_ETH_GAS_LIMIT_CAP: {
    section: 'Chains',
    shapes: serve,
    default: '600000',
    meaning:
      'The most gas an Ethereum payout may use; one that needs more waits. A destination that needs more than 600000 (90000 where it is a contract and the payout is ETH) is never paid, whatever is set here: its order goes to EMERGENCY.',
  },
  CAMBIST_BNB_URL: {
    section: 'Chains',
    shapes: serve,
    default: null,
    example: 'http://127.0.0.1:8575',
    meaning: 'RPC address of a BNB Smart Chain node. Unset: BNB and BEP20 are not offered.',
  },
  CAMBIST_BNB_CHAIN_ID: {
    section: 'Chains',
    shapes: serve,
    default: '56',
    meaning: 'EVM chain id; start-up checks that the node agrees.',
  },
  CAMBIST_BNB_FEE_CAP_GWEI: {
    section: 'Chains',
    shapes: serve,
    default: '20',
    meaning: 'The most a BNB Smart Chain payout may pay per gas, in gwei.',
  },
  CAMBIST_BNB_GAS_LIMIT_CAP: {
    section: 'Chains',
    shapes: serve,
    default: '600000',
    meaning:
      'The most gas a BNB Smart Chain payout may use; one that needs more waits. A destination that needs more than 600000 (90000 where it is a contract and the payout is BNB) is never paid, whatever is set here: its order goes to EMERGENCY.',
  },
  CAMBIST_XRP_URL: {
    section: 'Chains',
    shapes: serve,
    default: null,
    example: 'http://127.0.0.1:5005',
    meaning:
      'JSON-RPC address of a `rippled` that keeps the ledgers of some days. Unset: XRP is not offered.',
  },
  CAMBIST_XRP_NETWORK_ID: {
    section: 'Chains',
    shapes: serve,
    default: '0',
    meaning: 'Network of the XRP Ledger, 0 is the main one; start-up checks that the node agrees.',
  },
  CAMBIST_XRP_FEE_CAP: {
    section: 'Chains',
    shapes: serve,
    default: '0.1',
    meaning: 'The most an XRP payout may pay the ledger, in XRP. The signer refuses more.',
  },
  CAMBIST_XLM_URL: {
    section: 'Chains',
    shapes: serve,
    default: null,
    example: 'http://127.0.0.1:8000',
    meaning: 'Address of a Horizon that keeps the ledgers of some days. Unset: XLM is not offered.',
  },
  CAMBIST_XLM_NETWORK: {
    section: 'Chains',
    shapes: serve,
    default: STELLAR_MAIN,
    meaning: 'Network of Stellar, by the passphrase that names it; start-up checks that Horizon agrees.',
  },
  CAMBIST_XLM_FEE_CAP: {
    section: 'Chains',
    shapes: serve,
    default: '0.1',
    meaning: 'The most an XLM payout may pay the ledger, in XLM. The signer refuses more.',
  },
  CAMBIST_TRX_URL: {
    section: 'Chains',
    shapes: serve,
    default: null,
    example: 'http://127.0.0.1:8090',
    meaning: 'HTTP API of one TRON full node (`/wallet`). Unset: TRX is not offered.',
  },
  CAMBIST_TRX_SOLIDITY_URL: {
    section: 'Chains',
    shapes: serve,
    default: null,
    example: 'http://127.0.0.1:8091',
    meaning:
      'Where that node serves `/walletsolidity`; java-tron does at a port of its own. Unset: at `CAMBIST_TRX_URL`, as gateways do.',
  },
  CAMBIST_TRX_GENESIS: {
    section: 'Chains',
    shapes: serve,
    default: '00000000000000001ebf88508a03865c71d452e25f4d51194196a1d22b6653dc',
    meaning: "Id of TRON's first block, by default the main network's; start-up checks that the node agrees.",
  },
  CAMBIST_TRX_FEE_CAP: {
    section: 'Chains',
    shapes: serve,
    default: '60',
    meaning: 'The most that the energy of a TRON payout may cost, in TRX. The signer refuses more.',
  },
  CAMBIST_EOS_URL: {
    section: 'Chains',
    shapes: serve,
    default: null,
    example: 'http://127.0.0.1:8888',
    meaning: 'HTTP API of an EOS node with `trace_api_plugin`. Unset: EOS is not offered.',
  },
  CAMBIST_EOS_CHAIN_ID: {
    section: 'Chains',
    shapes: serve,
    default: EOS_MAIN,
    meaning: "Chain id of EOS, by default the main network's; start-up checks that the node agrees.",
  },
  CAMBIST_EOS_ACCOUNT: {
    section: 'Chains',
    shapes: serve,
    default: null,
    required: 'with `CAMBIST_EOS_URL`, and by a signer that is to sign for EOS',
    example: 'mycambist123',
    meaning: 'The account that deposits arrive at and payouts leave from.',
  },
  CAMBIST_EOS_KEY: {
    section: 'Chains',
    shapes: serve,
    default: null,
    required: 'with `CAMBIST_EOS_ACCOUNT`',
    example: 'PUB_K1_6MRyAjQq8ud7hVNYcfnVPJqcVpscN5So8BhtHuGYqET5BoDq63',
    meaning:
      "The keystore's public key, as `cambist keystore eos-key` prints it; start-up checks that the account obeys it.",
  },
  CAMBIST_SOL_URL: {
    section: 'Chains',
    shapes: serve,
    default: null,
    example: 'http://127.0.0.1:8899',
    meaning: 'JSON-RPC of one Solana node that keeps the blocks of some days. Unset: SOL is not offered.',
  },
  CAMBIST_SOL_GENESIS: {
    section: 'Chains',
    shapes: serve,
    default: '5eykt4UsFv8P8NJdTREpY1vzqKqZKvdpKuc147dw2N9d',
    meaning: "Genesis hash of Solana, by default the main network's; start-up checks that the node agrees.",
  },
  CAMBIST_SOL_FEE_CAP: {
    section: 'Chains',
    shapes: serve,
    default: '0.005',
    meaning: 'The most that one Solana transaction may pay the network, in SOL. The signer refuses more.',
  },
  CAMBIST_NODE_TIMEOUT_SECONDS: {
    section: 'Chains',
    shapes: serve,
    default: '30',
    meaning: 'How long a node may take for one answer; tracing a full block takes seconds.',
  },
} as const satisfies Record<string, Variable>

/** Contracts of all tokens on mainnet, as their issuers publish them. On any other chain id they have to be given. */
const mainnetContracts: Readonly<Partial<Record<AssetId, string>>> = {
  'USDT:ERC20': '0xdAC17F958D2ee523a2206206994597C13D831ec7',
  'USDC:ERC20': '0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eB48',
  'USDT:BEP20': '0x55d398326f99059fF775485246999027B3197955',
  'USDC:BEP20': '0x8AC76a51cc950d9822D68b83fE1Ad97B32Cd580d',
  'USDC:SOL': 'EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v',
  'USDT:TRC20': 'TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t',
}

export type ContractVariable = `CAMBIST_CONTRACT_${string}_${string}`
export type LimitVariable = `CAMBIST_SPEND_LIMIT_${string}_${string}`

export function contractVariable(assetId: string): ContractVariable {
  return `CAMBIST_CONTRACT_${assetId.replace(':', '_')}` as ContractVariable
}

export function limitVariable(assetId: string): LimitVariable {
  return `CAMBIST_SPEND_LIMIT_${assetId.replace(':', '_')}` as LimitVariable
}

/** Listed from the catalogue: a new asset has its contract and its spend limit without a line here. */
const contracts: Record<ContractVariable, Variable> = Object.fromEntries(
  assets
    .filter((asset) => !asset.isNative)
    .map((asset) => [
      contractVariable(asset.id),
      {
        section: 'Chains',
        shapes: serve,
        default: mainnetContracts[asset.id] ?? null,
        required: `unless the chain is mainnet; without it ${asset.currency} on ${asset.network} is not offered`,
        meaning: `Contract of ${asset.currency} on ${asset.network}.`,
      },
    ]),
)

const spendLimits: Record<LimitVariable, Variable> = Object.fromEntries(
  assets.map((asset) => [
    limitVariable(asset.id),
    {
      section: 'Keys and limits',
      shapes: serve,
      default: null,
      required:
        'by the role signer on mainnet, for every asset of a configured chain (without any CAMBIST_…_URL: of all chains)',
      example: '2.5 / 10 / 40',
      meaning: `The most ${asset.currency} on ${asset.network} that may leave: in one payout / an hour / a day.`,
    },
  ]),
)

const keys = {
  CAMBIST_KEYSTORE_FILE: {
    section: 'Keys and limits',
    shapes: serve,
    default: null,
    required: 'by the role signer, and by `cambist addresses`',
    example: '/etc/cambist/keystore.json',
    meaning: 'The encrypted keystore that deposit and reserve keys are derived from.',
  },
  CAMBIST_KEYSTORE_PASSPHRASE_FILE: {
    section: 'Keys and limits',
    shapes: serve,
    default: null,
    required: 'by the role signer, and by `cambist addresses`: this or `CAMBIST_KEYSTORE_PASSPHRASE_FD`',
    example: '/run/credentials/cambist/passphrase',
    meaning: 'File whose first line is the passphrase. Never the passphrase itself.',
  },
  CAMBIST_KEYSTORE_PASSPHRASE_FD: {
    section: 'Keys and limits',
    shapes: serve,
    default: null,
    example: '3',
    meaning: 'Open file descriptor to read the passphrase from.',
  },
  CAMBIST_ACCOUNT_KEY_FILE: {
    section: 'Keys and limits',
    shapes: serve,
    default: null,
    required: 'by the roles api and notifier, and by `cambist keys`',
    example: '/etc/cambist/account.key',
    meaning:
      'Encrypts API and webhook secrets at rest: 32 bytes in hex or base64 (`openssl rand -hex 32`). Further lines are older keys that still decrypt.',
  },
  CAMBIST_ORDER_SEAL_KEY_FILE: {
    section: 'Keys and limits',
    shapes: serve,
    default: null,
    required: 'by the roles api, engine and signer',
    example: '/etc/cambist/order_seal.key',
    meaning:
      'Seals where an order pays to, so that the signer notices a changed row. 32 bytes in hex or base64.',
  },
  CAMBIST_ORDER_TOKEN_KEY_FILE: {
    section: 'Keys and limits',
    shapes: serve,
    default: null,
    required: 'by the role api, and by the role notifier where `CAMBIST_SMTP_URL` is set',
    example: '/etc/cambist/order_token.key',
    meaning:
      'Makes the token of each order, and of each unsubscribe link; with another key the old ones stop working. 32 bytes in hex or base64.',
  },
} as const satisfies Record<string, Variable>

const trading = {
  CAMBIST_FEE_FIXED_BPS: {
    section: 'Trading and prices',
    shapes: serve,
    default: '100',
    meaning: 'Fee of a fixed-rate order in basis points (100 = 1 %).',
  },
  CAMBIST_FEE_FLOAT_BPS: {
    section: 'Trading and prices',
    shapes: serve,
    default: '50',
    meaning:
      'Fee of a float order in basis points. An order keeps the one it was created with, unless its customer has to choose.',
  },
  CAMBIST_SLIPPAGE_BPS: {
    section: 'Trading and prices',
    shapes: serve,
    default: '200',
    meaning: 'A float order whose rate fell by more than this since the quote goes to EMERGENCY.',
  },
  CAMBIST_DEPOSIT_TOLERANCE_BPS: {
    section: 'Trading and prices',
    shapes: serve,
    default: '0',
    meaning: 'How far a deposit may be from the amount asked and still count as exact.',
  },
  CAMBIST_EMERGENCY_AFTER_MINUTES: {
    section: 'Trading and prices',
    shapes: serve,
    default: '30',
    meaning:
      'A payout that cannot be sent is retried for this many minutes; then its order goes to EMERGENCY.',
  },
  CAMBIST_CHAIN_TROUBLE_SECONDS: {
    section: 'Trading and prices',
    shapes: serve,
    default: '60',
    meaning:
      'A network that could not be looked at for this many seconds is taken off the list until it can be again; so is a currency without a price for as long.',
  },
  CAMBIST_PAUSED: {
    section: 'Trading and prices',
    shapes: serve,
    default: '',
    example: 'ETH, USDT:TRC20',
    meaning:
      'What no new orders are taken into or out of (MAINTENANCE), for the role api; orders that exist go on. A coin (`ETH`) names its chain, with all tokens there; a token (`USDT`) is meant on all its networks, `USDT:TRC20` on one, and `ETH:ETH` is the coin alone.',
  },
  CAMBIST_ADDRESS_POOL_SIZE: {
    section: 'Trading and prices',
    shapes: serve,
    default: '200',
    meaning:
      'Deposit addresses kept ready for orders to come. A burst of more orders is told MAINTENANCE until others are made, some hundred a second.',
  },
  CAMBIST_SWEEP_COST_MULTIPLE: {
    section: 'Trading and prices',
    shapes: serve,
    default: '10',
    meaning:
      'Deposits on account chains move to the reserve once they are worth this many times what moving them costs; 0: never.',
  },
  CAMBIST_PRICE_VENUES: {
    section: 'Trading and prices',
    shapes: serve,
    // Four with dollar markets, so that USDT has a quorum of three when one of them fails, and four large ones against USDT, which
    // also list BNB.
    default: 'binance,bitfinex,bitstamp,bybit,coinbase,kraken,kucoin,okx',
    meaning:
      'Trading venues that prices are read from, by their ccxt names. At least a quorum of them must have dollar markets (bitfinex, bitstamp, coinbase, kraken): only those give USDT a price, in which the others price everything.',
  },
  CAMBIST_PRICE_QUORUM: {
    section: 'Trading and prices',
    shapes: serve,
    default: '3',
    meaning:
      'With fewer venues agreeing, a currency is not quoted. At least 3, and at most the number of named venues that have dollar markets.',
  },
  CAMBIST_PRICE_AGE_MAX_SECONDS: {
    section: 'Trading and prices',
    shapes: serve,
    default: '45',
    meaning:
      'A price that is older than this is not used. At least 20: prices are read every 10 s and may take 8 s, and with less a currency would have none until the next one comes.',
  },
  CAMBIST_PRICE_JUMP_MAX_PERCENT: {
    section: 'Trading and prices',
    shapes: serve,
    default: '10',
    meaning:
      'A price that moves by more than this between two readings is not believed at once. At most 50, because no price can fall by more than 100.',
  },
} as const satisfies Record<string, Variable>

const mail = {
  CAMBIST_SMTP_URL: {
    section: 'Mail',
    shapes: serve,
    default: null,
    example: 'smtp://user:password@smtp.example.org:587',
    meaning:
      'The mail server that the role notifier hands mails to: `smtp://` (port 587, STARTTLS is required) or `smtps://` (port 465, TLS from the first byte). Certificates are checked. `?tls=none` for one on this machine or behind a tunnel. Unset: no mails are sent.',
  },
  CAMBIST_MAIL_FROM: {
    section: 'Mail',
    shapes: serve,
    default: null,
    required: 'where `CAMBIST_SMTP_URL` is set',
    example: 'Cambist <orders@exchange.example.org>',
    meaning: 'Sender of all mails. Bounces go there too.',
  },
} as const satisfies Record<string, Variable>

export type ExplorerVariable = `CAMBIST_EXPLORER_${ChainId}`

export function explorerVariable(chain: ChainId): ExplorerVariable {
  return `CAMBIST_EXPLORER_${chain}`
}

const explorers: Readonly<Record<string, Variable>> = Object.fromEntries(
  chainIds.map((chain) => [
    explorerVariable(chain),
    {
      section: 'Mail',
      shapes: serve,
      default: explorerText(chain),
      meaning: `Where mails link transactions of ${chainFacts[chain].name}: a URL with \`{tx}\`, and perhaps one with \`{address}\`; \`none\` for no links.`,
    },
  ]),
)

const named = { ...http, ...storage, ...chains, ...keys, ...trading, ...mail }

export type VariableName = keyof typeof named | ContractVariable | LimitVariable | ExplorerVariable

/** Everything the service reads from its environment. */
export const variables: Readonly<Record<VariableName, Variable>> = {
  ...http,
  ...storage,
  ...chains,
  ...contracts,
  ...keys,
  ...spendLimits,
  ...trading,
  ...mail,
  ...(explorers as Readonly<Record<ExplorerVariable, Variable>>),
}

export const variableNames = Object.keys(variables) as readonly VariableName[]

export function variableOf(name: VariableName): Variable {
  const variable = variables[name]
  assert(variable !== undefined, `${name} is described`)
  return variable
}
