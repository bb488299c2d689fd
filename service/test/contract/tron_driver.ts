import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Devnet, startDevnet } from '@cambist/devnet'
import { TronWeb, type Types } from 'tronweb'
import { tron } from '../../src/chains/tron/index.ts'
import type { TronSettings } from '../../src/chains/tron/settings.ts'
import { assetOf } from '../../src/domain/catalog/assets.ts'
import { amountOf, fromChainUnits, toChainUnits } from '../../src/domain/money/amount.ts'
import { PATIENCE_MS } from '../harness/patience.ts'
import type { ChainDriver } from './chain_driver.ts'
import { payoutSigner } from './payout_signer.ts'

type TronInfo = NonNullable<Devnet['networks']['TRX']>

export type TronDriver = ChainDriver & {
  readonly info: TronInfo
  /** Whoever holds everything at first, with the field's own client. */
  readonly faucet: TronWeb
  /** A call of a contract by the faucet; answers its hash once it waits. */
  call(contract: string, name: string, args: readonly Argument[], sun?: number): Promise<string>
  submit(unsigned: Types.Transaction): Promise<string>
  /** What becomes of the next one that is submitted, the word being what its block says of it. */
  failNext(contractRet: string): void
  /** While `work` goes on, its node is another network's. */
  amongStrangers<Value>(work: () => Promise<Value>): Promise<Value>
}

type Argument = { readonly type: string; readonly value: unknown }

const FEE_LIMIT = 200_000_000
/** An attempt lives for sixty blocks, and is known to be over when so much later is solid. */
const BLOCKS_TO_BE_OVER = 85

/** The wire simulator of the devnet with our reserve funded, and the real signer over throw-away keys. */
export async function startTronDriver(): Promise<TronDriver> {
  const dataDir = mkdtempSync(join(tmpdir(), 'cambist-tron-'))
  const devnet = await startDevnet({ dataDir, networks: ['TRX'], mining: 'manual', isLasting: false })
  const info = devnet.networks.TRX
  if (info === undefined) throw new Error('the devnet runs TRON')
  const tokens = { 'USDT:TRC20': info.tokens.USDT.address } as const
  const signer = signerFor(tokens)
  const addressOf = async (purpose: 'deposit' | 'reserve', index: number) =>
    (await signer.addresses('tron', purpose, index, 1))[0] ?? ''
  const reserve = await addressOf('reserve', 0)
  const settings: TronSettings = {
    id: 'TRX',
    rpcUrl: info.fullNodeUrl,
    genesisBlockId: info.genesisBlockId,
    tokens,
    feeLimitSunMax: 100_000_000n,
    timeoutMs: PATIENCE_MS,
    reserveAddress: () => reserve,
  }
  for (const [currency, asset] of [
    ['TRX', 'TRX:TRX'],
    ['USDT', 'USDT:TRC20'],
  ] as const) {
    const units = toChainUnits(amountOf(asset, assetOf(asset).maxAmount))
    await devnet.send('TRX', currency, reserve, units)
  }
  // Solid, so that no reorganisation takes the reserve away.
  await devnet.mine('TRX', 21)
  let deposits = 0
  return {
    ...outsiders(devnet, info),
    info,
    chain: tron(settings),
    rpcUrl: info.fullNodeUrl,
    broadcastMethod: 'POST',
    chainAt: (url, timeoutMs) => tron({ ...settings, rpcUrl: url, timeoutMs }),
    stranger: () => tron({ ...settings, genesisBlockId: 'ab'.repeat(32) }),
    ourAddress: () => addressOf('deposit', deposits++),
    reserveAddress: async () => reserve,
    lose: async (send) => {
      devnet.trouble('TRX', { submits: ['drop'] })
      await send()
      await devnet.mine('TRX', BLOCKS_TO_BE_OVER)
    },
    failNext: (failWith) => devnet.trouble('TRX', { submits: [{ failWith }] }),
    amongStrangers: async (work) => {
      devnet.trouble('TRX', { isStranger: true })
      return work().finally(() => devnet.trouble('TRX', null))
    },
    funds: async () => ({ model: 'timed', from: { purpose: 'reserve', index: 0 } }),
    sign: signer.pay,
    stop: async () => {
      await devnet.stop()
      rmSync(dataDir, { recursive: true, force: true })
    },
  }
}

type Outside = Pick<
  TronDriver,
  | 'outsideAddress'
  | 'send'
  | 'sendTogether'
  | 'replace'
  | 'mine'
  | 'reorg'
  | 'holds'
  | 'faucet'
  | 'call'
  | 'submit'
>

function outsiders(devnet: Devnet, info: TronInfo): Outside {
  const faucet = new TronWeb({ fullHost: info.fullNodeUrl, privateKey: info.faucetKey })
  const currencyOf = (asset: Parameters<typeof assetOf>[0]) => assetOf(asset).currency as 'TRX' | 'USDT'
  const submit = async (unsigned: Types.Transaction) => {
    const signed = await faucet.trx.sign(unsigned)
    const answer = await faucet.trx.sendRawTransaction(signed)
    if (answer.result !== true) throw new Error(`TRON says ${JSON.stringify(answer)}`)
    return signed.txID
  }
  const call: TronDriver['call'] = async (contract, name, args, sun = 0) => {
    const options = { feeLimit: FEE_LIMIT, callValue: sun, txLocal: true }
    const { transaction } = await faucet.transactionBuilder.triggerSmartContract(contract, name, options, [
      ...args,
    ] as Parameters<typeof faucet.transactionBuilder.triggerSmartContract>[3])
    return submit(transaction)
  }
  return {
    faucet,
    submit,
    call,
    outsideAddress: () => devnet.freshAddress('TRX'),
    send: async (asset, to, units) =>
      (await devnet.send('TRX', currencyOf(asset), to, toChainUnits(amountOf(asset, units)))).txHash,
    sendTogether: (payments) => {
      const sum = payments.reduce((total, { units }) => total + units, 0n)
      const [to, units] = [payments.map((one) => one.to), payments.map((one) => one.units.toString())]
      const args = [
        { type: 'address[]', value: to },
        { type: 'uint256[]', value: units },
      ]
      return call(info.contracts.Payer.address, 'payBatch(address[],uint256[])', args, Number(sum))
    },
    replace: async () => {
      throw new Error('nothing is replaced on TRON')
    },
    mine: (blocks) => devnet.mine('TRX', blocks),
    reorg: (depth) => devnet.reorg('TRX', depth),
    holds: async (asset, address) =>
      fromChainUnits(asset, await devnet.balance('TRX', currencyOf(asset), address)).units,
  }
}

function signerFor(contracts: TronSettings['tokens']) {
  const caps = { feeLimitSunMax: 100_000_000n, sweepGasSunMax: 100_000_000n }
  return payoutSigner({ tron: caps, contracts }, (intent) => {
    if (intent.family !== 'tron') throw new Error('the intent is of TRON')
    const asset = intent.token === null ? 'TRX:TRX' : 'USDT:TRC20'
    return { asset, destination: intent.to, destinationTag: null }
  })
}
