import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Devnet, startDevnet } from '@cambist/devnet'
import { encode, encodeForSigning } from 'ripple-binary-codec'
import { deriveAddress, deriveKeypair, generateSeed, sign } from 'ripple-keypairs'
import { LEDGERS_TO_LIVE } from '../../src/chains/xrp/bid.ts'
import { xrp } from '../../src/chains/xrp/index.ts'
import { connect } from '../../src/chains/xrp/rpc.ts'
import type { XrpSettings } from '../../src/chains/xrp/settings.ts'
import { PATIENCE_MS } from '../harness/patience.ts'
import type { ChainDriver } from './chain_driver.ts'
import { payoutSigner } from './payout_signer.ts'

/** Somebody outside, with keys and money, who sends whatever a transaction can say. */
export type Outsider = {
  readonly account: string
  /** Answers the hash once it waits, or was refused by a `tec` code, which a ledger takes for its fee. */
  submit(fields: object): Promise<string>
}

export type XrpDriver = ChainDriver & {
  outsider(drops?: bigint): Promise<Outsider>
  /** The next transaction that is submitted, here or by the chain, is answered with this code. */
  failNext(code: string): void
}

const RESERVE_DROPS = 10_000_000_000n

/** The wire simulator of the devnet with our reserve funded, and the real signer over throw-away keys. */
export async function startXrpDriver(): Promise<XrpDriver> {
  const dataDir = mkdtempSync(join(tmpdir(), 'cambist-xrp-'))
  const devnet = await startDevnet({ dataDir, networks: ['XRP'], mining: 'manual', isLasting: false })
  const network = devnet.networks.XRP
  if (network === undefined) throw new Error('the devnet runs XRP')
  const { rpcUrl, networkId } = network
  const signer = signerFor(networkId)
  const addressOf = async (purpose: 'deposit' | 'reserve', index: number) =>
    (await signer.addresses('xrp', purpose, index, 1))[0] ?? ''
  const reserve = await addressOf('reserve', 0)
  const settings: XrpSettings = {
    id: 'XRP',
    rpcUrl,
    networkId,
    feeDropsMax: 10_000n,
    timeoutMs: PATIENCE_MS,
    reserveAddress: () => reserve,
  }
  const chain = xrp(settings)
  await devnet.send('XRP', 'XRP', reserve, RESERVE_DROPS)
  await devnet.mine('XRP', 1)
  let tags = 1
  let given = 0
  return {
    ...outsiders(devnet),
    chain,
    rpcUrl,
    broadcastMethod: 'submit',
    chainAt: (url, timeoutMs) => xrp({ ...settings, rpcUrl: url, timeoutMs }),
    stranger: () => xrp({ ...settings, networkId: 0 }),
    ourAddress: () => addressOf('deposit', tags++),
    reserveAddress: async () => reserve,
    outsider: (drops = 100_000_000n) => openOutsider(devnet, rpcUrl, networkId, drops),
    failNext: (failWith) => devnet.trouble('XRP', { submits: [{ failWith }] }),
    lose: async (send) => {
      devnet.trouble('XRP', { submits: ['drop'] })
      await send()
      await devnet.mine('XRP', LEDGERS_TO_LIVE + 1)
      // The network knows nothing of it: the sequence is free again.
      given -= 1
    },
    funds: async () => {
      const nonce = (await chain.minedNonce(reserve)) + given
      given += 1
      return { model: 'account', from: { purpose: 'reserve', index: 0 }, nonce }
    },
    mine: async (blocks) => {
      await devnet.mine('XRP', blocks)
      given = 0
    },
    sign: signer.pay,
    stop: async () => {
      await devnet.stop()
      rmSync(dataDir, { recursive: true, force: true })
    },
  }
}

function outsiders(
  devnet: Devnet,
): Pick<ChainDriver, 'outsideAddress' | 'send' | 'sendTogether' | 'replace' | 'reorg' | 'holds'> {
  const never = async () => {
    throw new Error('the XRP Ledger has no such thing')
  }
  return {
    outsideAddress: () => devnet.freshAddress('XRP'),
    send: async (_asset, to, units) => (await devnet.send('XRP', 'XRP', to, units)).txHash,
    sendTogether: never,
    replace: never,
    reorg: never,
    holds: (_asset, address) => devnet.balance('XRP', 'XRP', address),
  }
}

export async function openOutsider(
  devnet: Devnet,
  rpcUrl: string,
  networkId: number,
  drops: bigint,
): Promise<Outsider> {
  const { publicKey, privateKey } = deriveKeypair(generateSeed())
  const account = deriveAddress(publicKey)
  await devnet.send('XRP', 'XRP', account, drops)
  await devnet.mine('XRP', 1)
  const rpc = connect(rpcUrl, PATIENCE_MS)
  return {
    account,
    submit: async (fields) => {
      const { account_data } = await rpc.call('account_info', { account, ledger_index: 'current' })
      const { Sequence } = account_data as { Sequence: number }
      const SigningPubKey = publicKey
      const unsigned = {
        Account: account,
        Fee: '10',
        Sequence,
        NetworkID: networkId,
        SigningPubKey,
        ...fields,
      }
      const TxnSignature = sign(encodeForSigning(unsigned), privateKey)
      const { engine_result, tx_json } = await rpc.call('submit', {
        tx_blob: encode({ ...unsigned, TxnSignature }),
      })
      if (!/^te[sc]/.test(String(engine_result))) throw new Error(`the ledger says ${engine_result}`)
      return (tx_json as { hash: string }).hash
    },
  }
}

function signerFor(networkId: number) {
  return payoutSigner({ xrp: { networkId, feeDropsMax: 10_000n } }, (intent) => {
    if (intent.family !== 'xrp' || intent.payment === null) throw new Error('the intent pays XRP')
    const { to, tag } = intent.payment
    return { asset: 'XRP:XRP', destination: to, destinationTag: tag === null ? null : String(tag) }
  })
}
