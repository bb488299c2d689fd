import { btc } from './amounts.ts'
import {
  blockHex,
  blockJson,
  chainWork,
  confirmations,
  DIFFICULTY,
  headerJson,
  scriptJson,
} from './answers.ts'
import { allCoins } from './coins.ts'
import { type BitcoinNode, type Command, hashIn, integerIn, listIn, textIn } from './node.ts'
import { codes, NodeError } from './node_error.ts'
import { INCREMENTAL_SATS, MIN_RELAY_SATS } from './policy.ts'
import { BITS, type BitcoinBlock, medianTime, TARGET } from './rules.ts'
import { scriptOfAddress } from './scripts.ts'
import { toHex } from './transaction.ts'

/** A version whose interface this is; the name after it tells that it is none. */
const VERSION = { version: 290_400, subversion: '/Satoshi:29.4.0/CambistSimulator:0.1.0/' }
const MAINNET_GENESIS = '000000000019d6689c085ae165831e934ff763ae46a2a6c172b3f1b60a8ce26f'

/** What a node says of its blocks and itself. */
export const chainCommands: Readonly<Record<string, Command>> = {
  getblockcount: (node) => node.told().head.height,
  getbestblockhash: (node) => node.told().head.seal.hash,
  getblockhash: (node, params) => {
    const height = integerIn(params, 0, 'height')
    if (height === 0 && node.troubles.now.isStranger) return MAINNET_GENESIS
    const block = height < 0 ? undefined : node.told().block(height)
    if (block === undefined) throw new NodeError(codes.parameter, 'Block height out of range')
    return block.seal.hash
  },
  getblockheader: (node, params) => {
    const block = blockOf(node, hashIn(params, 0, 'hash'))
    return params[1] === false ? block.seal.header : headerJson(node.told(), block)
  },
  getblock: (node, params) => {
    const block = blockOf(node, hashIn(params, 0, 'blockhash'))
    const verbosity = Number(params[1] ?? 1)
    return verbosity <= 0 ? blockHex(block) : blockJson(node, block, verbosity)
  },
  getblockchaininfo: (node) => {
    const { height, seal } = node.told().head
    return {
      chain: chainName(node),
      blocks: height,
      headers: height,
      bestblockhash: seal.hash,
      bits: BITS,
      target: TARGET,
      difficulty: DIFFICULTY,
      time: seal.times.at(-1),
      mediantime: medianTime(seal.times),
      verificationprogress: 1,
      initialblockdownload: false,
      chainwork: chainWork(height),
      size_on_disk: 0,
      pruned: false,
      warnings: [],
    }
  },
  getdeploymentinfo: (node) => {
    const { height, seal } = node.told().head
    const buried = (from: number) => ({ type: 'buried', active: true, height: from })
    const deployments = {
      bip34: buried(1),
      bip66: buried(1),
      bip65: buried(1),
      csv: buried(1),
      segwit: buried(0),
      taproot: buried(0),
    }
    return { hash: seal.hash, height, deployments }
  },
  getindexinfo: (node) => ({ txindex: { synced: true, best_block_height: node.told().head.height } }),
  getnetworkinfo: () => ({
    ...VERSION,
    protocolversion: 70_016,
    localservices: '0000000000000009',
    localservicesnames: ['NETWORK', 'WITNESS'],
    localrelay: true,
    timeoffset: 0,
    networkactive: true,
    connections: 0,
    connections_in: 0,
    connections_out: 0,
    networks: [],
    relayfee: btc(MIN_RELAY_SATS),
    incrementalfee: btc(INCREMENTAL_SATS),
    localaddresses: [],
    warnings: [],
  }),
  // Regtest has too few transactions for one.
  estimatesmartfee: (_node, params) => {
    integerIn(params, 0, 'conf_target')
    return { errors: ['Insufficient data or no feerate found'], blocks: 0 }
  },
  gettxout: (node, params) => {
    const [txid, vout] = [hashIn(params, 0, 'txid'), integerIn(params, 1, 'n')]
    const isMempool = params[2] !== false
    if (isMempool && node.pool.spenderOf(txid, vout) !== undefined) return null
    const coin = isMempool ? node.pool.coin(txid, vout) : minedCoin(node, txid, vout)
    if (coin === undefined) return null
    const { head } = node.told()
    return {
      bestblock: head.seal.hash,
      confirmations: Math.max(0, head.height - coin.height + 1),
      value: btc(coin.sats),
      scriptPubKey: scriptJson(Buffer.from(coin.script, 'hex')),
      coinbase: coin.isCoinbase,
    }
  },
  scantxoutset: (node, params) => {
    const action = textIn(params, 0, 'action')
    if (action === 'status') return null
    if (action === 'abort') return false
    if (action !== 'start') throw new NodeError(codes.parameter, `Invalid action '${action}'`)
    return scan(node, listIn(params, 1, 'scanobjects'))
  },
  validateaddress: (_node, params) => {
    const address = textIn(params, 0, 'address')
    const script = scriptOfAddress(address)
    if (script === undefined) return { isvalid: false, error_locations: [], error: 'Invalid address' }
    const isWitness = script[0] === 0x00 || (script[0] ?? 0) >= 0x51
    return {
      isvalid: true,
      address,
      scriptPubKey: toHex(script),
      isscript: /^(a914|0020)/.test(toHex(script)),
      iswitness: isWitness && script[0] !== 0x76 && script[0] !== 0xa9,
    }
  },
}

function chainName({ troubles }: BitcoinNode): string {
  return troubles.now.isStranger ? 'main' : 'regtest'
}

/** Of the chain or of a branch that lost, but none that is not told yet. */
export function blockOf(node: BitcoinNode, hash: string): BitcoinBlock {
  const block = node.told().blockOf(hash) ?? node.chain.lost.blockOf(hash)
  if (block === undefined) throw new NodeError(codes.notFound, 'Block not found')
  return block
}

function minedCoin(node: BitcoinNode, txid: string, vout: number) {
  return node.told().state.get(`coin:${txid}:${vout}`)
}

function scan(node: BitcoinNode, objects: readonly unknown[]) {
  const { head, state } = node.told()
  const wanted = new Map(objects.map((object) => [toHex(descriptorScript(object)), descriptorOf(object)]))
  const coins = allCoins(state)
  const unspents = coins.flatMap(({ txid, vout, coin }) => {
    const desc = wanted.get(coin.script)
    if (desc === undefined) return []
    const block = node.told().block(coin.height)
    return {
      txid,
      vout,
      scriptPubKey: coin.script,
      desc,
      amount: btc(coin.sats),
      coinbase: coin.isCoinbase,
      height: coin.height,
      blockhash: block?.seal.hash,
      confirmations: block && confirmations(node.told(), block),
    }
  })
  const own = coins.filter(({ coin }) => wanted.has(coin.script))
  return {
    success: true,
    txouts: coins.length,
    height: head.height,
    bestblock: head.seal.hash,
    unspents,
    total_amount: btc(own.reduce((sum, { coin }) => sum + coin.sats, 0n)),
  }
}

function descriptorOf(object: unknown): string {
  const given = (object as { desc?: unknown } | null)?.desc ?? object
  if (typeof given !== 'string')
    throw new NodeError(codes.parameter, 'Scan object needs to be either a string or an object')
  return given.replace(/#.*$/, '')
}

/** `addr(…)` and `raw(…)` of https://github.com/bitcoin/bitcoin/blob/master/doc/descriptors.md */
export function descriptorScript(object: unknown): Uint8Array {
  const descriptor = descriptorOf(object)
  const [, kind, inner = ''] = /^(addr|raw)\((.*)\)$/.exec(descriptor) ?? []
  if (kind === 'raw' && /^([0-9a-f]{2})*$/i.test(inner)) return Buffer.from(inner, 'hex')
  if (kind === 'raw') throw new NodeError(codes.notFound, 'Raw script is not hex')
  if (kind === undefined)
    throw new NodeError(codes.notFound, `'${descriptor}' is not a valid descriptor function`)
  const script = scriptOfAddress(inner)
  if (script === undefined) throw new NodeError(codes.notFound, 'Address is not valid')
  return script
}
