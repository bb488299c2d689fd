import { assert } from '../../domain/assert.ts'
import { type AssetId, nativeAsset } from '../../domain/catalog/assets.ts'
import { chainFacts, type EvmChainId } from '../../domain/catalog/networks.ts'
import { fromChainUnits } from '../../domain/money/amount.ts'
import type { Chain } from '../chain.ts'
import { listedTokens } from '../listed_tokens.ts'
import { parseAddress } from './address.ts'
import { balance } from './balance.ts'
import { bid, usualPayout } from './bid.ts'
import { broadcast } from './broadcast.ts'
import { identityCheck } from './check_identity.ts'
import { checksummed, count, decodeHeader, quantity } from './decode.ts'
import { draft, raise } from './draft.ts'
import { askedFees, isPricedOut } from './fees.ts'
import { finalBlock } from './final_block.ts'
import { jsonRpc, NodeNonsense, unwrap } from './json_rpc.ts'
import { lookup } from './lookup.ts'
import { blockHash, readBlock } from './read_block.ts'
import { mempoolReader } from './read_mempool.ts'
import type { EvmSettings } from './settings.ts'
import { blockTracer } from './traces.ts'

export type { EvmSettings } from './settings.ts'

/** Ethereum, BNB Smart Chain and whatever else runs the EVM and speaks Ethereum's JSON-RPC. */
export function evm(settings: EvmSettings): Chain {
  const { id, evmChainId, timeoutMs, reserveAddress } = settings
  const rpc = jsonRpc(settings.rpcUrl, timeoutMs)
  const trace = blockTracer(rpc, settings.tracing ?? 'auto', timeoutMs)
  const native = nativeAsset(id).id
  const listed = listedTokens(settings, inLowercase)
  const contracts = new Map([...listed].map(([contract, asset]) => [asset, checksummed(contract)]))
  const tokenContracts = new Set(listed.keys())

  const contractOf = (asset: AssetId) => {
    if (asset === native) return null
    const contract = contracts.get(asset)
    assert(contract !== undefined, `${asset} has a contract on ${id}`)
    return contract
  }
  const parse = (text: string) => parseAddress(text, tokenContracts)
  const { maxFeePerGasWeiMax: capWei, gasLimitMax } = settings
  const feesNow = askedOnce(() => askedFees(rpc))
  const bidder = { rpc, capWei, gasLimitMax, reserveAddress, contractOf }
  const drafter = { chain: id, evmChainId, capWei, gasLimitMax, contractOf, parseAddress: parse }

  return {
    id,
    family: 'evm',
    model: 'account',
    assets: [native, ...contracts.keys()],
    parseAddress: parse,
    checkIdentity: identityCheck({ rpc, trace, name: chainFacts[id].name, evmChainId, listed }),
    async head() {
      const { height, hash, timeMs } = decodeHeader(await rpc.call('eth_getBlockByNumber', ['latest', false]))
      return { height, hash, timeMs }
    },
    ...(TELL_FINALITY[id] && { finalBlock: () => finalBlock(rpc) }),
    blockHash: (height) => blockHash(rpc, height),
    readBlock: (height, findOurs) => readBlock({ rpc, trace, native, listed }, height, findOurs),
    readMempool: mempoolReader({ rpc, native, listed }),
    lookup: (txHash, attempt) => lookup(rpc, native, txHash, attempt),
    async estimatePayout(asset) {
      const { wei, isAboveFeeCap } = await usualPayout(bidder, asset, await feesNow())
      return { cost: fromChainUnits(native, wei), isAboveFeeCap }
    },
    bid: (outflow) => bid(bidder, outflow),
    draft: (outflow, feeBid, funds) => draft(drafter, outflow, feeBid, funds),
    raise: (previous, feeBid, held) => raise(drafter, previous, feeBid, held),
    async isPricedOut(attempt) {
      assert(attempt.family === 'evm', `an attempt on ${id} is of its family`)
      return isPricedOut(attempt, await feesNow(), capWei)
    },
    broadcast: (tx) => broadcast(rpc, native, tx),
    balance: (asset, addresses, height) => balance(rpc, asset, contractOf(asset), addresses, height),
    minedNonce: async (address, height) => {
      const at = height === undefined ? 'latest' : `0x${height.toString(16)}`
      // The reserve has the same address on every chain of this family, and a nonce that was taken on the word of another would leave a gap.
      const [told, nonce] = await rpc.settle([
        { method: 'eth_chainId', params: [] },
        { method: 'eth_getTransactionCount', params: [address, at] },
      ])
      if (told === undefined || nonce === undefined) throw new NodeNonsense('the node left a call unanswered')
      const chainId = quantity(unwrap(told), 'chain id')
      if (chainId !== BigInt(evmChainId)) throw new NodeNonsense(`the node is of chain ${chainId}`)
      return count(unwrap(nonce), 'transaction count')
    },
  }
}

/**
 * A validator of BNB Smart Chain makes 16 blocks in its turn (BEP-524), so that twelve may be the word of one alone; what the others have
 * voted for is final, mostly two blocks later (BEP-126).
 */
const TELL_FINALITY: Readonly<Record<EvmChainId, boolean>> = { ETH: false, BNB: true }

/** Whoever asks while an answer is under way gets that one. */
function askedOnce<Value>(ask: () => Promise<Value>): () => Promise<Value> {
  let asking: Promise<Value> | null = null
  return () => {
    asking ??= ask().finally(() => {
      asking = null
    })
    return asking
  }
}

/** A contract with a wrong checksum is none. */
function inLowercase(contract: string): string | null {
  return parseAddress(contract, new Set()).ok ? contract.toLowerCase() : null
}
