import { copyFileSync, existsSync, mkdirSync, readFileSync, renameSync } from 'node:fs'
import { createRequire } from 'node:module'
import { delimiter, join, resolve } from 'node:path'
import { connectRpc, type Rpc } from '../json_rpc.ts'
import {
  findRunning,
  type NodeProcess,
  startOnFreePort,
  stopProcess,
  stopRunning,
} from '../processes/node_process.ts'
import { backerUp, copyPath } from './back_up.ts'

export type Anvil = {
  readonly rpcUrl: string
  readonly pid: number
  readonly adopted: boolean
  readonly rpc: Rpc
  /** Keeps a whole copy of the state file. */
  backUp(): Promise<void>
  stop(): Promise<void>
}

/** So many blocks back, state can be read and the chain reorganised, also after a restart. */
export const HISTORY_BLOCKS = 40

/** An EVM node that mines only when told to and writes its state to disk every second, unless it need not last. */
export async function startAnvil(options: {
  dataDir: string
  chainId: number
  name: string
  port?: number
  /** False: goes on from the state in the folder, and writes none. */
  isLasting: boolean
  log?: (line: string) => void
}): Promise<Anvil> {
  const dataDir = resolve(options.dataDir)
  mkdirSync(dataDir, { recursive: true })
  const { recordPath, statePath, mark } = placesIn(dataDir)
  const running = findRunning(recordPath, mark)
  if (running !== undefined) {
    if (await hasChainId(running.port, options.chainId).catch(() => false)) {
      return handle(running, statePath, true)
    }
    await stopProcess(running, 'SIGINT')
  }
  restoreIfBroken(statePath, (line) => options.log?.(`${options.name}: ${line}`))
  const node = await startOnFreePort(
    recordPath,
    options.port,
    (port) => ({
      command: [
        findAnvil(),
        ...flags(dataDir, options.chainId, port),
        ...stateFlags(statePath, options.isLasting),
      ],
      logPath: join(dataDir, 'anvil.log'),
    }),
    (port) => hasChainId(port, options.chainId),
  )
  return handle(node, statePath, false)
}

/** Stops the one that keeps its state there, if a killed process has left it running. */
export function stopAnvilIn(dataDir: string): Promise<void> {
  const { recordPath, mark } = placesIn(resolve(dataDir))
  return stopRunning(recordPath, mark, 'SIGINT')
}

function placesIn(dataDir: string) {
  const statePath = join(dataDir, 'state.json')
  return { recordPath: join(dataDir, 'node.json'), statePath, mark: `--state ${statePath}` }
}

function stateFlags(statePath: string, isLasting: boolean): string[] {
  if (isLasting) return ['--state', statePath, '--state-interval', '1']
  return existsSync(statePath) ? ['--load-state', statePath] : []
}

function flags(dataDir: string, chainId: number, port: number): string[] {
  return [
    ...['--host', '127.0.0.1', '--port', String(port), '--chain-id', String(chainId)],
    ...['--cache-path', join(dataDir, 'cache')],
    ...['--preserve-historical-states', '--prune-history', String(HISTORY_BLOCKS)],
    // Later rules keep every old block hash in a contract, which makes each kept state a megabyte.
    ...['--hardfork', 'cancun'],
    ...['--slots-in-an-epoch', '2', '--accounts', '2', '--no-mining', '--quiet'],
  ]
}

/** ANVIL_BIN, the npm package for this machine, PATH. */
function findAnvil(): string {
  const named = process.env.ANVIL_BIN
  if (named !== undefined && named !== '') return named
  const arch = process.arch === 'x64' ? 'amd64' : process.arch
  try {
    const require = createRequire(import.meta.url)
    return require.resolve(`@foundry-rs/anvil-${process.platform}-${arch}/bin/anvil`)
  } catch {
    const onPath = (process.env.PATH ?? '').split(delimiter).map((dir) => join(dir, 'anvil'))
    const found = onPath.find((path) => existsSync(path))
    if (found === undefined) throw new Error('no anvil for this machine: install Foundry or set ANVIL_BIN')
    return found
  }
}

async function hasChainId(port: number, chainId: number): Promise<boolean> {
  const answer = await connectRpc(`http://127.0.0.1:${port}`)<string>('eth_chainId')
  return Number.parseInt(answer, 16) === chainId
}

/** anvil overwrites its file in place, so a kill -9 in the middle leaves half of it. */
export function restoreIfBroken(statePath: string, log: (line: string) => void): void {
  if (!existsSync(statePath) || isReadable(statePath)) return
  const copy = copyPath(statePath)
  const hasCopy = existsSync(copy)
  if (hasCopy && isReadable(copy)) {
    log('the saved state is broken, taking its last copy')
    copyFileSync(statePath, `${statePath}.broken`)
    // At once: who is killed here finds the broken one or the copy, and never none.
    copyFileSync(copy, `${statePath}.draft`)
    renameSync(`${statePath}.draft`, statePath)
    return
  }
  log(`the saved state is broken, and ${hasCopy ? 'so is its copy' : 'has no copy'}: a new chain starts`)
  renameSync(statePath, `${statePath}.broken`)
}

function isReadable(path: string): boolean {
  try {
    JSON.parse(readFileSync(path, 'utf8'))
    return true
  } catch {
    return false
  }
}

function handle(node: NodeProcess, statePath: string, adopted: boolean): Anvil {
  const rpcUrl = `http://127.0.0.1:${node.port}`
  return {
    rpcUrl,
    pid: node.pid,
    adopted,
    rpc: connectRpc(rpcUrl),
    backUp: backerUp(statePath),
    stop: () => stopProcess(node, 'SIGINT'),
  }
}
