import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Devnet, startDevnet } from '@cambist/devnet'
import { createKeyPairSignerFromPrivateKeyBytes, type Instruction, type KeyPairSigner } from '@solana/kit'
import { solana } from '../../src/chains/solana/index.ts'
import type { SolanaSettings } from '../../src/chains/solana/settings.ts'
import { assetOf } from '../../src/domain/catalog/assets.ts'
import { amountOf, fromChainUnits, toChainUnits } from '../../src/domain/money/amount.ts'
import { PATIENCE_MS } from '../harness/patience.ts'
import { submitSolana } from '../harness/submit_solana.ts'
import type { ChainDriver } from './chain_driver.ts'
import { payoutSigner } from './payout_signer.ts'

type SolanaInfo = NonNullable<Devnet['networks']['SOL']>

export type SolanaDriver = ChainDriver & {
  readonly info: SolanaInfo
  readonly devnet: Devnet
  /** Whoever holds everything at first, and owns the mints. */
  readonly faucet: KeyPairSigner
  /** A transaction of the faucet's, sent whatever becomes of it; answers its signature. */
  submit(...instructions: readonly Instruction[]): Promise<string>
}

/** An attempt lives for so many blocks, and is known to be over when so much later is final. */
const BLOCKS_TO_BE_OVER = 151

/** The devnet's Solana with our reserve funded, and the real signer over throw-away keys. */
export async function startSolanaDriver(): Promise<SolanaDriver> {
  const dataDir = mkdtempSync(join(tmpdir(), 'cambist-solana-'))
  const devnet = await startDevnet({ dataDir, networks: ['SOL'], mining: 'manual', isLasting: false })
  const info = devnet.networks.SOL
  if (info === undefined) throw new Error('the devnet runs Solana')
  const tokens = { 'USDC:SOL': info.mints.USDC.address } as const
  const signer = payoutSigner({ solana: { feeLamportsMax: 1_000_000n }, contracts: tokens }, (intent) => {
    if (intent.family !== 'solana') throw new Error('the intent is of Solana')
    const asset = intent.token === null ? 'SOL:SOL' : 'USDC:SOL'
    return { asset, destination: intent.to, destinationTag: null }
  })
  const addressOf = async (purpose: 'deposit' | 'reserve', index: number) =>
    (await signer.addresses('solana', purpose, index, 1))[0] ?? ''
  const reserve = await addressOf('reserve', 0)
  const settings: SolanaSettings = {
    id: 'SOL',
    rpcUrl: info.rpcUrl,
    genesisHash: info.genesisHash,
    tokens,
    feeLamportsMax: 1_000_000n,
    timeoutMs: PATIENCE_MS,
    reserveAddress: () => reserve,
  }
  for (const asset of ['SOL:SOL', 'USDC:SOL'] as const) {
    const units = toChainUnits(amountOf(asset, 2n * assetOf(asset).maxAmount))
    await devnet.send('SOL', currencyOf(asset), reserve, units)
  }
  await devnet.mine('SOL', 1)
  let deposits = 0
  return {
    ...(await outsiders(devnet, info)),
    info,
    devnet,
    chain: solana(settings),
    rpcUrl: info.rpcUrl,
    broadcastMethod: 'sendTransaction',
    chainAt: (rpcUrl, timeoutMs) => solana({ ...settings, rpcUrl, timeoutMs }),
    stranger: () => solana({ ...settings, genesisHash: '5eykt4UsFv8P8NJdTREpY1vzqKqZKvdpKuc147dw2N9d' }),
    ourAddress: () => addressOf('deposit', deposits++),
    reserveAddress: async () => reserve,
    lose: async (send) => {
      devnet.trouble('SOL', { submits: ['drop'] })
      await send()
      await devnet.mine('SOL', BLOCKS_TO_BE_OVER)
    },
    funds: async () => ({ model: 'timed', from: { purpose: 'reserve', index: 0 } }),
    sign: signer.pay,
    stop: async () => {
      await devnet.stop()
      rmSync(dataDir, { recursive: true, force: true })
    },
  }
}

function currencyOf(asset: Parameters<typeof assetOf>[0]): 'SOL' | 'USDC' {
  return assetOf(asset).currency as 'SOL' | 'USDC'
}

type Outside = Pick<
  SolanaDriver,
  'outsideAddress' | 'send' | 'sendTogether' | 'replace' | 'mine' | 'reorg' | 'holds' | 'faucet' | 'submit'
>

async function outsiders(devnet: Devnet, info: SolanaInfo): Promise<Outside> {
  const faucet = await createKeyPairSignerFromPrivateKeyBytes(Buffer.from(info.faucetKey, 'hex'))
  return {
    faucet,
    submit: (...instructions) => submitSolana(devnet, faucet, ...instructions),
    outsideAddress: () => devnet.freshAddress('SOL'),
    send: async (asset, to, units) =>
      (await devnet.send('SOL', currencyOf(asset), to, toChainUnits(amountOf(asset, units)))).txHash,
    sendTogether: async () => {
      throw new Error('several payments in one transaction are tried apart')
    },
    replace: async () => {
      throw new Error('nothing is replaced on Solana')
    },
    mine: (blocks) => devnet.mine('SOL', blocks),
    reorg: (depth) => devnet.reorg('SOL', depth),
    holds: async (asset, address) =>
      fromChainUnits(asset, await devnet.balance('SOL', currencyOf(asset), address)).units,
  }
}
