import { randomBytes } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { Address, TEST_NETWORK } from '@scure/btc-signer'
import { connectRpc, type Rpc, RpcError } from '../json_rpc.ts'
import type { LocalNetwork } from '../local_network.ts'
import { createQueue } from '../processes/queue.ts'
import { fromBtc, toBtc } from './node_words.ts'
import { replaceTransaction } from './replace_transaction.ts'
import { type Bitcoind, MINER_WALLET } from './start_bitcoind.ts'

/** Regtest shares testnet's version bytes but not its prefix. */
const REGTEST = { ...TEST_NETWORK, bech32: 'bcrt' }
const COINBASE_MATURITY = 100

export type BitcoinNetwork = LocalNetwork & { readonly rpcUrl: string; readonly rpc: Rpc }

/** A node, and the wallet on it that the faucet pays from. */
export type BitcoinLines = { readonly rpc: Rpc; readonly wallet: Rpc }

/** Brings the chain to where the faucet has coins to spend, and offers what the devnet needs of it. */
export async function openBitcoinNetwork(node: Bitcoind): Promise<BitcoinNetwork> {
  const { rpc } = node
  const lines = { rpc, wallet: connectRpc(`${node.rpcUrl}/wallet/${MINER_WALLET}`) }
  await prepareCoins(lines)
  return {
    ...driveBitcoin(lines),
    rpcUrl: node.rpcUrl,
    rpc,
    pid: node.pid,
    adopted: node.adopted,
    save: saver(rpc),
    stop: node.stop,
  }
}

/** The same calls to whatever answers like a bitcoind. */
export function driveBitcoin({ rpc, wallet }: BitcoinLines) {
  const mining = createQueue()
  const sending = createQueue()
  const scanning = createQueue()
  return {
    send: (currency, to, units, coins = 1) => {
      if (currency !== 'BTC') throw new Error(`there is no ${currency} on BTC`)
      return sending(() =>
        coins === 1 ? send(rpc, wallet, to, units) : sendCoins(rpc, wallet, to, units, coins),
      )
    },
    balance: (_currency, address) => scanning(() => confirmedBalance(rpc, address)),
    freshAddress: freshRegtestAddress,
    mine: (blocks) => mining(() => mineBlocks(rpc, blocks)),
    mineLively: () => mining(() => mineBlocks(rpc, 1)),
    reorg: (depth) => mining(() => reorganise(rpc, depth)),
    replace: (txHash, replacement) =>
      /^[0-9a-f]{64}$/.test(txHash)
        ? sending(() => replaceTransaction(rpc, wallet, txHash, replacement))
        : Promise.resolve(undefined),
  } satisfies Partial<LocalNetwork>
}

/** A valid address that nobody has the key of, so what is paid there stays there. */
function freshRegtestAddress(): string {
  return Address(REGTEST).encode({ type: 'wpkh', hash: randomBytes(20) })
}

/**
 * Mature coinbases, split into many coins: the mempool allows a chain of 25 unconfirmed transactions, so parallel sends
 * from one coin would soon be refused.
 */
export async function prepareCoins({ rpc, wallet }: BitcoinLines): Promise<void> {
  const coinbases = 14
  if ((await rpc<number>('getblockcount')) >= coinbases + COINBASE_MATURITY + 1) return
  const address = await wallet<string>('getnewaddress', ['', 'bech32'])
  await rpc('generatetoaddress', [coinbases, address])
  await mineBlocks(rpc, COINBASE_MATURITY)
  await sendCoins(rpc, wallet, address, 600n * 10n ** 8n, 150)
  await mineBlocks(rpc, 1)
}

/**
 * To an output that nobody can spend: a chain that runs for days keeps a small set of coins and a quick
 * wallet. The random bytes make a replacement block differ from the block that it replaces.
 */
async function mineBlocks(rpc: Rpc, blocks: number): Promise<void> {
  const batchMax = 100
  for (let left = blocks; left > 0; left -= batchMax) {
    await rpc('generatetodescriptor', [Math.min(left, batchMax), unspendableOutput()])
  }
}

function unspendableOutput(): string {
  return `raw(6a08${randomBytes(8).toString('hex')})`
}

const SEND_TRIES = 3

async function send(rpc: Rpc, wallet: Rpc, to: string, units: bigint): Promise<{ txHash: string }> {
  const named = { address: to, amount: toBtc(units), replaceable: true, fee_rate: 10 }
  const order = ['address', 'amount', 'comment', 'comment_to', 'subtractfeefromamount', 'replaceable']
  const rest = ['conf_target', 'estimate_mode', 'avoid_reuse', 'fee_rate']
  const params = [...order, ...rest].map((name) => named[name as keyof typeof named] ?? null)
  for (let tries = 1; ; tries += 1) {
    const txHash = await wallet<string>('sendtoaddress', params)
    const refusal = await whyNotTaken(rpc, wallet, txHash)
    if (refusal === null) return { txHash }
    // Its coins are free again.
    await wallet('abandontransaction', [txHash])
    if (tries === SEND_TRIES) throw refusal
  }
}

const ALREADY_MINED = -27

/** A wallet names a transaction that its node did not take as well: handed over once more, the node says why. */
async function whyNotTaken(rpc: Rpc, wallet: Rpc, txHash: string): Promise<RpcError | null> {
  const { hex } = await wallet<{ hex: string }>('gettransaction', [txHash])
  try {
    await rpc('sendrawtransaction', [hex])
    return null
  } catch (error) {
    if (!(error instanceof RpcError)) throw error
    return error.code === ALREADY_MINED ? null : error
  }
}

/**
 * One transaction with many equal outputs to one address. The node makes none with the same address twice, but signs
 * one: so its only output is repeated in the bytes.
 * https://developer.bitcoin.org/reference/transactions.html#raw-transaction-format
 */
async function sendCoins(
  rpc: Rpc,
  wallet: Rpc,
  to: string,
  units: bigint,
  coins: number,
): Promise<{ txHash: string }> {
  const outputs = [{ [to]: toBtc(units / BigInt(coins)) }]
  const single = await rpc<string>('createrawtransaction', [[], outputs])
  const [, version, output, lockTime] = /^(.{8})0001(.+)(.{8})$/.exec(single) ?? []
  if (output === undefined || coins > 0xfc) throw new Error(`no transaction of ${coins} coins`)
  const count = coins.toString(16).padStart(2, '0')
  const unfunded = `${version}00${count}${output.repeat(coins)}${lockTime}`
  const { hex } = await wallet<{ hex: string }>('fundrawtransaction', [unfunded, { fee_rate: 10 }, false])
  const signed = await wallet<{ hex: string }>('signrawtransactionwithwallet', [hex])
  return { txHash: await rpc<string>('sendrawtransaction', [signed.hex]) }
}

/** The node scans for one caller at a time, and the service asks as well. */
async function confirmedBalance(rpc: Rpc, address: string): Promise<bigint> {
  for (;;) {
    try {
      const scan = await rpc<{ total_amount: number }>('scantxoutset', ['start', [`addr(${address})`]])
      return fromBtc(scan.total_amount)
    } catch (error) {
      if (!(error instanceof RpcError) || !/already in progress/.test(error.message)) throw error
    }
    await delay(20)
  }
}

/** The replacement blocks are empty and one more, so what the old ones held waits in the mempool. */
async function reorganise(rpc: Rpc, depth: number): Promise<void> {
  const height = await rpc<number>('getblockcount')
  const hash = await rpc<string>('getblockhash', [height - depth + 1])
  await rpc('invalidateblock', [hash])
  for (let block = 0; block <= depth; block++) {
    await rpc('generateblock', [unspendableOutput(), []])
  }
}

/**
 * bitcoind keeps blocks and mempool in memory for an hour. `gettxoutsetinfo` is the call that writes the
 * chain to disk as a side effect; the wallet is on disk at once.
 */
function saver(rpc: Rpc): () => Promise<void> {
  let saved = ''
  return async () => {
    const [tip, mempool] = await Promise.all([
      rpc<string>('getbestblockhash'),
      rpc<string[]>('getrawmempool'),
    ])
    const now = `${tip} ${mempool.sort().join()}`
    if (now === saved) return
    await rpc('gettxoutsetinfo', ['none'])
    await rpc('savemempool')
    saved = now
  }
}
