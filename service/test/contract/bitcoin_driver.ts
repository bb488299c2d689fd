import { createHmac, createSecretKey, randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { connectRpc, type Devnet, type Rpc, startDevnet } from '@cambist/devnet'
import { Address, OutScript, RawTx } from '@scure/btc-signer'
import { bitcoin } from '../../src/chains/bitcoin/index.ts'
import { systemClock } from '../../src/clock.ts'
import { bitcoinSpellings } from '../../src/domain/catalog/bitcoin_spellings.ts'
import { sealText } from '../../src/domain/orders/seal.ts'
import type { Intent, KeyPath } from '../../src/domain/payouts/intent.ts'
import { localSigner } from '../../src/signer/local_signer.ts'
import { memoryStore } from '../../src/signer/testing/memory_store.ts'
import { PATIENCE_MS } from '../harness/patience.ts'
import type { ChainDriver } from './chain_driver.ts'

/** Of connector and signer alike: what the one writes down the other signs. */
const FEE_SATOSHI_MAX = 100_000n

export type BitcoinDriver = ChainDriver & {
  readonly rpc: Rpc
  /** A transaction of somebody outside with these outputs, funded and signed; not sent. In no block up to `lockTime`. */
  build(
    outputs: readonly { readonly script: Uint8Array; readonly satoshi: bigint }[],
    lockTime?: number,
  ): Promise<string>
}

/** What stands behind the connector: the contract is the same. */
export const backings = ['bitcoind', 'simulated'] as const
type Backing = (typeof backings)[number]

/** A regtest node of the devnet's, the real connector, the real signer with a seed made for this run. */
export async function startBitcoinDriver(backing: Backing): Promise<BitcoinDriver> {
  const dataDir = mkdtempSync(join(tmpdir(), 'cambist-contract-bitcoin-'))
  const devnet = await startDevnet({
    dataDir,
    networks: ['BTC'],
    mining: 'manual',
    ...(backing === 'simulated' && { bitcoin: backing }),
  })
  const stop = async () => {
    await devnet.stop()
    rmSync(dataDir, { recursive: true, force: true })
  }
  const node = devnet.networks.BTC
  if (node?.backing !== backing) {
    await stop()
    throw new Error(`the bitcoin contract needs a bitcoind: ${JSON.stringify(node ?? devnet.missing)}`)
  }
  const { rpcUrl } = node
  const keys = startKeys()
  const chainAt = (url: string, timeoutMs: number, network: 'mainnet' | 'regtest' = 'regtest') =>
    bitcoin({
      id: 'BTC',
      rpcUrl: url,
      network,
      milliSatPerVbMax: 100_000n,
      feeSatoshiMax: FEE_SATOSHI_MAX,
      milliSatPerVbFallback: 5_000n,
      timeoutMs,
      scanTimeoutMs: timeoutMs,
    })
  const wallet = connectRpc(`${rpcUrl}/wallet/miner`)

  return {
    chain: chainAt(rpcUrl, PATIENCE_MS),
    rpcUrl,
    broadcastMethod: 'sendrawtransaction',
    chainAt,
    stranger: () => chainAt(rpcUrl, PATIENCE_MS, 'mainnet'),
    rpc: devnet.bitcoin.rpc,
    build: (outputs, lockTime) => build(wallet, outputs, lockTime),
    ourAddress: async () => (await keys.next('deposit')).address,
    reserveAddress: async () => (await keys.next('reserve')).address,
    outsideAddress: () => devnet.freshAddress('BTC'),
    send: async (_asset, to, units) => (await devnet.send('BTC', 'BTC', to, units)).txHash,
    async sendTogether(payments) {
      const outputs = payments.map(({ to, units }) => ({ script: scriptOf(to), satoshi: units }))
      return devnet.bitcoin.rpc<string>('sendrawtransaction', [await build(wallet, outputs)])
    },
    async replace(txHash, change) {
      const isFeeOnly = change.to === undefined && change.units === undefined
      return (await devnet.replace(txHash, isFeeOnly ? { feeBumpOnly: true } : change)).txHash
    },
    mine: (blocks) => devnet.mine('BTC', blocks),
    reorg: (depth) => devnet.reorg('BTC', depth),
    holds: (_asset, address) => devnet.balance('BTC', 'BTC', address),
    funds: (_asset, units) => fund(devnet, keys, units),
    sign: keys.sign,
    stop,
  }
}

function startKeys() {
  const sealKey = createSecretKey(randomBytes(32))
  const signer = localSigner({
    seed: randomBytes(64),
    store: memoryStore(),
    sealKey,
    clock: systemClock(),
    settings: {
      bitcoin: { network: 'regtest', feeRateSatPerVbMax: 200n, feeSatoshiMax: FEE_SATOSHI_MAX },
      evm: {},
      contracts: {},
      payoutUnitsMax: { 'BTC:BTC': 100_000_000n },
      limits: [],
    },
  })
  let used = 0
  return {
    async next(purpose: KeyPath['purpose']) {
      const key: KeyPath = { purpose, index: used++ }
      const [address = ''] = await signer.addresses('bitcoin', purpose, key.index, 1)
      return { address, key }
    },
    async sign(intent: Intent) {
      if (intent.family !== 'bitcoin') throw new Error('a bitcoin intent')
      const terms = {
        orderId: intent.payoutId.slice(0, intent.payoutId.lastIndexOf(':')),
        payoutAsset: 'BTC:BTC',
        destination: intent.payment.address,
        destinationTag: null,
        depositAsset: 'BTC:BTC',
        refundAddress: null,
      } as const
      const seal = createHmac('sha256', sealKey).update(sealText(terms)).digest('hex')
      const signed = await signer.sign(intent, { kind: 'payout', ...terms, payeeKey: null, seal })
      if (!signed.ok) throw new Error(`the signer refuses: ${signed.rejection.message}`)
      return signed.value
    },
  }
}

/** Two mined coins that only together leave room for a payout and its raise, and one of dust size. */
async function fund(devnet: Devnet, keys: ReturnType<typeof startKeys>, units: bigint) {
  const sizes = [units / 2n + 20_000n, units / 2n + 15_000n, 600n]
  const coins = []
  for (const satoshi of sizes) {
    const { address, key } = await keys.next('reserve')
    const { txHash } = await devnet.send('BTC', 'BTC', address, satoshi)
    const raw = RawTx.decode(
      Buffer.from(await devnet.bitcoin.rpc<string>('getrawtransaction', [txHash]), 'hex'),
    )
    const index = raw.outputs.findIndex(({ script }) => Buffer.compare(script, scriptOf(address)) === 0)
    coins.push({ txHash, index, satoshi, address, key })
  }
  await devnet.mine('BTC', 1)
  return { model: 'coins', coins, change: await keys.next('change') } as const
}

async function build(
  wallet: Rpc,
  outputs: readonly { script: Uint8Array; satoshi: bigint }[],
  lockTime = 0,
): Promise<string> {
  // The wallet funds nothing that is dust, so it is asked for more, and what is too much becomes fee.
  const asked = outputs.map(({ script, satoshi }) => ({
    script,
    amount: satoshi > 1_000n ? satoshi : 1_000n,
  }))
  const bare = { version: 2, segwitFlag: false, inputs: [], witnesses: [], lockTime }
  const unfunded = toHex(RawTx.encode({ ...bare, outputs: asked }))
  const { hex, changepos } = await wallet<{ hex: string; changepos: number }>('fundrawtransaction', [
    unfunded,
    { fee_rate: 10, changePosition: outputs.length },
    false,
  ])
  const funded = RawTx.decode(Buffer.from(hex, 'hex'))
  const change = changepos === -1 ? [] : [funded.outputs[changepos]].filter((output) => output !== undefined)
  const paid = outputs.map(({ script, satoshi }) => ({ script, amount: satoshi }))
  const unsigned = toHex(RawTx.encode({ ...funded, outputs: [...paid, ...change] }))
  const signed = await wallet<{ hex: string; complete: boolean }>('signrawtransactionwithwallet', [unsigned])
  if (!signed.complete) throw new Error('the miner could not sign')
  return signed.hex
}

function toHex(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('hex')
}

export function scriptOf(address: string): Uint8Array {
  return OutScript.encode(Address(bitcoinSpellings.regtest).decode(address))
}

/** The 20 bytes a P2WPKH address stands for. */
export function programOf(address: string): Uint8Array {
  const decoded = Address(bitcoinSpellings.regtest).decode(address)
  if (decoded.type !== 'wpkh') throw new Error(`${address} is P2WPKH`)
  return decoded.hash
}
