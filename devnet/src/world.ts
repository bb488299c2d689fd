import { existsSync, mkdirSync } from 'node:fs'
import { join, resolve } from 'node:path'
import {
  type BitcoinInfo,
  bitcoindFolder,
  type ChosenBitcoin,
  chooseBitcoin,
} from './bitcoin/choose_bitcoin.ts'
import { stopBitcoindIn } from './bitcoin/start_bitcoind.ts'
import type { EosInfo, EosNetwork } from './eos/open_eos_network.ts'
import { type Contracts, compileAhead, compileContracts } from './evm/compile_contracts.ts'
import type { EvmClient, EvmNetwork, Token, TokenSymbol } from './evm/evm_network.ts'
import { EVM_PROFILES } from './evm/evm_profiles.ts'
import { startAnvil, stopAnvilIn } from './evm/start_anvil.ts'
import type { Rpc } from './json_rpc.ts'
import type { DevnetCurrency, DevnetNetwork, LocalNetwork, Replacement } from './local_network.ts'
import type { Mailbox } from './mailbox/open_mailbox.ts'
import { type Miner, startMiner } from './miner.ts'
import { type LockFile, tryLock } from './processes/lock_file.ts'
import type { SimulatedNetwork } from './simulated/simulated_network.ts'
import type { Troubles } from './simulated/troubles.ts'
import type { SolanaInfo } from './solana/open_solana_network.ts'
import { loadSurfpool, SURFPOOL_PACKAGE } from './solana/surfpool.ts'
import type { StellarInfo } from './stellar/open_stellar_network.ts'
import type { TronInfo } from './tron/open_tron_network.ts'
import type { XrpInfo } from './xrp/open_xrp_network.ts'

type EvmInfo = {
  readonly rpcUrl: string
  readonly chainId: number
  readonly tokens: Readonly<Record<TokenSymbol, Token>>
}

type Missing = { readonly network: 'BTC' | 'SOL'; readonly why: string }

export type Devnet = {
  readonly networks: {
    readonly BTC?: BitcoinInfo
    readonly ETH?: EvmInfo
    readonly BNB?: EvmInfo
    readonly XRP?: XrpInfo
    readonly XLM?: StellarInfo
    readonly TRX?: TronInfo
    readonly SOL?: SolanaInfo
    readonly EOS?: EosInfo
  }
  /**
   * Networks that cannot run on this machine (a bitcoind's chain without a bitcoind, Solana without Surfpool); the others
   * run all the same.
   */
  readonly missing: readonly Missing[]
  /** Of the networks that run in processes of their own. */
  readonly processes: readonly { network: DevnetNetwork; pid: number; adopted: boolean }[]
  /**
   * A real transaction from the faucet, in on-chain units; returns once it is in the mempool. `coins`: on Bitcoin, in
   * so many equal coins. `tag`: where many share an address (XRP: the destination tag; XLM, EOS: the memo).
   */
  send(
    network: DevnetNetwork,
    currency: DevnetCurrency,
    to: string,
    units: bigint,
    coins?: number,
    tag?: string,
  ): Promise<{ txHash: string }>
  /** What the blocks say, without the mempool, in on-chain units. */
  balance(network: DevnetNetwork, currency: DevnetCurrency, address: string): Promise<bigint>
  /** A valid address that is not ours and that nobody spends from. */
  freshAddress(network: DevnetNetwork): Promise<string>
  /** SOL: and those on top of them that make them final; with 0 `blocks` only such as are not final yet. */
  mine(network: DevnetNetwork, blocks: number): Promise<void>
  /**
   * Replaces the last `depth` blocks by empty ones. BTC: one block more than before, the transactions
   * return to the mempool. EVM: the same height, the transactions are gone until broadcast again. XRP, XLM: refused,
   * their ledgers are final. TRX: one block more than before, and not below the solid block. EOS: one
   * block more too, the transactions wait again, and not below what is irreversible. SOL: one block more, the
   * transactions are gone, and not below what is final.
   */
  reorg(network: DevnetNetwork, depth: number): Promise<void>
  /** A real double spend of an unconfirmed transaction that the faucet sent. */
  replace(txHash: string, replacement?: Replacement): Promise<{ txHash: string }>
  pauseMining(network?: DevnetNetwork): void
  resumeMining(network?: DevnetNetwork): void
  /** Makes a simulated network fail, on top of what already fails; null: all is well again. */
  trouble(network: SimulatedName | 'BTC', troubles: Partial<Troubles> | null): void
  evm(network: 'ETH' | 'BNB'): { client: EvmClient; contracts: Contracts }
  readonly bitcoin: { readonly rpc: Rpc }
  /** Takes every mail, and keeps it. */
  readonly mailbox: Mailbox
  /** On EOS an account is there before somebody pays to it; this one is from the next block on. */
  readonly eos: Pick<EosNetwork, 'createAccount'>
  /** Stops the miners and every node, whatever becomes of one of them, and gives the folder free. Rejects if one did not end. */
  stop(): Promise<void>
}

export type DevnetOptions = {
  readonly dataDir: string
  /** Default: all. */
  readonly networks?: readonly DevnetNetwork[]
  /** `lively` mines by itself; `manual` leaves it to `mine`. Default: lively. */
  readonly mining?: 'lively' | 'manual'
  readonly blockIntervalMs?: Partial<Record<DevnetNetwork, number>>
  /** Default: a bitcoind when there is one. */
  readonly bitcoin?: 'simulated'
  /**
   * False: what an earlier devnet left in the folder is taken up, but the EVM chains leave nothing for a later one. To
   * write each whole every second is a good part of what a devnet costs. Default: true.
   */
  readonly isLasting?: boolean
  readonly log?: (line: string) => void
  /** Aborted: what may be waited for long is given up, and the start rejects with the signal's reason. */
  readonly signal?: AbortSignal | undefined
}

const BLOCK_INTERVAL_MS = {
  BTC: 3_000,
  ETH: 1_000,
  BNB: 1_000,
  XRP: 1_000,
  XLM: 1_000,
  TRX: 3_000,
  SOL: 400,
  EOS: 500,
} as const

/** What is loaded only when it is wanted. */
const MODULES = {
  ETH: () => import('./evm/evm_network.ts'),
  BNB: () => import('./evm/evm_network.ts'),
  XRP: () => import('./xrp/open_xrp_network.ts'),
  XLM: () => import('./stellar/open_stellar_network.ts'),
  TRX: () => import('./tron/open_tron_network.ts'),
  SOL: () => import('./solana/open_solana_network.ts'),
  EOS: () => import('./eos/open_eos_network.ts'),
}

const DEFAULT_NETWORKS: readonly DevnetNetwork[] = ['BTC', 'ETH', 'BNB', 'XRP', 'XLM', 'TRX', 'EOS', 'SOL']

/**
 * Loads the code of networks and starts none. One after the other: a library may `require` a module of another one, and
 * Node cannot while an `import()` is about to load that (ERR_REQUIRE_ESM_RACE_CONDITION). Who loads much at the same
 * time waits for this first.
 */
export async function loadNetworks(networks: readonly DevnetNetwork[] = DEFAULT_NETWORKS): Promise<void> {
  for (const network of networks) if (network !== 'BTC') await MODULES[network]()
}

/** Networks that run in this process. A new one is a folder and a line here; each loads only when it is wanted. */
const SIMULATED = {
  XRP: async (dataDir: string) => (await MODULES.XRP()).openXrpNetwork(dataDir),
  XLM: async (dataDir: string) => (await MODULES.XLM()).openStellarNetwork(dataDir),
  TRX: async (dataDir: string) => (await MODULES.TRX()).openTronNetwork(dataDir),
  SOL: async (dataDir: string, signal?: AbortSignal) =>
    (await MODULES.SOL()).openSolanaNetwork(dataDir, signal),
  EOS: async (dataDir: string) => (await MODULES.EOS()).openEosNetwork(dataDir),
} as const satisfies Partial<Record<DevnetNetwork, (dataDir: string) => Promise<SimulatedNetwork<object>>>>
type SimulatedName = keyof typeof SIMULATED
type Simulated = { -readonly [Name in SimulatedName]?: Awaited<ReturnType<(typeof SIMULATED)[Name]>> }

type World = {
  readonly opened: Map<DevnetNetwork, LocalNetwork>
  readonly evm: Partial<Record<'ETH' | 'BNB', EvmNetwork>>
  readonly simulated: Simulated
  bitcoin?: ChosenBitcoin
  readonly missing: Missing[]
}

/** Starts the local chains, or adopts the ones that an earlier, killed process left running. */
export async function startDevnet(options: DevnetOptions): Promise<Devnet> {
  const dataDir = resolve(options.dataDir)
  mkdirSync(dataDir, { recursive: true })
  const lock = own(dataDir)
  const world: World = { opened: new Map(), evm: {}, simulated: {}, missing: [] }
  const wanted = options.networks ?? DEFAULT_NETWORKS
  // There is much to load: here, because meanwhile the nodes and the database start.
  const loading = Promise.all([loadNetworks(wanted), compileWanted(wanted, options)])
  const opening = wanted.map((network) => open({ world, loading, dataDir, options }, network))
  const mailing = loading.then(() => openMailboxIn(dataDir))
  const [mailbox, ...starts] = await Promise.allSettled([mailing, ...opening])
  const failed = starts.find((start) => start.status === 'rejected')
  if (failed !== undefined || mailbox.status === 'rejected') {
    await stopEach([...world.opened.values(), ...(mailbox.status === 'fulfilled' ? [mailbox.value] : [])])
    lock.release()
    throw failed === undefined ? (mailbox as PromiseRejectedResult).reason : failed.reason
  }
  return assemble(world, mailbox.value, lock, options)
}

/** Stops what a killed devnet has left running in the folder, whatever state that is in. Nothing is started. */
export async function stopDevnetIn(dataDir: string): Promise<void> {
  if (!existsSync(dataDir)) return
  const lock = own(dataDir)
  try {
    const anvils = Object.keys(EVM_PROFILES).map((network) => stopAnvilIn(folderOf(dataDir, network)))
    await Promise.all([stopBitcoindIn(bitcoindFolder(dataDir)), ...anvils])
  } finally {
    lock.release()
  }
}

function folderOf(dataDir: string, network: string): string {
  return join(dataDir, network.toLowerCase())
}

async function compileWanted(wanted: readonly DevnetNetwork[], { log }: DevnetOptions): Promise<void> {
  if (wanted.some((network) => network === 'TRX' || network in EVM_PROFILES)) await compileAhead(log)
}

/** Loaded after the networks: see there. */
async function openMailboxIn(dataDir: string): Promise<Mailbox> {
  const { openMailbox } = await import('./mailbox/open_mailbox.ts')
  return openMailbox(join(dataDir, 'mailbox'))
}

function own(dataDir: string): LockFile {
  const lock = tryLock(join(dataDir, 'devnet.lock'))
  if ('release' in lock) return lock
  throw new Error(`the devnet in ${dataDir} is already run by process ${lock.heldBy.pid}`)
}

type Opening = {
  readonly world: World
  readonly loading: Promise<unknown>
  readonly dataDir: string
  readonly options: DevnetOptions
}

async function open({ world, loading, dataDir, options }: Opening, network: DevnetNetwork): Promise<void> {
  const { log = () => {}, isLasting = true } = options
  if (network === 'BTC') {
    const { bitcoin: wanted } = options
    const chosen = await chooseBitcoin(dataDir, { ...(wanted && { wanted }), log })
    if ('missing' in chosen) {
      world.missing.push({ network, why: chosen.missing })
      return
    }
    world.bitcoin = chosen
    world.opened.set(network, chosen.network)
    return
  }
  const folder = folderOf(dataDir, network)
  if (network === 'SOL' && loadSurfpool() === null) {
    world.missing.push({ network, why: `${SURFPOOL_PACKAGE} is not installed, or does not run here` })
    return
  }
  if (isSimulated(network)) {
    await loading
    const opened =
      network === 'SOL' ? await SIMULATED.SOL(folder, options.signal) : await SIMULATED[network](folder)
    Object.assign(world.simulated, { [network]: opened })
    world.opened.set(network, opened)
    return
  }
  const profile = EVM_PROFILES[network]
  const { chainId } = profile
  const node = await startAnvil({ dataDir: folder, chainId, name: network, isLasting, log })
  const opening = loading
    .then(MODULES[network])
    .then(({ openEvmNetwork }) => openEvmNetwork(node, profile, compileContracts))
  const opened = await orStop(node, opening)
  world.evm[network] = opened
  world.opened.set(network, opened)
}

function isSimulated(network: DevnetNetwork): network is SimulatedName {
  return network in SIMULATED
}

async function orStop<T>(node: { stop(): Promise<void> }, work: Promise<T>): Promise<T> {
  try {
    return await work
  } catch (error) {
    await node.stop()
    throw error
  }
}

function assemble(world: World, mailbox: Mailbox, lock: LockFile, options: DevnetOptions): Devnet {
  const at = (network: DevnetNetwork): LocalNetwork =>
    world.opened.get(network) ?? fail(`${network} is not running in this devnet`)
  const miners = startMiners(world, options)
  const chosen = (network?: DevnetNetwork) =>
    [...miners].filter(([name]) => network === undefined || name === network).map(([, pair]) => pair.miner)
  return {
    networks: describe(world),
    missing: world.missing,
    processes: [...world.opened].flatMap(([network, { pid, adopted }]) =>
      pid === process.pid ? [] : [{ network, pid, adopted }],
    ),
    send: async (network, currency, to, units, coins, tag) =>
      at(network).send(currency, to, units, coins, tag),
    balance: async (network, currency, address) => at(network).balance(currency, address),
    freshAddress: async (network) => at(network).freshAddress(),
    mine: async (network, blocks) => at(network).mine(blocks),
    reorg: async (network, depth) => at(network).reorg(depth),
    replace: (txHash, replacement = {}) => replaceSomewhere(world, txHash, replacement),
    pauseMining: (network) => {
      for (const miner of chosen(network)) miner.pause()
    },
    resumeMining: (network) => {
      for (const miner of chosen(network)) miner.resume()
    },
    trouble: (network, troubles) => troublesOf(world, network).trouble(troubles),
    evm: (network) => ({
      client: (world.evm[network] ?? fail(`${network} is not running in this devnet`)).client,
      contracts: compileContracts(),
    }),
    bitcoin: {
      rpc: (method, params) =>
        (world.bitcoin ?? fail('BTC is not running in this devnet')).network.rpc(method, params),
    },
    eos: {
      createAccount: async (name, publicKey) =>
        (world.simulated.EOS ?? fail('EOS is not running in this devnet')).createAccount(name, publicKey),
    },
    mailbox,
    stop: async () => {
      const early = [mailbox, ...[...miners.values()].flatMap(({ miner, saver }) => [miner, saver])]
      const ends = [...(await stopEach(early)), ...(await stopEach([...world.opened.values()]))]
      lock.release()
      for (const end of ends) if (end.status === 'rejected') throw end.reason
    },
  }
}

/** One that does not end keeps no other from it. */
function stopEach(parts: readonly { stop(): Promise<void> }[]): Promise<PromiseSettledResult<void>[]> {
  return Promise.allSettled(parts.map((part) => part.stop()))
}

function troublesOf({ bitcoin, simulated }: World, network: SimulatedName | 'BTC') {
  if (network !== 'BTC') return simulated[network] ?? fail(`${network} is not running in this devnet`)
  if (bitcoin === undefined) return fail('BTC is not running in this devnet')
  return 'trouble' in bitcoin.network
    ? bitcoin.network
    : fail('BTC is a real bitcoind, which has no troubles')
}

function startMiners(world: World, options: DevnetOptions) {
  const miners = new Map<DevnetNetwork, { miner: Miner; saver: Miner }>()
  for (const [name, network] of world.opened) {
    const log = options.log ?? (() => {})
    const intervalMs = options.blockIntervalMs?.[name] ?? BLOCK_INTERVAL_MS[name]
    const isPaused = options.mining === 'manual'
    const isForgotten = options.isLasting === false
    miners.set(name, {
      miner: startMiner({ name, intervalMs, isPaused, log, turn: network.mineLively }),
      saver: startMiner({
        name,
        intervalMs: 1_000,
        isPaused: isForgotten,
        log: () => {},
        turn: network.save,
      }),
    })
  }
  return miners
}

function describe(world: World): Devnet['networks'] {
  const evm = (network: EvmNetwork): EvmInfo => {
    const { rpcUrl, chainId, tokens } = network
    return { rpcUrl, chainId, tokens }
  }
  return {
    ...(world.bitcoin && { BTC: world.bitcoin.info }),
    ...(world.evm.ETH && { ETH: evm(world.evm.ETH) }),
    ...(world.evm.BNB && { BNB: evm(world.evm.BNB) }),
    ...(world.simulated.XRP && { XRP: world.simulated.XRP.info }),
    ...(world.simulated.XLM && { XLM: world.simulated.XLM.info }),
    ...(world.simulated.TRX && { TRX: world.simulated.TRX.info }),
    ...(world.simulated.EOS && { EOS: world.simulated.EOS.info }),
    ...(world.simulated.SOL && { SOL: world.simulated.SOL.info }),
  }
}

async function replaceSomewhere(
  world: World,
  txHash: string,
  replacement: Replacement,
): Promise<{ txHash: string }> {
  for (const network of world.opened.values()) {
    const replaced = await network.replace(txHash, replacement)
    if (replaced !== undefined) return replaced
  }
  throw new Error(`no network of this devnet knows ${txHash}`)
}

function fail(message: string): never {
  throw new Error(message)
}
