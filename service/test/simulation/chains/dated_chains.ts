import type { Chain, DraftRejection, FeeBid } from '../../../src/chains/chain.ts'
import { parseAddress } from '../../../src/chains/tron/address.ts'
import * as tronDraft from '../../../src/chains/tron/draft.ts'
import { parsePlace, parseTagged, textOf } from '../../../src/chains/xrp/address.ts'
import { LEDGERS_TO_LIVE } from '../../../src/chains/xrp/bid.ts'
import * as xrpDraft from '../../../src/chains/xrp/draft.ts'
import { assert } from '../../../src/domain/assert.ts'
import { nativeAsset } from '../../../src/domain/catalog/assets.ts'
import { amountOf, fromChainUnits, toChainUnits } from '../../../src/domain/money/amount.ts'
import { accept, refuse } from '../../../src/domain/outcome.ts'
import type { Outflow } from '../../../src/domain/payouts/intent.ts'
import { tellOnce, toOurs, unknownWithoutAnswer } from './coins_chain.ts'
import type { DatedNode, DatedRules } from './dated_node.ts'
import { type Line, LineFailed } from './line.ts'
import { readTronTx, readXrpTx, TRX_FEE } from './read_dated_tx.ts'

const spelling = { isMain: true }
const noContracts: ReadonlySet<string> = new Set()

export const datedRules = {
  XRP: {
    id: 'XRP',
    isFinal: true,
    holderOf: (address) => {
      const place = parsePlace(address, spelling)
      return place.ok ? place.value.account : address
    },
    read: readXrpTx,
  },
  TRX: { id: 'TRX', isFinal: false, holderOf: (address) => address, read: readTronTx },
} as const satisfies Record<'XRP' | 'TRX', DatedRules>

export const xrpSettings = { networkId: 0, feeDropsMax: 1_000_000n }

type Asked = { readonly ask: Line<DatedNode>; readonly reserveAddress: () => Promise<string> }

/** The XRP Ledger over a simulated node: places, drafts and further attempts by the code of the real connector. */
export function tagsChain(ask: Line<DatedNode>, reserveAddress: () => Promise<string>): Chain {
  const drafter = { ...xrpSettings, spelling }
  return {
    ...datedChain('XRP', ask),
    parseAddress: (text) => {
      const place = parsePlace(text, spelling)
      return place.ok ? accept(textOf(place.value, spelling)) : place
    },
    parseTagged: (text, tag) => parseTagged(text, tag, spelling),
    bid: (outflow) =>
      bid({ ask, reserveAddress }, outflow, async (fee) => {
        const { height } = await ask('head')
        return { family: 'xrp', feeDrops: fee, lastLedgerSequence: height + LEDGERS_TO_LIVE }
      }),
    draft: (outflow, feeBid, funds) => xrpDraft.draft(drafter, outflow, feeBid, funds),
    raise: (previous, feeBid) => xrpDraft.raise(drafter, previous, feeBid),
    minedNonce: (address) => ask('minedNonce', address),
  }
}

const LIFE_MS = 180_000

/** TRON without its tokens: what keeps attempts apart is time, and nothing else. */
export function timedChain(ask: Line<DatedNode>, reserveAddress: () => Promise<string>): Chain {
  const drafter = {
    contractOf: () => null,
    parseAddress: (text: string) => parseAddress(text, noContracts),
  }
  return {
    ...datedChain('TRX', ask),
    parseAddress: drafter.parseAddress,
    bid: (outflow) =>
      bid({ ask, reserveAddress }, outflow, async () => {
        const [solid, head] = [await ask('solid'), await ask('head')]
        const reference = { id: solid.hash, timeMs: solid.timeMs }
        const none = { energySun: 0n, feeLimitSun: 0n, otherSun: TRX_FEE }
        return { family: 'tron', ...none, reference, expirationMs: head.timeMs + LIFE_MS }
      }),
    draft: (outflow, feeBid, funds) => tronDraft.draft(drafter, outflow, feeBid, funds),
    raise: (previous, feeBid) => tronDraft.raise(previous, feeBid),
    isOver: async (intent, txHash) => {
      assert(intent.family === 'tron', 'it is of TRON')
      if ((await ask('solid')).timeMs < intent.expirationMs) return false
      return txHash === null || (await ask('lookup', txHash)).where === 'absent'
    },
    minedNonce: () => Promise.reject(new Error('accounts of TRON have no nonce')),
  }
}

/** What both are asked alike. */
function datedChain(id: 'XRP' | 'TRX', ask: Line<DatedNode>) {
  const native = nativeAsset(id).id
  return {
    id,
    family: id === 'XRP' ? 'xrp' : 'tron',
    model: 'account',
    assets: [native],
    checkIdentity: async () => {
      await ask('head')
    },
    head: async () => {
      const { height, hash } = await ask('head')
      return { height, hash }
    },
    blockHash: (height) => ask('blockHash', height),
    readBlock: async (height, findOurs) => {
      const block = await ask('block', height)
      return block && { ...block, transfers: await toOurs(block.transfers, findOurs) }
    },
    readMempool: tellOnce(() => ask('waiting')),
    lookup: (txHash) => ask('lookup', txHash),
    estimateCost: async () => fromChainUnits(native, await usualFee(id, ask)),
    broadcast: (tx) => unknownWithoutAnswer(ask('send', tx.bytes)),
    balance: async (asset, addresses, height) =>
      fromChainUnits(asset, await ask('holds', asset, addresses, ...(height === undefined ? [] : [height])))
        .units,
  } satisfies Partial<Chain>
}

async function usualFee(id: 'XRP' | 'TRX', ask: Line<DatedNode>): Promise<bigint> {
  return id === 'TRX' ? TRX_FEE : 2n * (await ask('askedFee'))
}

async function bid(
  asked: Asked,
  outflow: Outflow,
  price: (fee: bigint) => Promise<FeeBid>,
): ReturnType<Chain['bid']> {
  try {
    const fee = await asked.ask('askedFee')
    const refusal = outflow.kind === 'filler' ? null : await whyNot(asked, outflow, fee)
    return refusal === null ? accept(await price(fee)) : refuse(refusal)
  } catch (error) {
    if (error instanceof LineFailed) return refuse({ code: 'network', message: error.message })
    throw error
  }
}

async function whyNot(
  { ask, reserveAddress }: Asked,
  { asset, units, address }: Outflow,
  fee: bigint,
): Promise<DraftRejection | null> {
  const needed = toChainUnits(amountOf(asset, units)) + (asset === 'TRX:TRX' ? TRX_FEE : fee)
  if ((await ask('holds', asset, [await reserveAddress()])) < needed)
    return { code: 'funds', message: `with fees ${needed} units of ${asset} are needed` }
  if (!(await ask('isPayable', address)))
    return { code: 'destination', message: 'the address cannot be paid' }
  return null
}
