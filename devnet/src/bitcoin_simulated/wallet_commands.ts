import { btc, satsOf } from './amounts.ts'
import { transactionJson } from './answers.ts'
import { fund, ownCoins } from './fund.ts'
import { type BitcoinNode, type Command, hashIn, type Params, textIn } from './node.ts'
import { codes, NodeError } from './node_error.ts'
import { addressOfScript, scriptOfAddress } from './scripts.ts'
import { type Decoded, decodeTransaction, encodeTransaction, toHex } from './transaction.ts'
import { decode, find, submit } from './transaction_commands.ts'
import { type AddressType, addressTypes, unsigned } from './wallet.ts'

/** The wallet `miner`: what the devnet's faucet needs of one. */
export const walletCommands: Readonly<Record<string, Command>> = {
  listwallets: () => ['miner'],
  getnewaddress: ({ wallet }, params) => wallet.newAddress(typeIn(params[1])),
  getrawchangeaddress: ({ wallet }) => addressOfScript(wallet.changeScript),
  getbalance: (node) => btc(ownCoins(node, 0).reduce((sum, { coin }) => sum + coin.sats, 0n)),
  listunspent: (node, params) =>
    ownCoins(node, Number(params[0] ?? 1)).map(({ txid, vout, coin, confirmations }) => ({
      txid,
      vout,
      address: addressOfScript(Buffer.from(coin.script, 'hex')),
      scriptPubKey: coin.script,
      amount: btc(coin.sats),
      confirmations,
      spendable: true,
      solvable: true,
      safe: true,
    })),
  sendtoaddress: (node, params) => {
    const address = textIn(params, 0, 'address')
    const script = scriptOfAddress(address)
    if (script === undefined) throw new NodeError(codes.notFound, `Invalid Bitcoin address: ${address}`)
    const sats = satsOf(params[1])
    if (sats === undefined) throw new NodeError(codes.type, 'Invalid amount')
    const draft = { version: 2, lockTime: 0, inputs: [], outputs: [{ sats, script }] }
    const { tx } = fund(node, draft, Number(params[9] ?? 10))
    return send(node, tx)
  },
  fundrawtransaction: (node, params) => {
    const given = decode(textIn(params, 0, 'hexstring'), 'TX decode failed')
    const options = (params[1] ?? {}) as { fee_rate?: number; changePosition?: number }
    const { tx, feeSats, changeAt } = fund(
      node,
      given,
      Number(options.fee_rate ?? 10),
      options.changePosition,
    )
    return { hex: encodeTransaction(tx), fee: btc(feeSats), changepos: changeAt }
  },
  signrawtransactionwithwallet: (node, params) => {
    const given = decode(
      textIn(params, 0, 'hexstring'),
      'TX decode failed. Make sure the tx has at least one input.',
    )
    const coins = given.inputs.map(({ txid, vout }) => node.pool.coin(txid, vout))
    return node.wallet.sign(given, coins)
  },
  gettransaction: (node, params) => {
    const txid = hashIn(params, 0, 'txid')
    const found = find(node, txid)
    const isOwn = found?.spent?.coins.some(({ script }) => node.wallet.typeOf(script) !== undefined)
    if (found?.spent === undefined || isOwn !== true)
      throw new NodeError(codes.notFound, 'Invalid or non-wallet transaction id')
    const { block, decoded, spent, hex } = found
    const isMined = block !== undefined && node.told().blockOf(block.seal.hash) !== undefined
    return {
      amount: btc(-paidOut(node, decoded).reduce((sum, { sats }) => sum + sats, 0n)),
      fee: btc(-spent.feeSats),
      confirmations: isMined ? node.told().head.height - block.height + 1 : 0,
      ...(isMined && { blockhash: block.seal.hash, blockheight: block.height }),
      txid,
      wtxid: decoded.wtxid,
      'bip125-replaceable': isMined ? 'no' : 'yes',
      details: paidOut(node, decoded).map(({ sats, script, vout }) => ({
        address: addressOfScript(script),
        category: 'send',
        amount: btc(-sats),
        vout,
        fee: btc(-spent.feeSats),
      })),
      hex,
      ...(params[2] === true && { decoded: transactionJson(decoded) }),
    }
  },
  bumpfee: bumpFee,
}

function send(node: BitcoinNode, draft: Parameters<typeof encodeTransaction>[0]): string {
  const tx = unsigned(encodeTransaction(draft))
  const { hex } = node.wallet.sign(
    tx,
    tx.inputs.map(({ txid, vout }) => node.pool.coin(txid, vout)),
  )
  const { txid } = decodeTransaction(hex)
  submit(node, { id: txid, hex, timeMs: Date.now() })
  return txid
}

function typeIn(given: unknown): AddressType {
  const type = addressTypes.find((known) => known === (given ?? 'bech32'))
  if (type === undefined) throw new NodeError(codes.notFound, `Unknown address type '${given}'`)
  return type
}

function paidOut({ wallet }: BitcoinNode, { outputs }: Decoded) {
  const change = toHex(wallet.changeScript)
  return outputs.flatMap((output, vout) => (toHex(output.script) === change ? [] : [{ ...output, vout }]))
}

/** The same payment for five satoshi a vbyte more, out of the change. */
function bumpFee(node: BitcoinNode, params: Params) {
  const txid = hashIn(params, 0, 'txid')
  const entry = node.pool.entries.get(txid)
  if (entry === undefined) throw new NodeError(codes.notFound, 'Invalid or non-wallet transaction id')
  if (node.pool.descendants(txid).length > 0)
    throw new NodeError(codes.parameter, 'Transaction has descendants in the mempool')
  const before = unsigned(entry.tx.hex)
  const change = toHex(node.wallet.changeScript)
  const extra = BigInt(entry.decoded.vsize) * 5n
  const at = before.outputs.findIndex(({ script, sats }) => toHex(script) === change && sats > extra + 1_000n)
  if (at === -1) throw new NodeError(-4, 'Unable to create transaction: no change to pay it with')
  const outputs = before.outputs.map((output, index) =>
    index === at ? { ...output, sats: output.sats - extra } : output,
  )
  const fee = entry.spent.feeSats
  return { txid: send(node, { ...before, outputs }), origfee: btc(fee), fee: btc(fee + extra), errors: [] }
}
