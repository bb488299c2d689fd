import { parsePlace as parseEos } from '../../../src/chains/eos/address.ts'
import { parsePlace as parseStellar } from '../../../src/chains/stellar/address.ts'
import { parsePlace as parseXrp } from '../../../src/chains/xrp/address.ts'
import { chainFacts } from '../../../src/domain/catalog/networks.ts'
import type { Outcome } from '../../../src/domain/outcome.ts'
import type { DatedId, DatedRules } from './dated_node.ts'
import { readTronTx, readXrpTx } from './read_dated_tx.ts'
import { readEosTx } from './read_eos_tx.ts'
import { readSolanaTx } from './read_solana_tx.ts'
import { readStellarTx } from './read_stellar_tx.ts'

/** How a place of the XRP Ledger is written on its main network. */
export const spelling = { isMain: true }
/** What an account of Solana without data costs. */
export const RENT = 890_880n
/** Blocks of EOS and slots of Solana that are not final yet. Really there are more; each costs its look all the same. */
const NOT_FINAL_YET = 2

const usual = {
  reversible: () => 0,
  tellsReversible: true,
  tellsWaiting: true,
  queuesOne: false,
  asksFee: false,
  leastLeft: 0n,
  holderOf: (address: string) => address,
}
const onlyFinal = { reversible: () => NOT_FINAL_YET, tellsReversible: false, tellsWaiting: false }

export const datedRules = {
  XRP: {
    ...usual,
    id: 'XRP',
    asksFee: true,
    holderOf: (address) => accountIn(parseXrp(address, spelling), address),
    read: readXrpTx,
  },
  XLM: {
    ...usual,
    id: 'XLM',
    tellsWaiting: false,
    queuesOne: true,
    asksFee: true,
    holderOf: (address) => accountIn(parseStellar(address), address),
    read: readStellarTx,
  },
  TRX: { ...usual, id: 'TRX', reversible: () => chainFacts.TRX.confirmations - 1, read: readTronTx },
  EOS: {
    ...usual,
    ...onlyFinal,
    id: 'EOS',
    holderOf: (address) => accountIn(parseEos(address), address),
    read: readEosTx,
  },
  SOL: { ...usual, ...onlyFinal, id: 'SOL', leastLeft: RENT, read: readSolanaTx },
} as const satisfies { readonly [Id in DatedId]: DatedRules & { readonly id: Id } }

export const datedIds = Object.keys(datedRules) as readonly DatedId[]

/** Where tags are part of an address, whoever has the account holds what is sent there. */
function accountIn(place: Outcome<{ readonly account: string }>, address: string): string {
  return place.ok ? place.value.account : address
}
