import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Devnet, startDevnet } from '@cambist/devnet'
import {
  Action,
  PackedTransaction,
  PrivateKey,
  Serializer,
  SignedTransaction,
  Transaction,
} from '@wharfkit/antelope'
import type { Chain } from '../../src/chains/chain.ts'
import { parsePlace } from '../../src/chains/eos/address.ts'
import { eos } from '../../src/chains/eos/index.ts'
import { connect } from '../../src/chains/eos/rpc.ts'
import type { EosSettings } from '../../src/chains/eos/settings.ts'
import type { Fields } from '../../src/chains/replies.ts'
import { assert } from '../../src/domain/assert.ts'
import { deriveKeys } from '../../src/signer/derivation.ts'
import { eosPublicKey } from '../../src/signer/transactions/eos_transaction.ts'
import { PATIENCE_MS } from '../harness/patience.ts'
import type { ChainDriver } from './chain_driver.ts'
import { payoutSigner } from './payout_signer.ts'

type EosInfo = NonNullable<Devnet['networks']['EOS']>

export type EosDriver = ChainDriver & {
  readonly info: EosInfo
  /** A chain whose settings say that this is our account. */
  chainOf(account: string): Chain
  /** Whoever holds everything at first signs what is asked for, with the field's own library. */
  act(
    actions: Action | readonly Action[],
    more?: { readonly delaySeconds?: number; readonly lifeMs?: number },
  ): Promise<string>
  /** By the name of the account in `to`, with the memo of its customer unless another is given. */
  pay(to: string, quantity: string, memo?: string, contract?: string): Action
  failNext(failWith: string): void
  /** Mines without waiting until anything is irreversible. */
  mineOnly(blocks: number): Promise<void>
}

const ACCOUNT = 'mycambist123'
const EOS = 10_000n
/** An attempt lives for a minute of blocks of half a second, and is known to be over when a later one is irreversible. */
const BLOCKS_TO_BE_OVER = 128

/** The wire simulator of the devnet with our account funded, and the real signer over throw-away keys. */
export async function startEosDriver(): Promise<EosDriver> {
  const dataDir = mkdtempSync(join(tmpdir(), 'cambist-eos-'))
  const devnet = await startDevnet({ dataDir, networks: ['EOS'], mining: 'manual', isLasting: false })
  const info = devnet.networks.EOS
  if (info === undefined) throw new Error('the devnet runs EOS')
  const { rpcUrl, chainId, reversibleBlocks } = info
  const seed = Buffer.alloc(64, 9)
  const publicKey = eosPublicKey(deriveKeys(seed, { bitcoin: 'regtest', xrpNetworkId: 1 }))
  const signer = signerFor(seed, { chainId, account: ACCOUNT, publicKey })
  const addressOf = async (purpose: 'deposit' | 'reserve', index: number) =>
    (await signer.addresses('eos', purpose, index, 1))[0] ?? ''
  const settings: EosSettings = {
    id: 'EOS',
    rpcUrl,
    chainId,
    account: ACCOUNT,
    publicKey,
    timeoutMs: PATIENCE_MS,
  }
  await devnet.eos.createAccount(ACCOUNT, publicKey)
  await devnet.send('EOS', 'EOS', ACCOUNT, 100_000n * EOS, 1, '4294967295')
  // What is mined is told when it is irreversible.
  const mine = (blocks: number) => devnet.mine('EOS', blocks + reversibleBlocks)
  await mine(1)
  let memos = 1
  return {
    ...outsiders(devnet, info),
    info,
    chain: eos(settings),
    chainOf: (account) => eos({ ...settings, account }),
    rpcUrl,
    broadcastMethod: 'POST',
    chainAt: (url, timeoutMs) => eos({ ...settings, rpcUrl: url, timeoutMs }),
    stranger: () => eos({ ...settings, chainId: 'ab'.repeat(32) }),
    ourAddress: () => addressOf('deposit', memos++),
    reserveAddress: () => addressOf('reserve', 0),
    mine,
    mineOnly: (blocks) => devnet.mine('EOS', blocks),
    lose: async (send) => {
      devnet.trouble('EOS', { submits: ['drop'] })
      await send()
      await devnet.mine('EOS', BLOCKS_TO_BE_OVER)
    },
    failNext: (failWith) => devnet.trouble('EOS', { submits: [{ failWith }] }),
    funds: async () => ({ model: 'timed', from: { purpose: 'reserve', index: 0 } }),
    sign: signer.pay,
    stop: async () => {
      await devnet.stop()
      rmSync(dataDir, { recursive: true, force: true })
    },
  }
}

/** Account and memo of an address of ours. */
export function placeOf(address: string): { readonly account: string; readonly memo: string } {
  const place = parsePlace(address)
  assert(place.ok, `${address} is a place on EOS`)
  return { account: place.value.account, memo: place.value.memo ?? '' }
}

/** What the token contract's `transfer` and the payer's `pay` hold, in the words of their ABI. */
export function encodeCall(type: 'transfer' | 'pay', object: Readonly<Record<string, unknown>>) {
  const kinds: Readonly<Record<string, string>> = { quantity: 'asset', memo: 'string' }
  const fields = Object.keys(object).map((name) => ({ name, type: kinds[name] ?? 'name' }))
  return Serializer.encode({ object, type, abi: { structs: [{ name: type, base: '', fields }] } })
}

type Outside = Pick<
  EosDriver,
  'outsideAddress' | 'send' | 'sendTogether' | 'replace' | 'reorg' | 'holds' | 'act' | 'pay'
>

function outsiders(devnet: Devnet, info: EosInfo): Outside {
  const { rpcUrl, chainId, faucet } = info
  const rpc = connect(rpcUrl, PATIENCE_MS)
  const key = PrivateKey.from(faucet.privateKey)
  const act: EosDriver['act'] = async (actions, { delaySeconds = 0, lifeMs = 600_000 } = {}) => {
    const { last_irreversible_block_id: id, head_block_time: time } = (await rpc(
      'chain/get_info',
      {},
    )) as Record<string, string>
    const reference = Buffer.from(id ?? '', 'hex')
    const transaction = Transaction.from({
      expiration: new Date(Date.parse(`${time}Z`) + lifeMs).toISOString().slice(0, 19),
      ref_block_num: reference.readUInt16BE(2),
      ref_block_prefix: reference.readUInt32LE(8),
      max_net_usage_words: 1_000 + Math.floor(Math.random() * 1e9),
      delay_sec: delaySeconds,
      context_free_actions: [],
      actions: [actions].flat(),
    })
    const signatures = [key.signDigest(transaction.signingDigest(chainId))]
    const packed = PackedTransaction.fromSigned(SignedTransaction.from({ ...transaction, signatures }), 0)
    const answer = (await rpc('chain/send_transaction2', {
      return_failure_trace: false,
      transaction: Serializer.objectify(packed),
    })) as Fields
    return String(answer.transaction_id)
  }
  const pay: EosDriver['pay'] = (to, quantity, memo = placeOf(to).memo, contract = info.tokenContract) =>
    Action.from({
      account: contract,
      name: 'transfer',
      authorization: [{ actor: faucet.account, permission: 'active' }],
      data: encodeCall('transfer', { from: faucet.account, to: placeOf(to).account, quantity, memo }),
    })
  return {
    act,
    pay,
    outsideAddress: () => devnet.freshAddress('EOS'),
    send: (_asset, to, units) => act(pay(to, quantityOf(units))),
    sendTogether: (payments) => act(payments.map(({ to, units }) => pay(to, quantityOf(units)))),
    replace: async () => {
      throw new Error('nothing is replaced on EOS')
    },
    reorg: (depth) => devnet.reorg('EOS', depth),
    holds: (_asset, address) => devnet.balance('EOS', 'EOS', placeOf(address).account),
  }
}

export function quantityOf(units: bigint): string {
  return `${units / EOS}.${String(units % EOS).padStart(4, '0')} EOS`
}

function signerFor(seed: Uint8Array, settings: { chainId: string; account: string; publicKey: string }) {
  return payoutSigner(
    { eos: settings },
    (intent) => {
      if (intent.family !== 'eos') throw new Error('the intent pays EOS')
      const { to, memo } = intent.payment
      return { asset: 'EOS:EOS', destination: to, destinationTag: memo }
    },
    seed,
  )
}
