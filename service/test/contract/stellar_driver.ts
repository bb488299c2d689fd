import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Devnet, startDevnet } from '@cambist/devnet'
import { Account, Keypair, type Memo, TransactionBuilder, type xdr } from '@stellar/stellar-sdk/base'
import { readAccount } from '../../src/chains/stellar/account.ts'
import { parsePlace } from '../../src/chains/stellar/address.ts'
import { LIFE_S } from '../../src/chains/stellar/bid.ts'
import { connect } from '../../src/chains/stellar/horizon.ts'
import { stellar } from '../../src/chains/stellar/index.ts'
import type { StellarSettings } from '../../src/chains/stellar/settings.ts'
import { PATIENCE_MS } from '../harness/patience.ts'
import type { ChainDriver } from './chain_driver.ts'
import { payoutSigner } from './payout_signer.ts'

/** Somebody outside, with keys and money, who sends whatever a transaction can say. */
export type Outsider = {
  readonly account: string
  /** Answers the hash once it waits. `bump`: somebody else wraps it up and pays its fee. */
  submit(
    operations: xdr.Operation | readonly xdr.Operation[],
    more?: { readonly memo?: Memo; readonly bump?: boolean },
  ): Promise<string>
}

export type StellarDriver = ChainDriver & {
  outsider(stroops?: bigint): Promise<Outsider>
}

export const XLM = 10_000_000n
const RESERVE_STROOPS = 10_000n * XLM

/** The wire simulator of the devnet with our reserve funded, and the real signer over throw-away keys. */
export async function startStellarDriver(): Promise<StellarDriver> {
  const dataDir = mkdtempSync(join(tmpdir(), 'cambist-stellar-'))
  const devnet = await startDevnet({ dataDir, networks: ['XLM'], mining: 'manual', isLasting: false })
  const network = devnet.networks.XLM
  if (network === undefined) throw new Error('the devnet runs XLM')
  const { horizonUrl, passphrase } = network
  const signer = signerFor(passphrase)
  const addressOf = async (purpose: 'deposit' | 'reserve', index: number) =>
    (await signer.addresses('stellar', purpose, index, 1))[0] ?? ''
  const reserve = await addressOf('reserve', 0)
  const settings: StellarSettings = {
    id: 'XLM',
    horizonUrl,
    passphrase,
    feeStroopsMax: 10_000n,
    timeoutMs: PATIENCE_MS,
    reserveAddress: () => reserve,
  }
  const chain = stellar(settings)
  await devnet.send('XLM', 'XLM', reserve, RESERVE_STROOPS)
  await devnet.mine('XLM', 1)
  let ids = 1
  let given = 0
  return {
    ...outsiders(devnet),
    chain,
    rpcUrl: horizonUrl,
    broadcastMethod: 'POST',
    chainAt: (url, timeoutMs) => stellar({ ...settings, horizonUrl: url, timeoutMs }),
    stranger: () => stellar({ ...settings, passphrase: 'Test SDF Network ; September 2015' }),
    ourAddress: () => addressOf('deposit', ids++),
    reserveAddress: async () => reserve,
    outsider: (stroops = 100n * XLM) => openOutsider(devnet, network, stroops),
    lose: async (send) => {
      devnet.trouble('XLM', { submits: ['drop'] })
      await send()
      await devnet.mine('XLM', LIFE_S + 1)
      // The network knows nothing of it: the sequence is free again.
      given -= 1
    },
    funds: async () => {
      const nonce = (await chain.minedNonce(reserve)) + given
      given += 1
      return { model: 'account', from: { purpose: 'reserve', index: 0 }, nonce }
    },
    mine: async (blocks) => {
      await devnet.mine('XLM', blocks)
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
    throw new Error('Stellar has no such thing')
  }
  return {
    outsideAddress: () => devnet.freshAddress('XLM'),
    send: async (_asset, to, units) => (await devnet.send('XLM', 'XLM', to, units)).txHash,
    sendTogether: never,
    replace: never,
    reorg: never,
    holds: (_asset, address) => devnet.balance('XLM', 'XLM', address),
  }
}

export async function openOutsider(
  devnet: Devnet,
  { horizonUrl, passphrase }: { readonly horizonUrl: string; readonly passphrase: string },
  stroops: bigint,
): Promise<Outsider> {
  const keys = Keypair.random()
  const account = keys.publicKey()
  await devnet.send('XLM', 'XLM', account, stroops)
  await devnet.mine('XLM', 1)
  const horizon = connect(horizonUrl, PATIENCE_MS)
  return {
    account,
    submit: async (operations, { memo, bump } = {}) => {
      const sequence = (await readAccount(horizon, account))?.sequence
      const options = { fee: '100', networkPassphrase: passphrase }
      const builder = new TransactionBuilder(new Account(account, String(sequence)), options)
      for (const operation of [operations].flat()) builder.addOperation(operation)
      if (memo !== undefined) builder.addMemo(memo)
      const inner = builder.setTimeout(0).build()
      inner.sign(keys)
      const outer = bump ? await bumped() : inner
      const said = await horizon.submit(outer.toEnvelope().toXdr('base64'))
      if (said.tx_status !== 'PENDING') throw new Error(`the network says ${JSON.stringify(said)}`)
      return String(said.hash)

      async function bumped() {
        const payer = Keypair.random()
        await devnet.send('XLM', 'XLM', payer.publicKey(), 10n * XLM)
        await devnet.mine('XLM', 1)
        const fee = TransactionBuilder.buildFeeBumpTransaction(payer.publicKey(), '200', inner, passphrase)
        fee.sign(payer)
        return fee
      }
    },
  }
}

function signerFor(passphrase: string) {
  return payoutSigner({ stellar: { passphrase, feeStroopsMax: 10_000n } }, (intent) => {
    if (intent.family !== 'stellar' || intent.payment === null) throw new Error('the intent pays XLM')
    const { to, memo } = intent.payment
    const place = parsePlace(to)
    const destinationTag = (place.ok ? place.value.id : null) ?? memo
    return { asset: 'XLM:XLM', destination: to, destinationTag }
  })
}
