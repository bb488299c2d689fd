import { request } from 'node:http'
import { afterAll, afterEach, beforeAll, expect, onTestFinished, test } from 'vitest'
import { Client, ECDSA, hashes, type Payment, Wallet } from 'xrpl'
import { type Devnet, startDevnet } from '../src/index.ts'
import { killHard, makeTemporaryFolder, PATIENCE_MS, runScript } from './harness.ts'

/**
 * What: a simulated network fails in every way that a test asks for, recovers when told to, and outlives its process.
 * How: the XRP Ledger stands for all of them, because what is tried here they have in common.
 */
const folder = makeTemporaryFolder()
let devnet: Devnet
let client: Client
/** Holds everything at first; its secret is public. */
const bank = Wallet.fromSeed('snoPBrXtMeMyMHUVTgbuqAfg1SUTb', { algorithm: ECDSA.secp256k1 })
const open: Client[] = []

const start = () => startDevnet({ dataDir: folder.path, networks: ['XRP'], mining: 'manual' })

beforeAll(async () => {
  devnet = await start()
  client = await connect()
})

afterEach(async () => {
  devnet.trouble('XRP', null)
  disconnectAll()
  client = await connect()
})

afterAll(async () => {
  disconnectAll()
  await devnet?.stop()
  folder.remove()
})

/** Not waited for: a client that was cut off and is on its way back never says that it has gone. */
function disconnectAll(): void {
  for (const each of open.splice(0)) void each.disconnect()
}

function urls(of: Pick<Devnet, 'networks'> = devnet) {
  if (of.networks.XRP === undefined) throw new Error('XRP was started')
  return of.networks.XRP
}

function clientOf({ wsUrl }: { readonly wsUrl: string }, connectionTimeout = PATIENCE_MS): Client {
  return new Client(wsUrl, { timeout: PATIENCE_MS, connectionTimeout })
}

async function connect(connectionTimeout = PATIENCE_MS): Promise<Client> {
  const opened = clientOf(urls(), connectionTimeout)
  // A cut line is what some of these tests are about.
  opened.on('error', () => {})
  open.push(opened)
  await opened.connect()
  return opened
}

/** A payment out of the bank that nobody has submitted yet. */
async function prepared(changes: Partial<Payment> = {}) {
  const to = await devnet.freshAddress('XRP')
  const tx = {
    TransactionType: 'Payment',
    Account: bank.address,
    Destination: to,
    Amount: '2000000',
  } as const
  const { tx_blob, hash } = bank.sign({ ...(await client.autofill<Payment>(tx)), ...changes })
  return { to, blob: tx_blob, hash }
}

async function submit(tx_blob: string): Promise<string> {
  return (await client.request({ command: 'submit', tx_blob })).result.engine_result
}

const submitHastily = (tx_blob: string) => client.connection.request({ command: 'submit', tx_blob }, 300)

const balance = (address: string) => devnet.balance('XRP', 'XRP', address)

async function codeInLedger(hash: string): Promise<unknown> {
  const asked = client.request({ command: 'tx', transaction: hash })
  const answer = await asked.catch((error) => ({ result: { meta: error.data.error } }))
  const { meta } = answer.result
  return typeof meta === 'object' ? meta.TransactionResult : meta
}

/** The HTTP status, or what happened to the line. */
function ask(method: string, params: object = {}, timeout = PATIENCE_MS): Promise<number | string> {
  return new Promise((resolve) => {
    const asking = request(urls().rpcUrl, { method: 'POST', timeout }, (response) => {
      response.resume()
      resolve(response.statusCode ?? 0)
    })
    asking.on('timeout', () => {
      resolve('silence')
      asking.destroy()
    })
    asking.on('error', () => resolve('cut'))
    asking.end(JSON.stringify({ method, params: [params] }))
  })
}

test('whoever shares the process has his turns while many blocks are made', async () => {
  let turns = 0
  let goesOn = true
  const count = (): void => {
    turns += 1
    if (goesOn) setImmediate(count)
  }
  count()
  await devnet.mine('XRP', 20)
  goesOn = false
  expect(turns).toBeGreaterThan(20)
})

test('a transaction fails in its ledger with the code that was asked for, and the next does not', async () => {
  devnet.trouble('XRP', { submits: [{ failWith: 'tecPATH_DRY' }] })
  const failing = await prepared()
  expect(await submit(failing.blob)).toBe('tecPATH_DRY')
  const next = await prepared()
  expect(await submit(next.blob)).toBe('tesSUCCESS')
  await devnet.mine('XRP', 1)
  expect([await codeInLedger(failing.hash), await balance(failing.to)]).toEqual(['tecPATH_DRY', 0n])
  expect([await codeInLedger(next.hash), await balance(next.to)]).toEqual(['tesSUCCESS', 2_000_000n])
})

test('a transaction is refused with the code that was asked for, and can be submitted again', async () => {
  devnet.trouble('XRP', { submits: [{ failWith: 'telINSUF_FEE_P' }, { failWith: 'tefINTERNAL' }] })
  const { blob, to } = await prepared()
  expect([await submit(blob), await submit(blob), await submit(blob)]).toEqual([
    'telINSUF_FEE_P',
    'tefINTERNAL',
    'tesSUCCESS',
  ])
  await devnet.mine('XRP', 1)
  expect(await balance(to)).toBe(2_000_000n)
})

test('a dropped transaction is accepted and never seen again, until the same bytes come again', async () => {
  devnet.trouble('XRP', { submits: ['drop'] })
  const { blob, hash, to } = await prepared()
  expect([await submit(blob), await codeInLedger(hash)]).toEqual(['tesSUCCESS', 'txnNotFound'])
  await devnet.mine('XRP', 3)
  expect([await codeInLedger(hash), await balance(to)]).toEqual(['txnNotFound', 0n])
  expect(await submit(blob)).toBe('tesSUCCESS')
  await devnet.mine('XRP', 1)
  expect([await codeInLedger(hash), await balance(to)]).toEqual(['tesSUCCESS', 2_000_000n])
})

test('a dropped transaction can no longer get in once its last ledger is closed', async () => {
  devnet.trouble('XRP', { submits: ['drop'] })
  const { blob, hash } = await prepared({ LastLedgerSequence: (await client.getLedgerIndex()) + 2 })
  expect(await submit(blob)).toBe('tesSUCCESS')
  await devnet.mine('XRP', 2)
  expect([await submit(blob), await codeInLedger(hash)]).toEqual(['tefMAX_LEDGER', 'txnNotFound'])
})

test.each(['WebSocket', 'HTTP'])(
  'a lost reply over %s leaves a transaction that was accepted all the same',
  async (line) => {
    devnet.trouble('XRP', { submits: ['lose reply'] })
    const { blob, to } = await prepared()
    if (line === 'HTTP') expect(await ask('submit', { tx_blob: blob })).toBe('cut')
    else await expect(submit(blob)).rejects.toThrow('websocket was closed')
    await devnet.mine('XRP', 1)
    expect(await balance(to)).toBe(2_000_000n)
    client = await connect()
    expect(await submit(blob)).toBe('tefPAST_SEQ')
  },
)

test('a lost request leaves nothing', async () => {
  devnet.trouble('XRP', { submits: ['lose request'] })
  const { blob, to } = await prepared()
  expect(await ask('submit', { tx_blob: blob })).toBe('cut')
  await devnet.mine('XRP', 1)
  expect(await balance(to)).toBe(0n)
})

test('a slow server answers too late, and has done what it was asked', async () => {
  const { blob, to } = await prepared()
  devnet.trouble('XRP', { delayMs: 60_000 })
  await expect(submitHastily(blob)).rejects.toThrow('Timeout')
  expect(await ask('ping', {}, 300)).toBe('silence')
  devnet.trouble('XRP', { delayMs: 1 })
  expect(await ask('ping')).toBe(200)
  await devnet.mine('XRP', 1)
  expect(await balance(to)).toBe(2_000_000n)
})

test('a server that hangs says nothing, does nothing, lets nobody in, and recovers', async () => {
  const { blob, to } = await prepared()
  devnet.trouble('XRP', { hangs: true })
  await expect(submitHastily(blob)).rejects.toThrow('Timeout')
  await expect(connect(300)).rejects.toThrow('timed out')
  expect(await ask('ping', {}, 300)).toBe('silence')
  devnet.trouble('XRP', { hangs: false })
  expect(await ask('ping')).toBe(200)
  await devnet.mine('XRP', 1)
  expect(await balance(to)).toBe(0n)
})

test('a server that errs answers 500 and cuts its WebSockets', async () => {
  devnet.trouble('XRP', { errs: true })
  expect(await ask('ping')).toBe(500)
  await expect(client.request({ command: 'ping' })).rejects.toThrow('websocket was closed')
})

test('a stranger names another network, and refuses what was signed for ours', async () => {
  const { blob, hash } = await prepared()
  devnet.trouble('XRP', { isStranger: true })
  const { result } = await client.request({ command: 'server_info' })
  expect(result.info.network_id).not.toBe(urls().networkId)
  expect(await submit(blob)).toBe('telWRONG_NETWORK')
  const to = await devnet.freshAddress('XRP')
  await devnet.send('XRP', 'XRP', to, 2_000_000n)
  await devnet.mine('XRP', 2)
  expect(await balance(to), 'the faucet is at home').toBe(2_000_000n)
  devnet.trouble('XRP', null)
  expect(await codeInLedger(hash), 'what it keeps is not ours').toBe('txnNotFound')
})

test('a server that falls behind tells older ledgers and forgets newer transactions, until it catches up', async () => {
  const { blob, hash, to } = await prepared()
  await submit(blob)
  await devnet.mine('XRP', 3)
  const before = await client.getLedgerIndex()
  const held = () =>
    client.getXrpBalance(to, { ledger_index: 'validated' }).catch((error) => error.data.error)
  expect([await held(), await codeInLedger(hash)]).toEqual([2, 'tesSUCCESS'])
  devnet.trouble('XRP', { blocksBehind: 3 })
  expect(await client.getLedgerIndex()).toBe(before - 3)
  expect([await held(), await codeInLedger(hash)]).toEqual(['actNotFound', 'txnNotFound'])
  await expect(client.request({ command: 'ledger', ledger_index: before })).rejects.toThrow('ledgerNotFound')
  devnet.trouble('XRP', { blocksBehind: 1_000_000 })
  expect(await client.getLedgerIndex()).toBe(1)
  devnet.trouble('XRP', null)
  expect([await client.getLedgerIndex(), await held()]).toEqual([before, 2])
})

test('a second start has the same addresses, ledgers and queue', async () => {
  const [paid, waiting] = [await prepared(), await prepared({ Sequence: 1_000_000 })]
  await submit(paid.blob)
  await devnet.mine('XRP', 2)
  expect(await submit(waiting.blob)).toBe('terPRE_SEQ')
  const ledger = async () => (await client.request({ command: 'ledger', ledger_index: 'validated' })).result
  const [before, networks] = [await ledger(), devnet.networks]
  await client.disconnect()
  await devnet.stop()
  devnet = await start()
  client = await connect()
  expect(devnet.networks).toEqual(networks)
  expect(await ledger()).toEqual(before)
  expect(await balance(paid.to)).toBe(2_000_000n)
  const found = await client.request({ command: 'tx', transaction: waiting.hash })
  expect(found.result.validated).toBe(false)
})

test('after a kill -9 in the middle of its work the same chain goes on', async () => {
  const place = makeTemporaryFolder()
  const { child, said } = await runScript<Devnet>('run_devnet.ts', place.path, 'lively', 'XRP')
  onTestFinished(() => {
    child.kill('SIGKILL')
    place.remove()
  })
  const other = clientOf(urls(said))
  await other.connect()
  const tx = { TransactionType: 'Payment', Account: bank.address, Amount: '2000000' } as const
  const to = Wallet.generate().address
  const { tx_blob } = bank.sign(await other.autofill<Payment>({ ...tx, Destination: to }))
  await other.submitAndWait(tx_blob)
  const { result } = await other.request({ command: 'tx', transaction: hashes.hashSignedTx(tx_blob) })
  await other.disconnect()
  await killHard(child)
  const later = await startDevnet({ dataDir: place.path, networks: ['XRP'], mining: 'manual' })
  expect(later.networks).toEqual(said.networks)
  expect(await later.balance('XRP', 'XRP', to)).toBe(2_000_000n)
  const again = clientOf(urls(later))
  await again.connect()
  const ledger_index = result.ledger_index ?? 0
  const ledger = await again.request({ command: 'ledger', ledger_index })
  expect(ledger.result.ledger_hash).toBe((result as { ledger_hash?: string }).ledger_hash)
  await again.disconnect()
  await later.stop()
})
