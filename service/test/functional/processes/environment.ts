import { randomBytes } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Devnet } from '@cambist/devnet'
import { deriveKeys } from '../../../src/signer/derivation.ts'
import { createKeystore, newMnemonic, openKeystore } from '../../../src/signer/keystore.ts'
import { eosPublicKey } from '../../../src/signer/transactions/eos_transaction.ts'

export const VENUES = ['kraken', 'coinbase', 'bitstamp', 'bitfinex'] as const
/** For a signer on its own: it knows every chain, so each has to be a test network. */
const SHASTA = '0000000000000000de1aa88295e1fcf982742f773e0419c5a9c134c994a9059e'
const SOLANA_DEVNET = 'EtWTRABZaYq6iMfeYKouRu166VU2xqa1wcaWoxPkrZBG'
const PASSPHRASE = 'a passphrase that no log may show'

export type EnvironmentPlace = {
  /** Where keys, keystore and the signer's socket lie. */
  readonly dir: string
  /** With Ethereum; the others when they run. */
  readonly devnet: Pick<Devnet, 'networks' | 'eos' | 'mine'>
  readonly databaseUrl: string
  /** Everything secret that was written is put in here. */
  readonly secrets: Set<string>
}

export type Environment = { of(roles: string): Readonly<Record<string, string>> }

/** What an operator writes into the unit file of each process: only what its roles need. */
export async function writeEnvironment(place: EnvironmentPlace): Promise<Environment> {
  const { dir, databaseUrl, secrets } = place
  secrets.add(PASSPHRASE)
  const keyFile = (name: string) => {
    const key = randomBytes(32).toString('hex')
    secrets.add(key)
    return writeText(join(dir, `${name}.key`), key)
  }
  const account = { CAMBIST_ACCOUNT_KEY_FILE: keyFile('account') }
  const seal = { CAMBIST_ORDER_SEAL_KEY_FILE: keyFile('seal') }
  const common = {
    DATABASE_URL: databaseUrl,
    CAMBIST_DATABASE_CONNECTIONS: '5',
    PORT: '0',
    CAMBIST_LOG_LEVEL: 'debug',
  }
  const keystore = await writeKeystore(dir, secrets)
  const { chain, node } = await networkVariables(place.devnet, keystore.seed)
  const socket = { CAMBIST_SIGNER_SOCKET: join(dir, 'signer.sock') }
  const byRole: Readonly<Record<string, Readonly<Record<string, string>>>> = {
    api: {
      ...node,
      ...seal,
      ...account,
      CAMBIST_ORDER_TOKEN_KEY_FILE: keyFile('token'),
      CAMBIST_BASE_URL: 'http://exchange.example.org',
      CAMBIST_RATE_LIMIT_UNITS_PER_MINUTE: '1000000',
      CAMBIST_RATE_LIMIT_BURST_PER_SECOND: '100000',
      CAMBIST_RATE_LIMIT_CREATE_UNITS: '1',
    },
    watcher: node,
    engine: { ...node, ...seal, ...socket },
    // The signer knows the chains by their ids and contracts; it has no node.
    signer: {
      ...chain,
      CAMBIST_BTC_NETWORK: 'regtest',
      CAMBIST_BNB_CHAIN_ID: '31338',
      ...seal,
      ...socket,
      ...keystore.variables,
      CAMBIST_SPEND_LIMIT_USDT_ERC20: '100000 / 1000000 / 1000000',
      CAMBIST_SPEND_LIMIT_USDC_ERC20: '100000 / 1000000 / 1000000',
      CAMBIST_SPEND_LIMIT_ETH_ETH: '100 / 1000 / 1000',
    },
    notifier: account,
  }
  return { of: (role: string) => ({ ...common, ...byRole[role] }) }
}

/** What a process has to know of the chains, and where their nodes are. */
async function networkVariables(devnet: EnvironmentPlace['devnet'], seed: Uint8Array) {
  const { BTC, ETH, XRP, XLM, TRX, SOL } = devnet.networks
  if (ETH === undefined) throw new Error('the devnet has Ethereum')
  const eos = await openEosAccount(devnet, seed, XRP?.networkId ?? 1)
  const chain = {
    CAMBIST_ETH_CHAIN_ID: String(ETH.chainId),
    CAMBIST_CONTRACT_USDT_ERC20: ETH.tokens.USDT.address,
    CAMBIST_CONTRACT_USDC_ERC20: ETH.tokens.USDC.address,
    CAMBIST_XRP_NETWORK_ID: String(XRP?.networkId ?? 1),
    CAMBIST_XLM_NETWORK: XLM?.passphrase ?? 'Standalone Network ; February 2017',
    CAMBIST_TRX_GENESIS: TRX?.genesisBlockId ?? SHASTA,
    CAMBIST_SOL_GENESIS: SOL?.genesisHash ?? SOLANA_DEVNET,
    ...(SOL !== undefined && { CAMBIST_CONTRACT_USDC_SOL: SOL.mints.USDC.address }),
    ...eos.account,
  }
  const node = {
    ...chain,
    ...(BTC !== undefined && { CAMBIST_BTC_URL: BTC.rpcUrl, CAMBIST_BTC_NETWORK: 'regtest' }),
    ...(XRP !== undefined && { CAMBIST_XRP_URL: XRP.rpcUrl }),
    ...(XLM !== undefined && { CAMBIST_XLM_URL: XLM.horizonUrl }),
    ...(TRX !== undefined && { CAMBIST_TRX_URL: TRX.fullNodeUrl }),
    ...(SOL !== undefined && { CAMBIST_SOL_URL: SOL.rpcUrl }),
    ...eos.node,
    CAMBIST_ETH_URL: ETH.rpcUrl,
    CAMBIST_PRICE_VENUES: VENUES.join(','),
  }
  return { chain, node }
}

async function writeKeystore(dir: string, secrets: Set<string>) {
  const path = join(dir, 'keystore.json')
  const mnemonic = newMnemonic()
  secrets.add(mnemonic)
  const made = await createKeystore({
    path,
    passphrase: PASSPHRASE,
    mnemonic,
    environment: 'sandbox',
    nowMs: Date.now(),
    scryptN: 2 ** 10,
  })
  const opened = await openKeystore({ path, passphrase: PASSPHRASE, environment: 'sandbox' })
  if (!made.ok || !opened.ok) throw new Error('the keystore was not made')
  const { seed } = opened.value
  secrets.add(Buffer.from(seed).toString('hex'))
  const variables = {
    CAMBIST_KEYSTORE_FILE: path,
    CAMBIST_KEYSTORE_PASSPHRASE_FILE: writeText(join(dir, 'passphrase'), PASSPHRASE),
  }
  return { seed, variables }
}

/** As an operator has it made: on EOS a key is not an account. */
async function openEosAccount(devnet: EnvironmentPlace['devnet'], seed: Uint8Array, xrpNetworkId: number) {
  const { EOS } = devnet.networks
  if (EOS === undefined) return { account: {}, node: {} }
  eosAccounts += 1
  const name = `cambistaaa${'12345'[eosAccounts % 5]}${'12345'[Math.floor(eosAccounts / 5) % 5]}`
  const publicKey = eosPublicKey(deriveKeys(seed, { bitcoin: 'regtest', xrpNetworkId }))
  await devnet.eos.createAccount(name, publicKey)
  await devnet.mine('EOS', 1 + EOS.reversibleBlocks)
  return {
    account: {
      CAMBIST_EOS_CHAIN_ID: EOS.chainId,
      CAMBIST_EOS_ACCOUNT: name,
      CAMBIST_EOS_KEY: publicKey,
    },
    node: { CAMBIST_EOS_URL: EOS.rpcUrl },
  }
}

let eosAccounts = 0

function writeText(path: string, text: string): string {
  writeFileSync(path, `${text}\n`, { mode: 0o600 })
  return path
}
