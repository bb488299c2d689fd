import { assert } from '../../domain/assert.ts'
import { nativeAsset } from '../../domain/catalog/assets.ts'
import { fromChainUnits } from '../../domain/money/amount.ts'
import { accept } from '../../domain/outcome.ts'
import { countOfSequence } from '../../domain/payouts/intent.ts'
import { BALANCE_LAG_BLOCKS, type Chain } from '../chain.ts'
import { readAccount, reserveOf } from './account.ts'
import { parsePlace, parseTagged, textOf } from './address.ts'
import { balance } from './balance.ts'
import { bid } from './bid.ts'
import { broadcast } from './broadcast.ts'
import { checkIdentity } from './check_identity.ts'
import { draft, raise } from './draft.ts'
import { askedFee, estimateAt } from './fees.ts'
import { connect } from './horizon.ts'
import { head, readLedger } from './ledger.ts'
import { lookup } from './lookup.ts'
import { readAll } from './replies.ts'
import type { StellarSettings } from './settings.ts'
import { transfersToOurs } from './transfers.ts'

/**
 * Stellar through a Horizon. All deposits arrive at one account, told apart by the ids of muxed addresses; payouts leave
 * from it under its sequence, one a ledger. A ledger that has closed is final, and Horizon tells of nothing before.
 */
export function stellar(settings: StellarSettings): Chain {
  const { id, horizonUrl, passphrase, feeStroopsMax, timeoutMs, reserveAddress } = settings
  const horizon = connect(horizonUrl, timeoutMs)
  const native = nativeAsset(id).id
  const accountOf = (address: string) => {
    const place = parsePlace(address)
    assert(place.ok, `${address} is an address of ${id}`)
    return place.value.account
  }
  const reserveAccount = async () => accountOf(await reserveAddress())
  const look = (txHash: string) => lookup(horizon, txHash, reserveAccount)
  return {
    id,
    family: 'stellar',
    model: 'account',
    assets: [native],
    parseAddress: (text) => {
      const place = parsePlace(text)
      return place.ok ? accept(textOf(place.value)) : place
    },
    parseTagged,
    accountOf,
    checkIdentity: () => checkIdentity(horizon, passphrase),
    head: async () => {
      const { height, hash, closedAtS } = await head(horizon)
      return { height, hash, timeMs: closedAtS * 1_000 }
    },
    blockHash: async (height) => (await readLedger(horizon, height))?.hash ?? null,
    readBlock: async (height, findOurs) => {
      const ledger = await readLedger(horizon, height)
      if (ledger === null) return null
      const { hash, parentHash, closedAtS } = ledger
      const payments = await readAll(horizon, `/ledgers/${height}/payments?join=transactions`)
      const transfers = await transfersToOurs(payments, findOurs)
      return { height, hash, parentHash, timeMs: closedAtS * 1_000, transfers }
    },
    readMempool: async () => [],
    lookup: look,
    estimatePayout: async () => estimateAt(feeStroopsMax, await askedFee(horizon)),
    bid: (outflow) => bid({ horizon, feeStroopsMax, reserveAccount }, outflow),
    draft: (outflow, feeBid, funds) => draft(passphrase, outflow, feeBid, funds),
    raise,
    broadcast: (tx) => broadcast({ horizon, passphrase, lookup: look }, tx),
    balance: (asset, addresses, height) => balance(horizon, asset, new Set(addresses.map(accountOf)), height),
    balanceLagBlocks: BALANCE_LAG_BLOCKS,
    lockedUnits: async () => {
      const account = await readAccount(horizon, await reserveAccount())
      const kept = reserveOf(account?.entries ?? 0, (await head(horizon)).baseReserve)
      // The fee is taken before the payment: with nothing left for it, that would fail in the ledger.
      return fromChainUnits(native, kept + (account?.offered ?? 0n) + feeStroopsMax).units
    },
    minedNonce: async (address) => {
      const account = await readAccount(horizon, accountOf(address))
      return (account === null ? 0 : countOfSequence(account.sequence)) + 1
    },
  }
}
