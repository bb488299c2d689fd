import { assert } from '../../domain/assert.ts'
import { nativeAsset } from '../../domain/catalog/assets.ts'
import { fromChainUnits } from '../../domain/money/amount.ts'
import { accept } from '../../domain/outcome.ts'
import { BALANCE_LAG_BLOCKS, type Chain } from '../chain.ts'
import { parsePlace, parseTagged, textOf } from './address.ts'
import { balance, lockedDrops, nextSequence } from './balance.ts'
import { bid } from './bid.ts'
import { broadcast } from './broadcast.ts'
import { checkIdentity } from './check_identity.ts'
import { checkThread } from './check_thread.ts'
import { draft, raise } from './draft.ts'
import { askedFee, estimateAt } from './fees.ts'
import { head, readLedger } from './ledger.ts'
import { lookup } from './lookup.ts'
import { connect } from './rpc.ts'
import type { XrpSettings } from './settings.ts'
import { transfersToOurs } from './transfers.ts'

/**
 * The XRP Ledger. All deposits arrive at one account, told apart by tags; payouts leave from it under its sequence. A
 * validated ledger is final, and one that is not validated is nobody's word: there is no mempool to tell of.
 */
export function xrp({ id, rpcUrl, networkId, feeDropsMax, timeoutMs, reserveAddress }: XrpSettings): Chain {
  const rpc = connect(rpcUrl, timeoutMs)
  const spelling = { isMain: networkId === 0 }
  const native = nativeAsset(id).id
  const accountOf = (address: string) => {
    const place = parsePlace(address, spelling)
    assert(place.ok, `${address} is an address of ${id}`)
    return place.value.account
  }
  const reserveAccount = async () => accountOf(await reserveAddress())
  const drafter = { networkId, spelling, feeDropsMax }
  return {
    id,
    family: 'xrp',
    model: 'account',
    assets: [native],
    parseAddress: (text) => {
      const place = parsePlace(text, spelling)
      return place.ok ? accept(textOf(place.value, spelling)) : place
    },
    parseTagged: (text, tag) => parseTagged(text, tag, spelling),
    accountOf,
    checkIdentity: () => checkIdentity(rpc, networkId),
    head: () => head(rpc),
    blockHash: async (height) => (await readLedger(rpc, height))?.hash ?? null,
    readBlock: async (height, findOurs) => {
      const ledger = await readLedger(rpc, height, { transactions: true, expand: true })
      if (ledger === null) return null
      await checkThread(rpc, await reserveAccount(), ledger)
      const { transactions, ...block } = ledger
      return { ...block, transfers: await transfersToOurs(transactions, spelling, findOurs) }
    },
    readMempool: async () => [],
    lookup: (txHash) => lookup(rpc, txHash),
    estimatePayout: async () => estimateAt(feeDropsMax, await askedFee(rpc)),
    bid: (outflow) => bid({ rpc, spelling, feeDropsMax, reserveAccount }, outflow),
    draft: (outflow, feeBid, funds) => draft(drafter, outflow, feeBid, funds),
    raise: (previous, feeBid) => raise(drafter, previous, feeBid),
    broadcast: (tx) => broadcast(rpc, tx),
    balance: (asset, addresses, height) => balance(rpc, asset, new Set(addresses.map(accountOf)), height),
    balanceLagBlocks: BALANCE_LAG_BLOCKS,
    lockedUnits: async () =>
      fromChainUnits(native, await lockedDrops(rpc, await reserveAccount(), feeDropsMax)).units,
    minedNonce: (address) => nextSequence(rpc, accountOf(address)),
  }
}
