import { encodeDeployData, erc20Abi, type Hex, parseEther } from 'viem'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { type ContractName, type Devnet, startDevnet } from '../src/index.ts'
import { waitFor } from '../src/processes/wait.ts'
import { makeTemporaryFolder } from './harness.ts'

/**
 * What: the devnet sends, mines, reorganises and double-spends for real.
 * How: real nodes that mine only when a test says so; the nodes are asked, not our own code.
 */
const folder = makeTemporaryFolder()
let devnet: Devnet

beforeAll(async () => {
  devnet = await startDevnet({
    dataDir: folder.path,
    mining: 'manual',
    blockIntervalMs: { BTC: 100, ETH: 100 },
  })
})

afterAll(async () => {
  await devnet?.stop()
  folder.remove()
})

const rpc = <T>(method: string, params: unknown[] = []) => devnet.bitcoin.rpc<T>(method, params)
const mempool = () => rpc<string[]>('getrawmempool')
const client = () => devnet.evm('ETH').client

/** The hashes of what a node holds that no block has. */
async function waitingIn(network: 'BTC' | 'ETH' | 'BNB'): Promise<Set<string>> {
  if (network === 'BTC') return new Set(await mempool())
  const { pending } = await devnet.evm(network).client.getTxpoolContent()
  return new Set(Object.values(pending).flatMap((byNonce) => Object.values(byNonce).map(({ hash }) => hash)))
}

async function deploy(name: ContractName, args: unknown[] = []): Promise<Hex> {
  const { abi, bytecode } = devnet.evm('ETH').contracts[name]
  const hash = await client().sendTransaction({ data: encodeDeployData({ abi, bytecode, args }) })
  await devnet.mine('ETH', 1)
  const { contractAddress } = await client().getTransactionReceipt({ hash })
  if (!contractAddress) throw new Error(`${name} was not deployed`)
  return contractAddress
}

async function call(name: ContractName, address: Hex, functionName: string, args: unknown[], value = 0n) {
  const { abi } = devnet.evm('ETH').contracts[name]
  const hash = await client().writeContract({ abi, address, functionName, args, value })
  await devnet.mine('ETH', 1)
  return client().getTransactionReceipt({ hash })
}

test('all networks on real nodes are there, on loopback', () => {
  expect(devnet.missing).toEqual([])
  const { BTC, ETH, BNB } = devnet.networks
  for (const network of [BTC, ETH, BNB]) expect(new URL(network?.rpcUrl ?? '').hostname).toBe('127.0.0.1')
})

test('USDT and USDC have 6 decimals on Ethereum and 18 on BNB Smart Chain', async () => {
  for (const [network, decimals] of [
    ['ETH', 6],
    ['BNB', 18],
  ] as const) {
    for (const symbol of ['USDT', 'USDC'] as const) {
      const token = devnet.networks[network]?.tokens[symbol]
      const address = token?.address ?? '0x'
      const read = { address, abi: erc20Abi } as const
      const chain = devnet.evm(network).client
      expect(token?.decimals).toBe(decimals)
      expect(await chain.readContract({ ...read, functionName: 'decimals' })).toBe(decimals)
      expect(await chain.readContract({ ...read, functionName: 'symbol' })).toBe(symbol)
    }
  }
})

test('a payment waits in the mempool until a block is mined', async () => {
  for (const [network, currency, units] of [
    ['BTC', 'BTC', 12_345_678n],
    ['ETH', 'ETH', 10n ** 18n + 1n],
    ['ETH', 'USDT', 5_000_001n],
    ['BNB', 'USDC', 10n ** 19n + 1n],
  ] as const) {
    const to = await devnet.freshAddress(network)
    await devnet.send(network, currency, to, units)
    expect(await devnet.balance(network, currency, to)).toBe(0n)
    await devnet.mine(network, 1)
    expect(await devnet.balance(network, currency, to)).toBe(units)
  }
})

test('sixty payments at once on each network all arrive', async () => {
  for (const [network, currency] of [
    ['BTC', 'BTC'],
    ['ETH', 'USDC'],
    ['BNB', 'BNB'],
  ] as const) {
    const to = await devnet.freshAddress(network)
    const sent = await Promise.all(
      Array.from({ length: 60 }, () => devnet.send(network, currency, to, 100_000n)),
    )
    const hashes = new Set(sent.map(({ txHash }) => txHash))
    const waiting = hashes.intersection(await waitingIn(network))
    expect({ network, sent: hashes.size, waiting: waiting.size }).toEqual({ network, sent: 60, waiting: 60 })
    await devnet.mine(network, 1)
    const left = hashes.intersection(await waitingIn(network))
    const units = await devnet.balance(network, currency, to)
    expect({ network, left: [...left], units }).toEqual({ network, left: [], units: 6_000_000n })
  }
})

test('an Ethereum reorg takes the payment out of the chain', async () => {
  const to = await devnet.freshAddress('ETH')
  const { txHash } = await devnet.send('ETH', 'ETH', to, 7n)
  await devnet.mine('ETH', 13)
  const before = await client().getBlock()
  await devnet.reorg('ETH', 13)
  const after = await client().getBlock()
  expect(after.number).toBe(before.number)
  expect(after.hash).not.toBe(before.hash)
  expect(await devnet.balance('ETH', 'ETH', to)).toBe(0n)
  await expect(client().getTransactionReceipt({ hash: txHash as Hex })).rejects.toThrow()
  await devnet.send('ETH', 'ETH', to, 9n)
  await devnet.mine('ETH', 1)
  expect(await devnet.balance('ETH', 'ETH', to)).toBe(9n)
})

test('what waited before an Ethereum reorg waits for its turn again, and is lost by nobody', async () => {
  const [first, lost, waiting, later] = [
    await devnet.freshAddress('ETH'),
    await devnet.freshAddress('ETH'),
    await devnet.freshAddress('ETH'),
    await devnet.freshAddress('ETH'),
  ]
  const { txHash } = await devnet.send('ETH', 'ETH', first, 1n)
  await devnet.send('ETH', 'ETH', lost, 2n)
  await devnet.mine('ETH', 1)
  await devnet.send('ETH', 'ETH', waiting, 3n)
  const bytes = await rawOf(txHash)
  await devnet.reorg('ETH', 1)
  await client().sendRawTransaction({ serializedTransaction: bytes })
  // The second is never sent again: the next payment has its nonce.
  await devnet.send('ETH', 'ETH', later, 4n)
  await devnet.mine('ETH', 1)
  const paid = await Promise.all([first, lost, waiting, later].map((to) => devnet.balance('ETH', 'ETH', to)))
  expect(paid).toEqual([1n, 0n, 3n, 4n])
})

/**
 * Takes out the block below a payment that waits, and does something while the node is made to queue that one again.
 * The payment in the block is never sent again: the next one has its nonce. Returns where the waiting one goes.
 */
async function reorgBelowAWaitingPayment(meanwhile: (waiting: Hex) => Promise<unknown>): Promise<string> {
  const to = await devnet.freshAddress('ETH')
  await devnet.send('ETH', 'ETH', await devnet.freshAddress('ETH'), 1n)
  await devnet.mine('ETH', 1)
  const { txHash } = await devnet.send('ETH', 'ETH', to, 3n)
  const waiting = await rawOf(txHash)
  const { dropTransaction } = client()
  const dropping = vi.spyOn(client(), 'dropTransaction').mockImplementationOnce(async (dropped) => {
    expect(dropped).toEqual({ hash: txHash })
    await dropTransaction(dropped)
    await meanwhile(waiting)
  })
  try {
    await devnet.reorg('ETH', 1)
    expect(dropping).toHaveBeenCalledTimes(1)
  } finally {
    dropping.mockRestore()
  }
  return to
}

function rawOf(hash: string): Promise<Hex> {
  return client().request({ method: 'eth_getRawTransactionByHash', params: [hash] } as never)
}

test('what waits during an Ethereum reorg may be sent again by somebody else meanwhile', async () => {
  const to = await reorgBelowAWaitingPayment((waiting) =>
    client().sendRawTransaction({ serializedTransaction: waiting }),
  )
  await devnet.send('ETH', 'ETH', await devnet.freshAddress('ETH'), 5n)
  await devnet.mine('ETH', 1)
  expect(await devnet.balance('ETH', 'ETH', to)).toBe(3n)
})

test('a payment during an Ethereum reorg does not take the nonce of one that waits', async () => {
  const later = await devnet.freshAddress('ETH')
  let sending: Promise<unknown> = Promise.resolve()
  const to = await reorgBelowAWaitingPayment(async () => {
    sending = devnet.send('ETH', 'ETH', later, 5n)
    // As many turns as a payment takes that waits for nobody.
    for (let turn = 0; turn < 10; turn += 1) await client().getBlock()
  })
  await sending
  await devnet.mine('ETH', 1)
  const paid = await Promise.all([to, later].map((address) => devnet.balance('ETH', 'ETH', address)))
  expect(paid).toEqual([3n, 5n])
})

test('an Ethereum reorg of empty blocks makes other blocks, however often within a second', async () => {
  // Until the base fee has nowhere to fall: then blocks have nothing left to differ by.
  await devnet.mine('ETH', 150)
  for (let again = 0; again < 5; again += 1) {
    const oldest = (await client().getBlock()).number - 1n
    const before = await client().getBlock({ blockNumber: oldest })
    await devnet.reorg('ETH', 2)
    expect((await client().getBlock({ blockNumber: oldest })).hash).not.toBe(before.hash)
    await devnet.mine('ETH', 2)
  }
})

test('an Ethereum that is mined and reorganised meanwhile answers what an address holds', async () => {
  const to = await devnet.freshAddress('ETH')
  await devnet.send('ETH', 'USDC', to, 5n)
  await devnet.mine('ETH', 1)
  let isMoving = true
  const moving = (async () => {
    for (let round = 0; round < 60; round += 1) {
      await devnet.mine('ETH', 6)
      await devnet.reorg('ETH', 5)
    }
  })().finally(() => {
    isMoving = false
  })
  while (isMoving) {
    const read = await Promise.all(Array.from({ length: 8 }, () => devnet.balance('ETH', 'USDC', to)))
    expect(new Set(read)).toEqual(new Set([5n]))
  }
  await moving
})

test('EVM payments, native and token, are replaced under the same nonce', async () => {
  for (const currency of ['ETH', 'USDT'] as const) {
    const [to, other] = [await devnet.freshAddress('ETH'), await devnet.freshAddress('ETH')]
    const first = await devnet.send('ETH', currency, to, 500n)
    const second = await devnet.replace(first.txHash, { to: other })
    const bumped = await devnet.replace(second.txHash, { feeBumpOnly: true })
    const third = await devnet.replace(bumped.txHash, { units: 600n })
    await devnet.mine('ETH', 1)
    expect((await client().getTransactionReceipt({ hash: third.txHash as Hex })).status).toBe('success')
    expect(await devnet.balance('ETH', currency, to)).toBe(0n)
    expect(await devnet.balance('ETH', currency, other)).toBe(600n)
  }
})

test('a transaction that no network knows cannot be replaced', async () => {
  await expect(devnet.replace('00'.repeat(32))).rejects.toThrow('no network')
  await expect(devnet.replace(`0x${'00'.repeat(32)}`)).rejects.toThrow('no network')
})

test('the fake tokens say Transfer and move nothing, or less', async () => {
  const to = (await devnet.freshAddress('ETH')) as Hex
  const spoof = await deploy('SpoofToken')
  const liar = await deploy('FalseReturnToken')
  const fee = await deploy('FeeOnTransferToken', [100n, 10n ** 12n])
  for (const [name, address, arrived] of [
    ['SpoofToken', spoof, 0n],
    ['FalseReturnToken', liar, 0n],
    ['FeeOnTransferToken', fee, 990_000n],
  ] as const) {
    const receipt = await call(name, address, 'transfer', [to, 1_000_000n])
    expect(receipt.status).toBe('success')
    expect(receipt.logs).toHaveLength(1)
    const balanceOf = { address, abi: erc20Abi, functionName: 'balanceOf', args: [to] } as const
    expect(await client().readContract(balanceOf)).toBe(arrived)
  }
})

test('internal transfers arrive and are traced, reverted ones do not arrive', async () => {
  const payer = await deploy('Payer')
  const [to, unpaid] = [await devnet.freshAddress('ETH'), await devnet.freshAddress('ETH')]
  const forwarded = await call('Payer', payer, 'forward', [to], parseEther('1'))
  const reverted = await call('Payer', payer, 'payAndRevertInside', [unpaid], parseEther('1'))
  expect([forwarded.status, reverted.status]).toEqual(['success', 'success'])
  expect(await devnet.balance('ETH', 'ETH', to)).toBe(parseEther('1'))
  expect(await devnet.balance('ETH', 'ETH', unpaid)).toBe(0n)
  const block = `0x${forwarded.blockNumber.toString(16)}`
  const tracer = { tracer: 'callTracer' }
  for (const [method, params] of [
    ['trace_block', [block]],
    ['debug_traceBlockByNumber', [block, tracer]],
    ['debug_traceTransaction', [forwarded.transactionHash, tracer]],
  ] as const) {
    const trace = await client().request({ method, params } as never)
    expect(JSON.stringify(trace).toLowerCase()).toContain(to.toLowerCase())
  }
  const batch = [await devnet.freshAddress('ETH'), await devnet.freshAddress('ETH')]
  await call('Payer', payer, 'payBatch', [batch, [1n, 2n]], 3n)
  expect(await devnet.balance('ETH', 'ETH', batch[1] ?? '')).toBe(2n)
  const rejecting = await deploy('RejectingReceiver')
  await expect(devnet.send('ETH', 'ETH', rejecting, 1n)).rejects.toThrow()
})

test('mining goes on by itself when resumed, and rests when paused', async () => {
  const heights = async () => [await rpc<number>('getblockcount'), Number(await client().getBlockNumber())]
  const [btc = 0, eth = 0] = await heights()
  // Each block is a second later than the one before: many within a second, as were mined before this, are ahead of the clock.
  const before = Number((await client().getBlock()).timestamp)
  devnet.resumeMining()
  await waitFor(
    'three blocks more',
    async () => {
      const [btcNow = 0, ethNow = 0] = await heights()
      return btcNow >= btc + 3 && ethNow >= eth + 3
    },
    { timeoutMs: 60_000 },
  )
  devnet.pauseMining()
  const block = await client().getBlock()
  expect(Math.abs(Number(block.timestamp) - Math.max(before, Date.now() / 1000))).toBeLessThan(60)
})

test('a second devnet in the same folder is refused', async () => {
  await expect(startDevnet({ dataDir: folder.path })).rejects.toThrow(`run by process ${process.pid}`)
})
