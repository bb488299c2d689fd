import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type ContractName, type Devnet, type EvmClient, startDevnet } from '@cambist/devnet'
import { type Address, encodeDeployData, encodeFunctionData, getAddress, type Hex } from 'viem'
import { type EvmSettings, evm } from '../../src/chains/evm/index.ts'
import { type AssetId, assetOf, assets, nativeAsset } from '../../src/domain/catalog/assets.ts'
import { amountOf, fromChainUnits, toChainUnits } from '../../src/domain/money/amount.ts'
import { PATIENCE_MS } from '../harness/patience.ts'
import type { ChainDriver } from './chain_driver.ts'
import { payoutSigner } from './payout_signer.ts'

/** Of connector and signer alike: what the one writes down the other signs. */
const GAS_LIMIT_MAX = 500_000n

export type EvmDriver = ChainDriver & {
  readonly client: EvmClient
  /** Settings under which this node is the right one; tests change what they are about. */
  readonly settings: EvmSettings
  /** Deploys and mines a contract of the devnet's. */
  deploy(name: ContractName, args?: readonly unknown[]): Promise<Address>
  /** Deploys and mines a contract that consists of just this code. */
  deployCode(runtime: string): Promise<Address>
  /** Calls a contract as the faucet; waits to be mined. Gas is given, so a call that fails is sent too. */
  callAsFaucet(to: Address | null, data: Hex, wei?: bigint): Promise<Hex>
  encode(name: ContractName, functionName: string, args: readonly unknown[]): Hex
}

/** A real anvil with our reserve funded, and the real signer over throw-away keys. */
export async function startEvmDriver(id: 'ETH' | 'BNB'): Promise<EvmDriver> {
  const dataDir = mkdtempSync(join(tmpdir(), 'cambist-evm-'))
  const devnet = await startDevnet({ dataDir, networks: [id], mining: 'manual', isLasting: false })
  try {
    return await assemble(id, devnet, dataDir)
  } catch (error) {
    await devnet.stop()
    throw error
  }
}

async function assemble(id: 'ETH' | 'BNB', devnet: Devnet, dataDir: string): Promise<EvmDriver> {
  const network = devnet.networks[id]
  if (network === undefined) throw new Error(`the devnet runs ${id}`)
  const contracts = contractsOf(id, network.tokens)
  const signer = signerFor(id, network.chainId, contracts)
  const addressOf = async (purpose: 'deposit' | 'reserve', index: number) => {
    const [address] = await signer.addresses('evm', purpose, index, 1)
    if (address === undefined) throw new Error('the signer has addresses')
    return address
  }
  const reserve = await addressOf('reserve', 0)
  const settings: EvmSettings = {
    id,
    rpcUrl: network.rpcUrl,
    evmChainId: network.chainId,
    tokens: contracts,
    maxFeePerGasWeiMax: 500n * 10n ** 9n,
    gasLimitMax: GAS_LIMIT_MAX,
    timeoutMs: PATIENCE_MS,
    reserveAddress: () => reserve,
    // Both ways are proven: Ethereum nodes are of many kinds, those of BNB Smart Chain are geth's kin.
    tracing: id === 'ETH' ? 'trace' : 'debug',
  }
  let deposits = 0
  const acts = actionsOf(devnet, id)
  for (const asset of [nativeAsset(id).id, ...Object.keys(contracts)] as AssetId[]) {
    const units = assetOf(asset).maxAmount
    await devnet.send(id, assetOf(asset).currency, reserve, toChainUnits(amountOf(asset, units)))
  }
  const payer = await acts.deploy('Payer')
  // Buried below the deepest reorg, so that no test takes the reserve away.
  await devnet.mine(id, 20)
  return {
    ...acts,
    ...outsiders(devnet, id, payer, acts),
    settings,
    chain: evm(settings),
    rpcUrl: network.rpcUrl,
    broadcastMethod: 'eth_sendRawTransaction',
    chainAt: (rpcUrl, timeoutMs) => evm({ ...settings, rpcUrl, timeoutMs }),
    stranger: () => evm({ ...settings, evmChainId: 1 }),
    ourAddress: () => addressOf('deposit', deposits++),
    reserveAddress: async () => reserve,
    async funds() {
      const nonce = await acts.client.getTransactionCount({
        address: reserve as Address,
        blockTag: 'pending',
      })
      return { model: 'account', from: { purpose: 'reserve', index: 0 }, nonce }
    },
    sign: signer.pay,
    async stop() {
      await devnet.stop()
      rmSync(dataDir, { recursive: true, force: true })
    },
  }
}

/** The people outside who pay, and the blocks they wait for. */
function outsiders(
  devnet: Devnet,
  id: 'ETH' | 'BNB',
  payer: Address,
  acts: ReturnType<typeof actionsOf>,
): Pick<ChainDriver, 'outsideAddress' | 'send' | 'sendTogether' | 'replace' | 'mine' | 'reorg' | 'holds'> {
  return {
    outsideAddress: () => devnet.freshAddress(id),
    async send(asset, to, units) {
      const chainUnits = toChainUnits(amountOf(asset, units))
      return (await devnet.send(id, assetOf(asset).currency, to, chainUnits)).txHash
    },
    sendTogether(payments) {
      const values = payments.map(({ units }) => units)
      const data = acts.encode('Payer', 'payBatch', [payments.map(({ to }) => to), values])
      const total = values.reduce((sum, value) => sum + value, 0n)
      return acts.callAsFaucet(payer, data, total)
    },
    async replace(txHash, change) {
      const isSamePayment = change.to === undefined && change.units === undefined
      return (await devnet.replace(txHash, isSamePayment ? { feeBumpOnly: true } : change)).txHash
    },
    mine: (blocks) => devnet.mine(id, blocks),
    async reorg(depth) {
      await devnet.reorg(id, depth)
      // anvil's other branch is only as long as the old one.
      await devnet.mine(id, 1)
    },
    async holds(asset, address) {
      return fromChainUnits(asset, await devnet.balance(id, assetOf(asset).currency, address)).units
    },
  }
}

type Tokens = Readonly<Record<'USDT' | 'USDC', { readonly address: Address }>>

function contractsOf(id: 'ETH' | 'BNB', tokens: Tokens): EvmSettings['tokens'] {
  return id === 'ETH'
    ? { 'USDT:ERC20': tokens.USDT.address, 'USDC:ERC20': tokens.USDC.address }
    : { 'USDT:BEP20': tokens.USDT.address, 'USDC:BEP20': tokens.USDC.address }
}

function actionsOf(devnet: Devnet, id: 'ETH' | 'BNB') {
  const { client, contracts } = devnet.evm(id)
  const callAsFaucet = (to: Address | null, data: Hex, wei = 0n): Promise<Hex> =>
    client.sendTransaction({ to, data, value: wei, gas: 3_000_000n })
  const deployedBy = async (txHash: Hex): Promise<Address> => {
    await devnet.mine(id, 1)
    const { contractAddress, status } = await client.getTransactionReceipt({ hash: txHash })
    if (status !== 'success' || !contractAddress) throw new Error('the contract was deployed')
    return getAddress(contractAddress)
  }
  return {
    client,
    callAsFaucet,
    encode: (name: ContractName, functionName: string, args: readonly unknown[]): Hex =>
      encodeFunctionData({ abi: contracts[name].abi, functionName, args }),
    async deploy(name: ContractName, args: readonly unknown[] = []) {
      const { abi, bytecode } = contracts[name]
      return deployedBy(await callAsFaucet(null, encodeDeployData({ abi, bytecode, args })))
    },
    async deployCode(runtime: string) {
      const length = (runtime.length / 2).toString(16).padStart(2, '0')
      // PUSH1 length, DUP1, PUSH1 9, PUSH0, CODECOPY, PUSH0, RETURN: answers with what follows it.
      return deployedBy(await callAsFaucet(null, `0x60${length}8060095f395ff3${runtime}`))
    },
  }
}

function signerFor(id: 'ETH' | 'BNB', chainId: number, contracts: EvmSettings['tokens']) {
  const caps = { gasLimitMax: GAS_LIMIT_MAX, feePerGasWeiMax: 500n * 10n ** 9n, sweepGasWeiMax: 0n }
  return payoutSigner({ evm: { [id]: { chainId, ...caps } }, contracts }, (intent) => {
    if (intent.family !== 'evm') throw new Error('the intent is of an EVM chain')
    const token = assets.find((asset) => intent.token !== null && contracts[asset.id] === intent.token)
    const asset = (token ?? nativeAsset(intent.chain)).id
    return { asset, destination: intent.to, destinationTag: null }
  })
}
