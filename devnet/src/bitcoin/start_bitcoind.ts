import { randomBytes } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { connectRpc, type Rpc } from '../json_rpc.ts'
import {
  findRunning,
  type NodeProcess,
  startOnFreePort,
  stopProcess,
  stopRunning,
} from '../processes/node_process.ts'

export type Bitcoind = {
  /** With credentials. */
  readonly rpcUrl: string
  readonly pid: number
  readonly adopted: boolean
  readonly rpc: Rpc
  stop(): Promise<void>
}

export const MINER_WALLET = 'miner'

/** A regtest node on loopback with an index of all transactions and the wallet `miner`. */
export async function startBitcoind(options: {
  dataDir: string
  command: readonly string[]
  port?: number
}): Promise<Bitcoind> {
  const dataDir = resolve(options.dataDir)
  mkdirSync(dataDir, { recursive: true, mode: 0o700 })
  const password = writeConfig(dataDir)
  const { recordPath, mark } = placesIn(dataDir)
  const urlOf = (port: number) => `http://cambist:${password}@127.0.0.1:${port}`
  const running = findRunning(recordPath, mark)
  if (running !== undefined) {
    if (await isRegtest(urlOf(running.port)).catch(() => false)) {
      return handle(running, urlOf(running.port), true)
    }
    await stopProcess(running, 'SIGTERM')
  }
  const node = await startOnFreePort(
    recordPath,
    options.port,
    (port) => ({
      command: [...options.command, mark, `-rpcport=${port}`],
      logPath: join(dataDir, 'bitcoind.log'),
    }),
    (port) => isRegtest(urlOf(port)),
  )
  await openMinerWallet(connectRpc(urlOf(node.port)))
  return handle(node, urlOf(node.port), false)
}

/** Stops the one that keeps its chain there, if a killed process has left it running. */
export function stopBitcoindIn(dataDir: string): Promise<void> {
  const { recordPath, mark } = placesIn(resolve(dataDir))
  return stopRunning(recordPath, mark, 'SIGTERM')
}

function placesIn(dataDir: string) {
  return { recordPath: join(dataDir, 'node.json'), mark: `-datadir=${dataDir}` }
}

/** The credentials are in a file that only we may read: arguments are visible to every user of a machine. */
function writeConfig(dataDir: string): string {
  const path = join(dataDir, 'bitcoin.conf')
  const known = existsSync(path) ? /^rpcpassword=(.+)$/m.exec(readFileSync(path, 'utf8'))?.[1] : undefined
  const password = known ?? randomBytes(24).toString('hex')
  const lines = [
    'regtest=1',
    'server=1',
    'txindex=1',
    // Standardness as on mainnet, which regtest relaxes: what passes here passes there.
    'acceptnonstdtxn=0',
    'fallbackfee=0.0001',
    'walletrbf=1',
    // Keys made ahead: the default makes 8,000 when the wallet is made, which is most of a first start.
    'keypool=10',
    'dbcache=16',
    'maxmempool=50',
    'rpcuser=cambist',
    `rpcpassword=${password}`,
    // As an operator is told to set them, with a queue for tests that ask more at once: what it has no room for is turned away.
    'rpcthreads=16',
    'rpcworkqueue=512',
    'printtoconsole=0',
    // A chain that slept for a month is not "in initial block download".
    'maxtipage=3153600000',
    '[regtest]',
    'listen=0',
    'connect=0',
    'dnsseed=0',
    'discover=0',
    'rpcbind=127.0.0.1',
    'rpcallowip=127.0.0.1',
  ]
  const draft = `${path}.draft`
  writeFileSync(draft, `${lines.join('\n')}\n`, { mode: 0o600 })
  renameSync(draft, path)
  return password
}

async function isRegtest(rpcUrl: string): Promise<boolean> {
  const { chain } = await connectRpc(rpcUrl)<{ chain: string }>('getblockchaininfo')
  return chain === 'regtest'
}

async function openMinerWallet(rpc: Rpc): Promise<void> {
  if ((await rpc<string[]>('listwallets')).includes(MINER_WALLET)) return
  const { wallets } = await rpc<{ wallets: { name: string }[] }>('listwalletdir')
  const isThere = wallets.some(({ name }) => name === MINER_WALLET)
  // The last argument: opened by itself at every later start.
  if (isThere) await rpc('loadwallet', [MINER_WALLET, true])
  else await rpc('createwallet', [MINER_WALLET, false, false, '', false, true, true])
}

function handle(node: NodeProcess, rpcUrl: string, adopted: boolean): Bitcoind {
  return {
    rpcUrl,
    pid: node.pid,
    adopted,
    rpc: connectRpc(rpcUrl),
    stop: () => stopProcess(node, 'SIGTERM', 30_000),
  }
}
