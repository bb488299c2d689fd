import { randomBytes } from 'node:crypto'
import { gunzipSync } from 'node:zlib'
import {
  type Address,
  createTestClient,
  decodeFunctionData,
  defineChain,
  encodeFunctionData,
  erc20Abi,
  getContractAddress,
  type Hex,
  http,
  parseGwei,
  publicActions,
  walletActions,
} from 'viem'
import { privateKeyToAccount, privateKeyToAddress } from 'viem/accounts'
import type { DevnetCurrency, LocalNetwork, Replacement } from '../local_network.ts'
import { createQueue, type Queue } from '../processes/queue.ts'
import type { Contracts } from './compile_contracts.ts'
import type { EvmProfile } from './evm_profiles.ts'
import { type Anvil, HISTORY_BLOCKS } from './start_anvil.ts'

export type TokenSymbol = 'USDT' | 'USDC'
export type Token = { readonly address: Address; readonly decimals: number }

/** The first key of every local EVM node (`test test … junk`): worthless by intent, and known, because stretching the phrase takes long. */
const faucet = privateKeyToAccount('0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80')
/** The eighth. It only deploys, so its first nonces, and with them the tokens' addresses, are the same on every chain. */
const deployer = privateKeyToAccount('0x4bbbf85ce3377467afe5d46f804f221813b2bb87f24d81f60f1fcdbf7cbf4356')
const TOKENS = [
  { symbol: 'USDT', name: 'Tether USD' },
  { symbol: 'USDC', name: 'USD Coin' },
] as const
const NATIVE_SUPPLY = 10n ** 27n

export type EvmClient = ReturnType<typeof connect>
export type EvmNetwork = LocalNetwork & {
  readonly rpcUrl: string
  readonly chainId: number
  readonly tokens: Readonly<Record<TokenSymbol, Token>>
  readonly client: EvmClient
}

/** The client signs as the faucet unless told otherwise, and can do all that tests want of anvil. */
function connect(rpcUrl: string, profile: EvmProfile) {
  const chain = defineChain({
    id: profile.chainId,
    name: `${profile.currency} devnet`,
    nativeCurrency: { name: profile.currency, symbol: profile.currency, decimals: 18 },
    rpcUrls: { default: { http: [rpcUrl] } },
  })
  return createTestClient({
    mode: 'anvil',
    account: faucet,
    chain,
    cacheTime: 0,
    pollingInterval: 50,
    transport: http(rpcUrl, { retryCount: 0, timeout: 60_000 }),
  })
    .extend(publicActions)
    .extend(walletActions)
}

export async function openEvmNetwork(
  node: Anvil,
  profile: EvmProfile,
  contracts: () => Contracts,
): Promise<EvmNetwork> {
  const client = connect(node.rpcUrl, profile)
  const tokens = await prepare(client, profile, contracts)
  const sending = createQueue()
  const mining = createQueue()
  const chain: Chain = { client, profile, tokens }
  return {
    rpcUrl: node.rpcUrl,
    chainId: profile.chainId,
    tokens,
    client,
    pid: node.pid,
    adopted: node.adopted,
    send: (currency, to, units) => sending(() => send(chain, currency, to as Address, units)),
    // Not while it mines or reorganises: anvil looks up "latest" in two steps, and refuses whoever asks between them
    // (https://github.com/foundry-rs/foundry/issues/10709).
    balance: (currency, address) => mining(() => balance(chain, currency, address as Address)),
    freshAddress,
    mine: (blocks) => mining(() => mineBlocks(client, blocks)),
    mineLively: livelyTurn(client, mining),
    // Nor while it reorganises may a payment be sent: it would take the nonce of one that is about to be queued again.
    reorg: (depth) => mining(() => sending(() => reorganise(client, depth))),
    replace: (txHash, replacement) =>
      /^0x[0-9a-f]{64}$/i.test(txHash)
        ? sending(() => replace(chain, txHash as Hex, replacement))
        : Promise.resolve(undefined),
    save: node.backUp,
    stop: node.stop,
  }
}

function freshAddress(): Address {
  return privateKeyToAddress(`0x${randomBytes(32).toString('hex')}`)
}

type Chain = {
  readonly client: EvmClient
  readonly profile: EvmProfile
  readonly tokens: Readonly<Record<TokenSymbol, Token>>
}

/** Funds the faucet and deploys the tokens, each only when it is not there yet. */
async function prepare(
  client: EvmClient,
  profile: EvmProfile,
  contracts: () => Contracts,
): Promise<Chain['tokens']> {
  const tokens = TOKENS.map(({ symbol }, nonce) => {
    const address = getContractAddress({ from: deployer.address, nonce: BigInt(nonce) })
    return [symbol, { address, decimals: profile.tokenDecimals }] as const
  })
  for (const account of [faucet, deployer]) {
    if ((await client.getBalance({ address: account.address })) < NATIVE_SUPPLY / 2n) {
      await client.setBalance({ address: account.address, value: NATIVE_SUPPLY })
    }
  }
  for (const [nonce, { symbol, name }] of TOKENS.entries()) {
    const address = tokens[nonce]?.[1].address
    if (address === undefined || (await client.getCode({ address })) !== undefined) continue
    const { abi, bytecode } = contracts().TestToken
    const args = [name, symbol, profile.tokenDecimals, faucet.address]
    await client.deployContract({ abi, bytecode, args, account: deployer, nonce })
    await client.mine({ blocks: 1 })
  }
  for (const [, { address }] of tokens) await mintSupply(client, profile, contracts, address)
  return Object.fromEntries(tokens) as Chain['tokens']
}

/** A step of its own: a kill may have come between the deployment and the minting. */
async function mintSupply(
  client: EvmClient,
  profile: EvmProfile,
  contracts: () => Contracts,
  address: Address,
): Promise<void> {
  const holder = { address, abi: erc20Abi, functionName: 'balanceOf', args: [faucet.address] } as const
  if ((await client.readContract(holder)) > 0n) return
  const supply = 10n ** BigInt(12 + profile.tokenDecimals)
  const { abi } = contracts().TestToken
  await client.writeContract({ address, abi, functionName: 'mint', args: [faucet.address, supply] })
  await client.mine({ blocks: 1 })
}

async function send(
  chain: Chain,
  currency: DevnetCurrency,
  to: Address,
  units: bigint,
): Promise<{ txHash: Hex }> {
  const { client } = chain
  const payment = paymentOf(chain, currency, to, units)
  const nonce = await client.getTransactionCount({ address: faucet.address, blockTag: 'pending' })
  const gas = await client.estimateGas({ account: faucet, ...payment, blockTag: 'latest' })
  const txHash = await client.sendTransaction({
    ...payment,
    ...(await currentFees(client)),
    nonce,
    gas: (gas * 6n) / 5n,
  })
  return { txHash }
}

function paymentOf(chain: Chain, currency: DevnetCurrency, to: Address, units: bigint) {
  if (currency === chain.profile.currency) return { to, value: units, data: '0x' as Hex }
  if (currency !== 'USDT' && currency !== 'USDC') {
    throw new Error(`there is no ${currency} on ${chain.profile.currency}`)
  }
  const data = encodeFunctionData({ abi: erc20Abi, functionName: 'transfer', args: [to, units] })
  return { to: chain.tokens[currency].address, value: 0n, data }
}

async function currentFees(client: EvmClient) {
  const { baseFeePerGas } = await client.getBlock()
  const maxPriorityFeePerGas = parseGwei('1')
  return { maxPriorityFeePerGas, maxFeePerGas: 2n * (baseFeePerGas ?? 0n) + maxPriorityFeePerGas }
}

function balance(chain: Chain, currency: DevnetCurrency, address: Address): Promise<bigint> {
  if (currency === chain.profile.currency) return chain.client.getBalance({ address })
  const token = chain.tokens[currency as TokenSymbol]
  if (token === undefined) throw new Error(`there is no ${currency} on ${chain.profile.currency}`)
  return chain.client.readContract({
    address: token.address,
    abi: erc20Abi,
    functionName: 'balanceOf',
    args: [address],
  })
}

/** One call a block: anvil's own `mine n` puts all waiting transactions in the first and hurries its clock. */
async function mineBlocks(client: EvmClient, blocks: number): Promise<void> {
  for (let block = 0; block < blocks; block++) await client.request({ method: 'evm_mine' } as never)
}

/**
 * A block a second while anything happens and until it is buried, then one in ten seconds: anvil writes its
 * whole chain each second, so a sandbox left alone for a day must not collect 86,400 empty blocks.
 */
function livelyTurn(client: EvmClient, mining: Queue): () => Promise<void> {
  const idleIntervalMs = 10_000
  let quietBlocks = 0
  let minedAtMs = 0
  return async () => {
    const { pending, queued } = await client.getTxpoolStatus()
    const isQuiet = pending + queued === 0
    if (isQuiet && quietBlocks > HISTORY_BLOCKS && Date.now() - minedAtMs < idleIntervalMs) return
    quietBlocks = isQuiet ? quietBlocks + 1 : 0
    minedAtMs = Date.now()
    await mining(() => mineBlocks(client, 1))
  }
}

/**
 * Same height, other blocks, all empty. Unlike a real chain, anvil does not put the transactions back into
 * the mempool; one of them that is broadcast again is mined again. What waits in the mempool stays there.
 */
async function reorganise(client: EvmClient, depth: number): Promise<void> {
  const before = await client.getBlock()
  const codes = await readCodes(client)
  // Empty blocks of the same second are the same blocks, unless somebody else has made them.
  await client.setCoinbase({ address: freshAddress() })
  await client.request({ method: 'anvil_reorg', params: [depth, []] } as never)
  const after = await client.getBlock()
  if (after.hash === before.hash) {
    throw new Error(`the chain cannot be reorganised ${depth} deep: the most is ${HISTORY_BLOCKS}`)
  }
  await restoreCodes(client, codes)
  await queueAgain(client)
}

/**
 * anvil 1.7.1 holds what waited before a reorganisation for ready, though the nonces before it are free again; when it
 * comes to mine that, it throws it away, and all that follows. What is sent again waits for its turn.
 */
async function queueAgain(client: EvmClient): Promise<void> {
  const { pending } = await client.getTxpoolContent()
  for (const [sender, byNonce] of Object.entries(pending)) {
    const next = await client.getTransactionCount({ address: sender as Address, blockTag: 'latest' })
    const waiting = Object.values(byNonce).toSorted((one, other) => Number(one.nonce) - Number(other.nonce))
    if (waiting[0] === undefined || Number(waiting[0].nonce) <= next) continue
    const raw: Hex[] = []
    for (const { hash } of waiting) {
      // Nothing, when its sender has replaced it meanwhile.
      const bytes = await client.request({ method: 'eth_getRawTransactionByHash', params: [hash] } as never)
      if (bytes !== null) raw.push(bytes)
    }
    for (const { hash } of waiting) await client.dropTransaction({ hash })
    for (const serializedTransaction of raw) {
      await client.sendRawTransaction({ serializedTransaction }).catch((error: Error) => {
        if (!NEED_NOT_WAIT.test(error.message)) throw error
      })
    }
  }
}

/**
 * Refusals of a transaction that need not wait any more: what paid for it has left the chain too, and a node keeps no
 * such transaction; or whoever made it was faster, and has sent it again or another in its place.
 */
const NEED_NOT_WAIT = /insufficient funds|transaction already imported|replacement transaction underpriced/i

type Codes = readonly { readonly address: Address; readonly code: Hex }[]

/** The dump is gzipped JSON in hex. */
async function readCodes(client: EvmClient): Promise<Codes> {
  const dump = await client.dumpState()
  const { accounts } = JSON.parse(gunzipSync(Buffer.from(dump.slice(2), 'hex')).toString()) as {
    accounts: Record<Address, { code: Hex }>
  }
  return Object.entries(accounts)
    .map(([address, { code }]) => ({ address: address as Address, code }))
    .filter(({ code }) => code.length > 2)
}

/**
 * Going back to a block from before a restart, anvil 1.7.1 brings every account back but forgets the code
 * of contracts. A contract that exists at that block is known by its nonce, which starts at 1.
 */
async function restoreCodes(client: EvmClient, codes: Codes): Promise<void> {
  for (const { address, code } of codes) {
    const [isThere, nonce] = [
      await client.getCode({ address }),
      await client.getTransactionCount({ address }),
    ]
    if (isThere === undefined && nonce > 0) await client.setCode({ address, bytecode: code })
  }
}

/** A real double spend: the same nonce at a higher price. */
async function replace(
  chain: Chain,
  txHash: Hex,
  replacement: Replacement,
): Promise<{ txHash: Hex } | undefined> {
  const { client } = chain
  const old = await client.getTransaction({ hash: txHash }).catch(() => undefined)
  if (old === undefined) return undefined
  if (old.blockNumber !== null) throw new Error(`${txHash} is already in a block`)
  if (old.from.toLowerCase() !== faucet.address.toLowerCase()) {
    throw new Error(`${txHash} was not sent by the faucet`)
  }
  const symbol = TOKENS.find(({ symbol }) => isSame(chain.tokens[symbol].address, old.to))?.symbol
  const paid = symbol === undefined ? { to: old.to as Address, units: old.value } : decodeTransfer(old.input)
  const isRedirected = replacement.feeBumpOnly !== true && replacement.units === undefined
  const to = (replacement.to ?? (isRedirected ? deployer.address : paid.to)) as Address
  const units = replacement.feeBumpOnly === true ? paid.units : (replacement.units ?? paid.units)
  const raised = (fee: bigint | undefined) => ((fee ?? 0n) * 3n) / 2n + 1n
  const hash = await client.sendTransaction({
    ...paymentOf(chain, symbol ?? chain.profile.currency, to, units),
    nonce: old.nonce,
    gas: old.gas > 100_000n ? old.gas : 100_000n,
    maxFeePerGas: raised(old.maxFeePerGas),
    maxPriorityFeePerGas: raised(old.maxPriorityFeePerGas),
  })
  return { txHash: hash }
}

function decodeTransfer(input: Hex): { to: Address; units: bigint } {
  const { functionName, args } = decodeFunctionData({ abi: erc20Abi, data: input })
  if (functionName !== 'transfer') throw new Error(`a token's ${functionName} cannot be replaced`)
  return { to: args[0], units: args[1] }
}

function isSame(a: string, b: string | null): boolean {
  return a.toLowerCase() === b?.toLowerCase()
}
