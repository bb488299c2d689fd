import { existsSync, readFileSync, statSync, truncateSync } from 'node:fs'
import { join } from 'node:path'
import type { Hex } from 'viem'
import { afterAll, expect, test } from 'vitest'
import { type Devnet, startDevnet, stopDevnetIn } from '../src/index.ts'
import { identify } from '../src/processes/identity.ts'
import { waitFor } from '../src/processes/wait.ts'
import { killHard, makeTemporaryFolder, runScript } from './harness.ts'

/**
 * What: whatever is killed, the next start continues with the same chains.
 * How: a child process runs the devnet; it, and then its nodes too, are killed with SIGKILL.
 */
const folder = makeTemporaryFolder()
/** The last one, so that a test that fails in the middle leaves no nodes behind. */
let last: Devnet | undefined
const start = async () => {
  last = await startDevnet({ dataDir: folder.path, mining: 'manual' })
  return last
}
type Said = Pick<Devnet, 'processes' | 'networks'>

afterAll(async () => {
  await last?.stop()
  await (await start()).stop()
  folder.remove()
})

const pids = ({ processes }: Pick<Devnet, 'processes'>) => processes.map(({ pid }) => pid).sort()

async function payEverywhere(devnet: Devnet) {
  const payments = await Promise.all(
    (['BTC', 'ETH', 'BNB'] as const).map(async (network) => {
      const to = await devnet.freshAddress(network)
      const { txHash } = await devnet.send(network, network, to, 123_456n)
      await devnet.mine(network, 2)
      return { network, to, txHash }
    }),
  )
  return async (later: Devnet) => {
    for (const { network, to, txHash } of payments) {
      expect(await later.balance(network, network, to)).toBe(123_456n)
      if (network === 'BTC') await later.bitcoin.rpc('getrawtransaction', [txHash, true])
      else await later.evm(network).client.getTransactionReceipt({ hash: txHash as Hex })
    }
  }
}

test('a second start continues with the same chains and tokens', async () => {
  const first = await start()
  const check = await payEverywhere(first)
  const { networks } = first
  await first.stop()
  for (const pid of pids(first)) expect(identify(pid)).toBeUndefined()
  const second = await start()
  expect(second.networks).toEqual(networks)
  expect(second.processes.every(({ adopted }) => !adopted)).toBe(true)
  await check(second)
  await second.stop()
})

test('nodes left behind by a killed process are adopted', async () => {
  const { child, said } = await runScript<Said>('run_devnet.ts', folder.path)
  await expect(start()).rejects.toThrow(`run by process ${child.pid}`)
  await killHard(child)
  const adopted = await start()
  expect(pids(adopted)).toEqual(pids(said))
  expect(adopted.processes.every((node) => node.adopted)).toBe(true)
  await (await payEverywhere(adopted))(adopted)
  await adopted.stop()
})

test('nodes left behind by a killed process are stopped for whoever deletes the folder', async () => {
  const { child, said } = await runScript<Said>('run_devnet.ts', folder.path)
  await expect(stopDevnetIn(folder.path)).rejects.toThrow(`run by process ${child.pid}`)
  await killHard(child)
  expect(pids(said)).toHaveLength(3)
  await stopDevnetIn(folder.path)
  expect(pids(said).filter(identify)).toEqual([])
})

test('after a kill of everything the chains continue from the disk', async () => {
  const { child, said } = await runScript<Said>('run_devnet.ts', folder.path)
  await killHard(child)
  const devnet = await start()
  const check = await payEverywhere(devnet)
  const send = async () => {
    const { txHash } = await devnet.send('BTC', 'BTC', await devnet.freshAddress('BTC'), 1_000n)
    return { sentAtMs: Date.now(), txHash }
  }
  const waiting = await send()
  // A save that ends after something was sent may have begun before it, or before the last block; what the next one writes has both.
  await waitFor('a first save', () => savedAtMs() >= waiting.sentAtMs, { timeoutMs: 60_000, everyMs: 100 })
  const { sentAtMs } = await send()
  const heights = {
    BTC: await devnet.bitcoin.rpc<number>('getblockcount'),
    ETH: await devnet.evm('ETH').client.getBlockNumber(),
  }
  await killOnceSaved(devnet, pids(said), sentAtMs)
  await waitFor('their end', () => pids(said).every((pid) => !identify(pid)), { timeoutMs: 60_000 })
  await devnet.stop()

  const later = await start()
  expect(later.processes.every(({ adopted }) => !adopted)).toBe(true)
  expect(await later.bitcoin.rpc('getblockcount')).toBe(heights.BTC)
  expect(await later.evm('ETH').client.getBlockNumber()).toBe(heights.ETH)
  expect(await later.bitcoin.rpc<string[]>('getrawmempool')).toContain(waiting.txHash)
  expect(later.networks.ETH?.tokens).toEqual(said.networks.ETH?.tokens)
  await check(later)
  await later.reorg('BTC', 2)
  await reorgBeforeTheStart(later)
  await later.stop()
})

test('a state file that was cut in the middle by a kill is replaced by its copy, which has what was just done', async () => {
  const { child, said } = await runScript<Said>('run_devnet.ts', folder.path)
  await killHard(child)
  const devnet = await start()
  const check = await payEverywhere(devnet)
  const chains = ['ETH', 'BNB'] as const
  const pathOf = (network: string) => join(folder.path, network.toLowerCase(), 'state.json')
  for (const network of chains) {
    const height = await blockOf(devnet, network)
    const copied = () => BigInt(JSON.parse(readFileSync(`${pathOf(network)}.copy`, 'utf8')).block.number)
    await waitFor(`a copy of ${network}`, () => existsSync(`${pathOf(network)}.copy`) && copied() >= height, {
      timeoutMs: 60_000,
      everyMs: 100,
    })
  }
  for (const pid of pids(said)) process.kill(pid, 'SIGKILL')
  await waitFor('their end', () => pids(said).every((pid) => !identify(pid)), { timeoutMs: 60_000 })
  await devnet.stop()
  for (const network of chains) truncateSync(pathOf(network), 1_000)
  const later = await start()
  await check(later)
  await later.stop()
})

/** anvil forgets the code of contracts when it goes back to before its start; the devnet puts it back. */
async function reorgBeforeTheStart(devnet: Devnet): Promise<void> {
  const to = await devnet.freshAddress('ETH')
  await devnet.reorg('ETH', 3)
  await devnet.send('ETH', 'USDT', to, 77n)
  await devnet.mine('ETH', 1)
  expect(await devnet.balance('ETH', 'USDT', to)).toBe(77n)
}

/**
 * Once the files hold what was just done: anvil writes each second, bitcoind when the devnet says so. All nodes stand still while that is
 * looked at, because anvil overwrites its file in place and a kill in the middle of that leaves half of it, which is another test's.
 */
async function killOnceSaved(devnet: Devnet, pids: readonly number[], sentAtMs: number): Promise<void> {
  const file = (...path: string[]) => readFileSync(join(folder.path, ...path), 'utf8')
  const height = { ETH: await blockOf(devnet, 'ETH'), BNB: await blockOf(devnet, 'BNB') }
  const isSaved = (network: 'ETH' | 'BNB') =>
    BigInt(JSON.parse(file(network.toLowerCase(), 'state.json')).block.number) >= height[network]
  const signalAll = (signal: NodeJS.Signals) => pids.forEach((pid) => void process.kill(pid, signal))
  const killIfSaved = () => {
    signalAll('SIGSTOP')
    let isAll = false
    try {
      isAll = isSaved('ETH') && isSaved('BNB') && savedAtMs() >= sentAtMs
      return isAll
    } finally {
      signalAll(isAll ? 'SIGKILL' : 'SIGCONT')
    }
  }
  await waitFor('everything on disk', killIfSaved, { timeoutMs: 60_000, everyMs: 100 })
}

/** The file is obfuscated by a key, so its age stands for its content. */
const savedAtMs = () => statSync(join(folder.path, 'bitcoin', 'regtest', 'mempool.dat')).mtimeMs

const blockOf = (devnet: Devnet, network: 'ETH' | 'BNB') => devnet.evm(network).client.getBlockNumber()
