import { randomBytes } from 'node:crypto'
import {
  address,
  appendTransactionMessageInstructions,
  createKeyPairSignerFromPrivateKeyBytes,
  createSolanaRpc,
  createTransactionMessage,
  getBase64EncodedWireTransaction,
  getSignatureFromTransaction,
  type Instruction,
  type KeyPairSigner,
  lamports,
  pipe,
  type Signature,
  setTransactionMessageComputeUnitLimit,
  setTransactionMessageComputeUnitPrice,
  setTransactionMessageFeePayerSigner,
  setTransactionMessageLifetimeUsingBlockhash,
  signTransactionMessageWithSigners,
} from '@solana/kit'
import { getTransferSolInstruction } from '@solana-program/system'
import { getFreezeAccountInstruction, getTransferCheckedInstruction } from '@solana-program/token'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { type Devnet, startDevnet } from '../src/index.ts'
import { holdingOf } from '../src/solana/genesis.ts'
import { loadSurfpool } from '../src/solana/surfpool.ts'
import { makeTemporaryFolder, runScript } from './harness.ts'

/**
 * What: the simulated Solana answers the field's own client library as a node does; what runs, runs on a real virtual machine.
 * How: the published client over HTTP, and plain requests beside it; blocks are made when a test says so.
 */
const folder = makeTemporaryFolder()
let devnet: Devnet

const start = () => startDevnet({ dataDir: folder.path, networks: ['SOL'], mining: 'manual' })

beforeAll(async () => {
  devnet = await start()
})

afterEach(() => devnet.trouble('SOL', null))

afterAll(async () => {
  await devnet?.stop()
  folder.remove()
})

const info = () => {
  if (devnet.networks.SOL === undefined) throw new Error('SOL was started')
  return devnet.networks.SOL
}
const rpc = () => createSolanaRpc(info().rpcUrl)
const mine = (blocks = 1) => devnet.mine('SOL', blocks)
const sol = (holder: string) => devnet.balance('SOL', 'SOL', holder)
const usdc = (holder: string) => devnet.balance('SOL', 'USDC', holder)

type Refusal = { code: number; message: string; data?: { err: unknown } }
async function ask<T>(method: string, ...params: unknown[]): Promise<{ result?: T; error?: Refusal }> {
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method, params })
  const response = await fetch(info().rpcUrl, { method: 'POST', body })
  return (await response.json()) as { result?: T; error?: Refusal }
}

const SOL = 1_000_000_000n
const someone = () => createKeyPairSignerFromPrivateKeyBytes(randomBytes(32))
const faucet = () => createKeyPairSignerFromPrivateKeyBytes(Buffer.from(info().faucetKey, 'hex'))

async function funded(units = SOL) {
  const signer = await someone()
  await devnet.send('SOL', 'SOL', signer.address, units)
  await mine()
  return signer
}

type Written = { readonly wire: string; readonly signature: Signature }
async function write(payer: KeyPairSigner, ...instructions: Instruction[]): Promise<Written> {
  const { value } = await rpc().getLatestBlockhash({ commitment: 'finalized' }).send()
  const message = pipe(
    createTransactionMessage({ version: 0 }),
    (empty) => setTransactionMessageFeePayerSigner(payer, empty),
    (paid) => setTransactionMessageLifetimeUsingBlockhash(value, paid),
    (timed) => appendTransactionMessageInstructions(instructions, timed),
  )
  const signed = await signTransactionMessageWithSigners(message)
  return { wire: getBase64EncodedWireTransaction(signed), signature: getSignatureFromTransaction(signed) }
}

const send = ({ wire }: Written, skipPreflight = false) =>
  ask<string>('sendTransaction', wire, { encoding: 'base64', skipPreflight })
const pay = (source: KeyPairSigner, to: string, amount: bigint) =>
  write(source, getTransferSolInstruction({ source, destination: address(to), amount }))
const landed = (signature: Signature) =>
  rpc()
    .getTransaction(signature, {
      commitment: 'confirmed',
      encoding: 'json',
      maxSupportedTransactionVersion: 0,
    })
    .send()

test('what is sent waits, is in a block, and is final some blocks later', async () => {
  const to = await devnet.freshAddress('SOL')
  const { txHash } = await devnet.send('SOL', 'SOL', to, 5n * SOL)
  const status = async () =>
    (
      await rpc()
        .getSignatureStatuses([txHash as Signature])
        .send()
    ).value[0]
  const heldAt = async (commitment: 'confirmed' | 'finalized') =>
    (await rpc().getBalance(address(to), { commitment }).send()).value
  expect(await status()).toBeNull()
  await mine()
  devnet.trouble('SOL', { blocksBehind: info().finalDepth })
  expect(await status()).toMatchObject({ confirmationStatus: 'confirmed', err: null })
  expect([await heldAt('confirmed'), await heldAt('finalized')]).toEqual([lamports(5n * SOL), 0n])
  devnet.trouble('SOL', null)
  expect(await status()).toMatchObject({ confirmationStatus: 'finalized' })
  expect(await heldAt('finalized')).toBe(5n * SOL)
})

test('a block tells what each account held before and after, and what it holds of tokens', async () => {
  const to = await devnet.freshAddress('SOL')
  await devnet.send('SOL', 'USDC', to, 7_500_000n)
  await devnet.send('SOL', 'SOL', to, SOL)
  await mine()
  const { result: slot = 0 } = await ask<number>('getSlot', { commitment: 'finalized' })
  const block = await rpc()
    .getBlock(BigInt(slot), {
      maxSupportedTransactionVersion: 0,
      transactionDetails: 'accounts',
      rewards: false,
    })
    .send()
  const [token, native] = block?.transactions ?? []
  const at = (of: typeof token, key: string) =>
    of?.transaction.accountKeys.findIndex(({ pubkey }) => pubkey === key) ?? -1
  expect(native?.meta?.postBalances[at(native, to)]).toBe(SOL)
  const holding = await holdingOf(to, 'USDC')
  const held = token?.meta?.postTokenBalances?.find(({ accountIndex }) => accountIndex === at(token, holding))
  expect(held).toMatchObject({
    mint: info().mints.USDC.address,
    owner: to,
    uiTokenAmount: { amount: '7500000' },
  })
  expect(token?.meta?.preTokenBalances?.some(({ accountIndex }) => accountIndex === at(token, holding))).toBe(
    false,
  )
  expect(token?.meta?.postBalances[at(token, holding)]).toBe(2_039_280n)
  expect([await usdc(to), await sol(to)]).toEqual([7_500_000n, SOL])
})

test('one slot in ten is skipped, and the next block says so', async () => {
  await mine(12)
  const { result: slots = [] } = await ask<number[]>('getBlocks', 5, 15)
  expect(slots).toEqual([5, 6, 7, 8, 10, 11, 12, 13, 14, 15])
  expect((await ask('getBlock', 9)).error?.code).toBe(-32007)
  expect((await ask('getBlock', 10, { transactionDetails: 'none' })).result).toMatchObject({ parentSlot: 8 })
  expect((await ask('getBlock', 1_000_000)).error?.code).toBe(-32004)
})

test('fees are charged by signature and by the price of a unit, also for what fails', async () => {
  const payer = await funded()
  const [to, poor] = [await devnet.freshAddress('SOL'), await devnet.freshAddress('SOL')]
  const paid = await pay(payer, to, SOL / 2n)
  await send(paid)
  await mine()
  expect(await sol(payer.address)).toBe(SOL / 2n - 5_000n)
  const dust = await pay(payer, poor, 1n)
  expect((await send(dust)).error).toMatchObject({
    code: -32002,
    data: { err: { InsufficientFundsForRent: expect.anything() } },
  })
  expect((await send(dust, true)).result).toBe(dust.signature)
  await mine()
  expect((await landed(dust.signature))?.meta).toMatchObject({ fee: 5_000n })
  expect((await landed(dust.signature))?.meta?.err).not.toBeNull()
  expect([await sol(payer.address), await sol(poor)]).toEqual([SOL / 2n - 10_000n, 0n])
})

test('a priority fee is the price of a unit times those that were asked for', async () => {
  const payer = await funded()
  const { value } = await rpc().getLatestBlockhash().send()
  const message = pipe(
    createTransactionMessage({ version: 0 }),
    (empty) => setTransactionMessageFeePayerSigner(payer, empty),
    (paid) => setTransactionMessageLifetimeUsingBlockhash(value, paid),
    (timed) =>
      appendTransactionMessageInstructions(
        [getTransferSolInstruction({ source: payer, destination: payer.address, amount: 1n })],
        timed,
      ),
    (acting) => setTransactionMessageComputeUnitLimit(1_000, acting),
    (limited) => setTransactionMessageComputeUnitPrice(2_500_000n, limited),
  )
  const signed = await signTransactionMessageWithSigners(message)
  await send({
    wire: getBase64EncodedWireTransaction(signed),
    signature: getSignatureFromTransaction(signed),
  })
  await mine()
  expect(await sol(payer.address)).toBe(SOL - 5_000n - 2_500n)
})

test('a transaction is taken once, and only as long as its blockhash is not too old', async () => {
  const payer = await funded()
  const to = await devnet.freshAddress('SOL')
  const [once, late] = [await pay(payer, to, 1_000_000n), await pay(payer, to, 2_000_000n)]
  await send(once)
  await send(once)
  await mine()
  expect((await send(once)).error?.data?.err).toBe('AlreadyProcessed')
  expect((await send(once, true)).result).toBe(once.signature)
  await mine(152)
  expect((await send(late)).error?.data?.err).toBe('BlockhashNotFound')
  await send(late, true)
  await mine()
  expect(await sol(to)).toBe(1_000_000n)
})

test('a signature that is not of the sender is refused', async () => {
  const payer = await funded()
  const { wire, signature } = await pay(payer, await devnet.freshAddress('SOL'), SOL / 4n)
  const bytes = Buffer.from(wire, 'base64')
  bytes[10] = (bytes[10] ?? 0) ^ 1
  expect((await send({ wire: bytes.toString('base64'), signature })).error?.code).toBe(-32003)
})

test('a frozen account takes no tokens; tokens that are named alike are others', async () => {
  const authority = await faucet()
  const owner = await devnet.freshAddress('SOL')
  await devnet.send('SOL', 'USDC', owner, 1_000_000n)
  await mine()
  const [mint, account] = [address(info().mints.USDC.address), address(await holdingOf(owner, 'USDC'))]
  await send(await write(authority, getFreezeAccountInstruction({ account, mint, owner: authority })))
  await mine()
  const source = address(await holdingOf(authority.address, 'USDC'))
  const again = getTransferCheckedInstruction({
    source,
    mint,
    destination: account,
    authority,
    amount: 1n,
    decimals: 6,
  })
  expect((await send(await write(authority, again))).error?.data?.err).toEqual({
    InstructionError: [0, { Custom: 17 }],
  })
  expect(await usdc(owner)).toBe(1_000_000n)
})

test('equal payments of one moment are all made', async () => {
  const to = await devnet.freshAddress('SOL')
  const sent = await Promise.all(Array.from({ length: 5 }, () => devnet.send('SOL', 'SOL', to, SOL)))
  expect(new Set(sent.map(({ txHash }) => txHash)).size).toBe(5)
  await mine()
  expect(await sol(to)).toBe(5n * SOL)
})

test('a submitted transaction fails, is dropped, or its reply is lost, as it is told', async () => {
  const payer = await funded()
  const to = await devnet.freshAddress('SOL')
  const next = (amount: bigint) => pay(payer, to, amount)
  devnet.trouble('SOL', {
    submits: [{ failWith: 'BlockhashNotFound' }, 'drop', 'lose reply', { failWith: 'Broken' }],
  })
  expect((await send(await next(1_000_000n))).error?.code).toBe(-32002)
  expect((await send(await next(2_000_000n))).error).toBeUndefined()
  await expect(send(await next(4_000_000n))).rejects.toThrow()
  const failed = await next(8_000_000n)
  await send(failed)
  await mine()
  expect((await landed(failed.signature))?.meta?.err).toBe('Broken')
  expect(await sol(to)).toBe(4_000_000n)
})

test('it is behind, or another network, when it is told to be', async () => {
  const slot = async () => (await ask<number>('getSlot', { commitment: 'confirmed' })).result ?? 0
  const before = await slot()
  await mine(20)
  devnet.trouble('SOL', { blocksBehind: 20 + info().finalDepth })
  expect(await slot()).toBe(before)
  devnet.trouble('SOL', { isStranger: true })
  expect((await ask('getGenesisHash')).result).not.toBe(info().genesisHash)
})

test('a block that is not final is undone with what was in it, which may be sent again; what is final stays', async () => {
  const [payer, to] = [await funded(), await devnet.freshAddress('SOL')]
  const sent = await pay(payer, to, SOL / 10n)
  await send(sent)
  await mine(0)
  expect((await landed(sent.signature))?.meta?.err).toBeNull()
  await devnet.reorg('SOL', 1)
  expect(await landed(sent.signature)).toBeNull()
  await mine()
  expect(await sol(to)).toBe(0n)
  await send(sent)
  await mine()
  expect(await sol(to)).toBe(SOL / 10n)
  await expect(devnet.reorg('SOL', info().finalDepth + 1)).rejects.toThrow('final')
})

test('a stopped chain goes on with its accounts, blocks, signatures and queue', async () => {
  const payer = await funded()
  const [to, later] = [await devnet.freshAddress('SOL'), await devnet.freshAddress('SOL')]
  const { txHash } = await devnet.send('SOL', 'USDC', to, 3_000_000n)
  await mine()
  const waiting = await pay(payer, later, SOL / 10n)
  await send(waiting)
  const said = async () => [
    await ask('getSlot'),
    await ask('getLatestBlockhash'),
    await ask('getSignatureStatuses', [txHash], { searchTransactionHistory: true }),
    await ask('getBlock', (await ask<number>('getSlot')).result, { transactionDetails: 'accounts' }),
    info(),
  ]
  const before = await said()
  await devnet.stop()
  devnet = await start()
  expect(await said()).toEqual(before)
  await mine()
  expect([await usdc(to), await sol(later)]).toEqual([3_000_000n, SOL / 10n])
  await pay(payer, later, SOL / 10n).then(send)
  await mine()
  expect(await sol(later)).toBe(SOL / 5n)
})

test('stopping it twice is stopping it once', async () => {
  await devnet.stop()
  await devnet.stop()
})

test('a process that has nothing else left waits until the virtual machine has stopped', async () => {
  expect((await runScript('run_vm.ts')).said).toBe('stopped')
})

test('a machine without Surfpool is told so', () => {
  expect(loadSurfpool()).not.toBeNull()
  expect(loadSurfpool('@solana/surfpool-for-no-machine')).toBeNull()
})
