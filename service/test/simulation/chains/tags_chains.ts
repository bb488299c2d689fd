import type { Chain } from '../../../src/chains/chain.ts'
import * as stellar from '../../../src/chains/stellar/address.ts'
import { LIFE_S } from '../../../src/chains/stellar/bid.ts'
import * as stellarDraft from '../../../src/chains/stellar/draft.ts'
import { estimateAt, feeWithin } from '../../../src/chains/stellar/fees.ts'
import * as xrp from '../../../src/chains/xrp/address.ts'
import { LEDGERS_TO_LIVE } from '../../../src/chains/xrp/bid.ts'
import * as xrpDraft from '../../../src/chains/xrp/draft.ts'
import { fromChainUnits } from '../../../src/domain/money/amount.ts'
import { accept, refuse } from '../../../src/domain/outcome.ts'
import { type Asked, bidFor, datedChain } from './dated_chain.ts'
import { spelling } from './dated_rules.ts'
import { PASSPHRASE, SEQUENCE_BASE } from './read_stellar_tx.ts'

export const xrpSettings = { networkId: 0, feeDropsMax: 1_000_000n }
export const stellarSettings = { passphrase: PASSPHRASE, feeStroopsMax: 1_000_000n }

/** The XRP Ledger over a simulated node: places, drafts and further attempts by the code of the real connector. */
export function xrpChain(asked: Asked): Chain {
  const { ask } = asked
  const drafter = { ...xrpSettings, spelling }
  return {
    ...datedChain(asked),
    parseAddress: (text) => {
      const place = xrp.parsePlace(text, spelling)
      return place.ok ? accept(xrp.textOf(place.value, spelling)) : place
    },
    parseTagged: (text, tag) => xrp.parseTagged(text, tag, spelling),
    // Whatever it asks is bid.
    estimatePayout: async () => ({
      cost: fromChainUnits('XRP:XRP', 2n * (await ask('askedFee'))),
      isAboveFeeCap: false,
    }),
    bid: (outflow) =>
      bidFor(asked, outflow, async () => {
        const feeDrops = await ask('askedFee')
        const { height } = await ask('head')
        const lastLedgerSequence = height + LEDGERS_TO_LIVE
        return accept({ cost: feeDrops, bid: { family: 'xrp', feeDrops, lastLedgerSequence } })
      }),
    draft: (outflow, feeBid, funds) => xrpDraft.draft(drafter, outflow, feeBid, funds),
    raise: (previous, feeBid) => xrpDraft.raise(drafter, previous, feeBid),
    minedNonce: (address) => ask('minedNonce', address),
  }
}

/** Stellar, in the same way. An account that is not there yet is made by what pays it. */
export function stellarChain(asked: Asked): Chain {
  const { ask } = asked
  const { passphrase, feeStroopsMax } = stellarSettings
  return {
    ...datedChain(asked),
    parseAddress: (text) => {
      const place = stellar.parsePlace(text)
      return place.ok ? accept(stellar.textOf(place.value)) : place
    },
    parseTagged: stellar.parseTagged,
    estimatePayout: async () => estimateAt(feeStroopsMax, await ask('askedFee')),
    bid: (outflow) =>
      bidFor(asked, outflow, async () => {
        const fee = feeWithin(feeStroopsMax, await ask('askedFee'))
        if (!fee.ok) return fee
        const { timeMs } = await ask('head')
        const creates = outflow.kind !== 'filler' && !(await ask('isThere', outflow.address))
        if (creates && stellar.readPlace(outflow.address)?.id !== null)
          return refuse({ code: 'destination', message: 'an account is not made by a muxed address' })
        const maxTimeS = Math.floor(timeMs / 1_000) + LIFE_S
        const life = { maxTimeS, sequenceBase: SEQUENCE_BASE }
        return accept({
          cost: fee.value,
          bid: { family: 'stellar', feeStroops: fee.value, ...life, creates },
        })
      }),
    draft: (outflow, feeBid, funds) => stellarDraft.draft(passphrase, outflow, feeBid, funds),
    raise: stellarDraft.raise,
    lockedUnits: async () => fromChainUnits('XLM:XLM', feeStroopsMax).units,
    // The first sequence of an account is one more than where it began.
    minedNonce: async (address) => (await ask('minedNonce', address)) + 1,
  }
}
