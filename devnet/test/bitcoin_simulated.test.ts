import { randomBytes } from 'node:crypto'
import { p2pk, p2wsh } from '@scure/btc-signer'
import { pubECDSA } from '@scure/btc-signer/utils.js'
import { afterAll, afterEach, beforeAll, expect, onTestFinished, test, vi } from 'vitest'
import { connectRpc, type Devnet, type DevnetOptions, startDevnet } from '../src/index.ts'
import { paidOwner, REGTEST, spend } from './bitcoin_payers.ts'
import { killHard, makeTemporaryFolder, runScript } from './harness.ts'

/**
 * What: the simulated Bitcoin fails as it is told to, outlives its process, and stands in where there is no bitcoind.
 * How: over its own wire, with transactions of the field's library; what it shares with a bitcoind is in bitcoin.test.ts.
 */
const folder = makeTemporaryFolder()
let devnet: Devnet

const startIn = (dataDir: string, more: Partial<DevnetOptions> = {}) =>
  startDevnet({ dataDir, networks: ['BTC'], mining: 'manual', ...more })
const start = () => startIn(folder.path, { bitcoin: 'simulated' })

beforeAll(async () => {
  devnet = await start()
})

afterEach(() => devnet.trouble('BTC', null))

afterAll(async () => {
  await devnet?.stop()
  folder.remove()
})

const rpc = <T>(method: string, params: unknown[] = []) => devnet.bitcoin.rpc<T>(method, params)
const submit = (hex: string) => rpc<string>('sendrawtransaction', [hex])

async function payment(): Promise<{ hex: string; txid: string; to: string }> {
  const own = await paidOwner(devnet, 'segwit', 100_000n)
  const to = await devnet.freshAddress('BTC')
  return { ...spend([own], [{ address: to, sats: 99_000n }]), to }
}

test('a transaction fails with the reason or the code that was asked for, and can be sent again', async () => {
  const { hex, txid } = await payment()
  devnet.trouble('BTC', {
    submits: [
      { failWith: 'mempool full' },
      { failWith: 'bad-txns-inputs-missingorspent' },
      { failWith: '-28' },
    ],
  })
  for (const code of [-26, -25, -28]) await expect(submit(hex)).rejects.toMatchObject({ code })
  expect(await submit(hex)).toBe(txid)
  await devnet.mine('BTC', 1)
})

test('a dropped transaction is accepted and never seen, until the same bytes come again', async () => {
  const { hex, txid, to } = await payment()
  devnet.trouble('BTC', { submits: ['drop'] })
  expect(await submit(hex)).toBe(txid)
  await expect(rpc('getrawtransaction', [txid])).rejects.toThrow('No such mempool or blockchain transaction.')
  expect(await submit(hex)).toBe(txid)
  await devnet.mine('BTC', 1)
  expect(await devnet.balance('BTC', 'BTC', to)).toBe(99_000n)
})

test('a lost reply leaves a transaction that waits all the same, a lost request leaves none', async () => {
  const [first, second] = [await payment(), await payment()]
  devnet.trouble('BTC', { submits: ['lose reply', 'lose request'] })
  await expect(submit(first.hex)).rejects.toThrow('fetch failed')
  await expect(submit(second.hex)).rejects.toThrow('fetch failed')
  expect(await rpc('getrawmempool')).toEqual([first.txid])
  await devnet.mine('BTC', 1)
})

test('a stranger says that it is another network; one that is behind tells older blocks', async () => {
  const genesis = await rpc('getblockhash', [0])
  devnet.trouble('BTC', { isStranger: true })
  expect(await rpc('getblockchaininfo')).toMatchObject({ chain: 'main' })
  expect(await rpc('getblockhash', [0])).not.toBe(genesis)
  devnet.trouble('BTC', { isStranger: false, blocksBehind: 2 })
  const height = await rpc<number>('getblockcount')
  await expect(rpc('getblockhash', [height + 1])).rejects.toMatchObject({ code: -8 })
  devnet.trouble('BTC', null)
  expect(await rpc('getblockcount')).toBe(height + 2)
  expect(await rpc('getblockhash', [0])).toBe(genesis)
})

test('while its line errs the faucet pays and blocks are made', async () => {
  devnet.trouble('BTC', { errs: true })
  await expect(rpc('getblockcount')).rejects.toThrow()
  const to = await devnet.freshAddress('BTC')
  await devnet.send('BTC', 'BTC', to, 5_000n)
  await devnet.mine('BTC', 1)
  expect(await devnet.balance('BTC', 'BTC', to)).toBe(5_000n)
})

test('it never has an estimate of a fee', async () => {
  const none = { errors: ['Insufficient data or no feerate found'], blocks: 0 }
  expect(await rpc('estimatesmartfee', [2])).toEqual(none)
})

test('a coin whose script it cannot verify is not spent', async () => {
  const key = Uint8Array.from(randomBytes(32))
  const { address = '', ...script } = p2wsh(p2pk(pubECDSA(key)), REGTEST)
  const { txHash } = await devnet.send('BTC', 'BTC', address, 50_000n)
  await devnet.mine('BTC', 1)
  const { vout } = await rpc<{ vout: { scriptPubKey: { address?: string } }[] }>('getrawtransaction', [
    txHash,
    1,
  ])
  const index = vout.findIndex(({ scriptPubKey }) => scriptPubKey.address === address)
  const known = { ...script, witnessUtxo: { script: script.script, amount: 50_000n } }
  const coin = { txid: txHash, index, sats: 50_000n, key, known }
  const { hex } = spend([coin], [{ address: await devnet.freshAddress('BTC'), sats: 40_000n }])
  await expect(submit(hex)).rejects.toThrow('cannot verify scripts of type witness_v0_scripthash')
})

test('a second start goes on with the same URL, blocks, mempool and coins', async () => {
  const waiting = await payment()
  await submit(waiting.hex)
  const [networks, tip] = [devnet.networks, await rpc('getbestblockhash')]
  await devnet.reorg('BTC', 1)
  const told = () =>
    Promise.all(['getbestblockhash', 'getrawmempool', 'getbalance'].map((method) => rpc(method)))
  const before = await told()
  await devnet.stop()
  devnet = await start()
  // The client may still hold lines to the server that is gone.
  await vi.waitFor(() => rpc('getblockcount'), { timeout: 60_000 })
  expect(devnet.networks).toEqual(networks)
  expect(await told()).toEqual(before)
  expect(await rpc('getblockheader', [tip])).toMatchObject({ confirmations: -1 })
  await devnet.mine('BTC', 1)
  expect(await devnet.balance('BTC', 'BTC', waiting.to)).toBe(99_000n)
})

test('after a kill -9 in the middle of its work the same chain goes on', async () => {
  const place = makeTemporaryFolder()
  const { child, said } = await runScript<Devnet>('run_devnet.ts', place.path, 'manual', 'BTC', 'simulated')
  onTestFinished(() => {
    child.kill('SIGKILL')
    place.remove()
  })
  const line = connectRpc(said.networks.BTC?.rpcUrl ?? '')
  const to = await devnet.freshAddress('BTC')
  const txid = await line<string>('sendtoaddress', [to, '0.5'])
  const [hash] = await line<string[]>('generatetoaddress', [1, to])
  await killHard(child)
  const later = await startIn(place.path)
  expect(later.networks.BTC?.rpcUrl).toBe(said.networks.BTC?.rpcUrl)
  expect(await later.bitcoin.rpc('getrawtransaction', [txid, 1])).toMatchObject({ blockhash: hash })
  expect(await later.balance('BTC', 'BTC', to)).toBeGreaterThan(50_000_000n)
  await later.stop()
})

test('it stands in where there is no bitcoind, says so, and stays where it began', async () => {
  const place = makeTemporaryFolder()
  onTestFinished(() => place.remove())
  vi.stubEnv('BITCOIND_BIN', '/nonexistent')
  onTestFinished(() => void vi.unstubAllEnvs())
  const first = await startIn(place.path)
  expect(first.missing).toEqual([])
  expect(first.processes).toEqual([])
  expect(first.networks.BTC).toMatchObject({
    backing: 'simulated',
    why: 'BITCOIND_BIN=/nonexistent is not an executable file',
  })
  const { rpcUrl } = first.networks.BTC ?? {}
  await first.stop()
  vi.unstubAllEnvs()
  const second = await startIn(place.path)
  expect(second.networks.BTC).toMatchObject({ backing: 'simulated', rpcUrl })
  await second.stop()
})

test("a bitcoind's chain is not gone on with by anything else", async () => {
  const place = makeTemporaryFolder()
  onTestFinished(() => place.remove())
  const first = await startIn(place.path)
  expect(first.networks.BTC?.backing).toBe('bitcoind')
  expect(() => first.trouble('BTC', { errs: true })).toThrow('real bitcoind')
  await first.stop()
  vi.stubEnv('BITCOIND_BIN', '/nonexistent')
  onTestFinished(() => void vi.unstubAllEnvs())
  const second = await startIn(place.path)
  expect(second.networks.BTC).toBeUndefined()
  expect(second.missing).toEqual([
    { network: 'BTC', why: expect.stringContaining("its chain is a bitcoind's") },
  ])
  await second.stop()
})
