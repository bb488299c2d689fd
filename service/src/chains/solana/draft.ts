import { assert } from '../../domain/assert.ts'
import type { AssetId } from '../../domain/catalog/assets.ts'
import { amountOf, toChainUnits } from '../../domain/money/amount.ts'
import { larger } from '../../domain/money/larger.ts'
import { accept, type Outcome, refuse } from '../../domain/outcome.ts'
import type { Intent, KeyPath, Outflow, SolanaIntent } from '../../domain/payouts/intent.ts'
import { solanaFeeOf, unitPriceWithin } from '../../domain/payouts/solana_fee.ts'
import { lastBlockOf } from '../../domain/payouts/solana_life.ts'
import type { DraftRejection, FeeBid, Funds } from '../chain.ts'

export type Drafter = {
  /** The mint of a token asset, or null for SOL; throws for an asset of another chain. */
  readonly mintOf: (asset: AssetId) => string | null
  readonly parseAddress: (text: string) => Outcome<string>
  readonly feeLamportsMax: bigint
}

/** What a further attempt pays at least for being preferred: as much as for a signature. */
const FURTHER_LAMPORTS_LEAST = 5_000n

const RESERVE: KeyPath = { purpose: 'reserve', index: 0 }

export function draft(
  { mintOf, parseAddress }: Drafter,
  outflow: Outflow,
  bid: FeeBid,
  funds: Funds,
): Outcome<SolanaIntent, DraftRejection> {
  assert(bid.family === 'solana' && funds.model === 'timed', 'a Solana payout has a Solana bid and no nonce')
  assert(
    outflow.kind !== 'filler' && outflow.units > 0n,
    'nothing waits for a filler, and a payout pays something',
  )
  const to = parseAddress(outflow.address)
  if (!to.ok) return refuse({ code: 'destination', message: to.rejection.message })
  const token = mintOf(outflow.asset)
  const isSweep = outflow.from !== undefined
  // Coin leaves a deposit address whole, and so pays for itself; a token has no coin beside it.
  const units =
    isSweep && token === null
      ? (funds.held ?? 0n) - bid.feeLamports
      : toChainUnits(amountOf(outflow.asset, outflow.units))
  if (units <= 0n)
    return refuse({ code: 'funds', message: `${funds.held} lamports are not worth their own cost` })
  return accept({
    family: 'solana',
    chain: 'SOL',
    payoutId: outflow.payoutId,
    attempt: 1,
    from: funds.from,
    payer: isSweep && token !== null ? RESERVE : funds.from,
    to: to.value,
    units,
    token,
    ...lifeOf(bid),
  })
}

type SolanaBid = FeeBid & { readonly family: 'solana' }

/**
 * The same payment once more, in blocks of its own: it refers to one in which no earlier attempt is valid any more. Whether
 * the earlier one was in a block before that is `isOver`'s to say. For a unit it pays twice as much, up to the cap: nodes tell what was
 * the least in a block, and where blocks are full that is too little, however often it is bid. Sweeps are not raised, but planned anew.
 */
export function raise(
  { feeLamportsMax }: Pick<Drafter, 'feeLamportsMax'>,
  previous: Intent,
  bid: FeeBid,
): Outcome<SolanaIntent, DraftRejection> {
  assert(previous.family === 'solana' && bid.family === 'solana', 'a Solana attempt follows a Solana attempt')
  if (bid.reference.height < lastBlockOf(previous))
    return refuse({ code: 'network', message: 'the earlier attempt may still get into a block' })
  const next = { ...previous, attempt: previous.attempt + 1, ...lifeOf(bid) }
  const left = feeLamportsMax - solanaFeeOf({ ...next, unitPriceMicroLamports: 0n })
  const least = unitPriceWithin(FURTHER_LAMPORTS_LEAST, bid.units)
  const wanted = larger(bid.unitPriceMicroLamports, larger(2n * previous.unitPriceMicroLamports, least))
  const most = unitPriceWithin(left, bid.units)
  return accept({ ...next, unitPriceMicroLamports: wanted < most ? wanted : most })
}

function lifeOf({ units: computeUnits, unitPriceMicroLamports, reference }: SolanaBid) {
  return { computeUnits, unitPriceMicroLamports, reference, lastHeight: lastBlockOf({ reference }) }
}
