import type { Chain } from '../../../src/chains/chain.ts'
import * as eos from '../../../src/chains/eos/address.ts'
import { lifetimeFrom } from '../../../src/chains/eos/bid.ts'
import * as eosDraft from '../../../src/chains/eos/draft.ts'
import { parseAddress as parseSolana } from '../../../src/chains/solana/address.ts'
import * as solanaDraft from '../../../src/chains/solana/draft.ts'
import { TRANSFER_UNITS, withRoom } from '../../../src/chains/solana/fees.ts'
import { parseAddress as parseTron } from '../../../src/chains/tron/address.ts'
import * as tronDraft from '../../../src/chains/tron/draft.ts'
import { assert } from '../../../src/domain/assert.ts'
import { nativeAsset } from '../../../src/domain/catalog/assets.ts'
import { amountOf, fromChainUnits } from '../../../src/domain/money/amount.ts'
import { accept, refuse } from '../../../src/domain/outcome.ts'
import type { Intent } from '../../../src/domain/payouts/intent.ts'
import { solanaFee } from '../../../src/domain/payouts/solana_fee.ts'
import { lastBlockOf } from '../../../src/domain/payouts/solana_life.ts'
import { type Asked, bidFor, datedChain } from './dated_chain.ts'
import { RENT } from './dated_rules.ts'
import { TRX_FEE } from './read_dated_tx.ts'
import { BLOCKS_EACH, blockhashOf } from './read_solana_tx.ts'

/** Tokens are left out. */
const nothingListed: ReadonlySet<string> = new Set()
const TRON_LIFE_MS = 180_000

export const eosSettings = {
  chainId: 'aa'.repeat(32),
  account: 'mycambist123',
  // Of the seed that the simulation signs with.
  publicKey: 'PUB_K1_6s3jtxpHziToePhuVyhsCRJinWVWYyvXAEX3Que4SyGuw5f4W5',
}
export const solanaSettings = { feeLamportsMax: 1_000_000n }

type EndOf = { readonly height: number; readonly timeMs: number }

/** What keeps attempts apart is time, and nothing else. */
function timedChain(asked: Asked, hasEnded: (intent: Intent, solid: EndOf) => boolean) {
  const { id, ask } = asked
  return {
    ...datedChain(asked),
    isOver: async (intent, txHash) => {
      if (!hasEnded(intent, await ask('solid'))) return false
      return txHash === null || (await ask('lookup', txHash)).where === 'absent'
    },
    minedNonce: () => Promise.reject(new Error(`accounts of ${id} have no nonce`)),
  } satisfies Partial<Chain>
}

/** TRON over a simulated node: addresses, drafts and further attempts by the code of the real connector. */
export function tronChain(asked: Asked): Chain {
  const { ask } = asked
  const parse = (text: string) => parseTron(text, nothingListed)
  const drafter = { contractOf: () => null, parseAddress: parse }
  return {
    ...timedChain(asked, (intent, { timeMs }) => {
      assert(intent.family === 'tron', 'it is of TRON')
      return timeMs >= intent.expirationMs
    }),
    finalBlock: async () => {
      const { height, hash } = await ask('solid')
      return { height, hash }
    },
    parseAddress: parse,
    estimatePayout: async () => ({ cost: fromChainUnits('TRX:TRX', TRX_FEE), isAboveFeeCap: false }),
    bid: (outflow) =>
      bidFor(asked, outflow, async () => {
        const [solid, newest] = [await ask('solid'), await ask('newest')]
        const reference = { id: solid.hash, timeMs: solid.timeMs }
        const life = { reference, expirationMs: newest.timeMs + TRON_LIFE_MS }
        const costs = { energySun: 0n, feeLimitSun: 0n, otherSun: TRX_FEE }
        return accept({ cost: TRX_FEE, bid: { family: 'tron', ...costs, ...life } })
      }),
    draft: (outflow, feeBid, funds) => tronDraft.draft(drafter, outflow, feeBid, funds),
    raise: tronDraft.raise,
  }
}

/** EOS, in the same way. A transfer costs nothing. */
export function eosChain(asked: Asked): Chain {
  const { ask } = asked
  return {
    ...timedChain(asked, (intent, { timeMs }) => {
      assert(intent.family === 'eos', 'it is of EOS')
      return timeMs > intent.expirationMs
    }),
    parseAddress: (text) => {
      const place = eos.parsePlace(text)
      return place.ok ? accept(eos.textOf(place.value)) : place
    },
    parseTagged: eos.parseTagged,
    estimatePayout: async () => ({ cost: amountOf(nativeAsset('EOS').id, 0n), isAboveFeeCap: false }),
    bid: (outflow) =>
      bidFor(asked, outflow, async () => {
        const bid = lifetimeFrom(await ask('solid'), await ask('newest'))
        const message = 'no block has become irreversible for long'
        return bid === null ? refuse({ code: 'network', message }) : accept({ cost: 0n, bid })
      }),
    draft: (outflow, feeBid, funds) => eosDraft.draft(eosSettings, outflow, feeBid, funds),
    raise: eosDraft.raise,
  }
}

/** Solana, in the same way, without its tokens. */
export function solanaChain(asked: Asked): Chain {
  const { ask } = asked
  const parse = (text: string) => parseSolana(text, nothingListed)
  const drafter = { mintOf: () => null, parseAddress: parse, ...solanaSettings }
  const price = async () => {
    // So much for each of the units that a transfer may use comes to what is asked, in lamports.
    const unitPriceMicroLamports = (await ask('askedFee')) * (1_000_000n / BigInt(TRANSFER_UNITS))
    return { unitPriceMicroLamports, feeLamports: solanaFee(1, TRANSFER_UNITS, unitPriceMicroLamports) }
  }
  return {
    ...timedChain(asked, (intent, { height }) => {
      assert(intent.family === 'solana', 'it is of Solana')
      return height * BLOCKS_EACH > lastBlockOf(intent)
    }),
    parseAddress: parse,
    // Whatever it asks is bid.
    estimatePayout: async () => ({
      cost: fromChainUnits('SOL:SOL', withRoom((await price()).feeLamports)),
      isAboveFeeCap: false,
    }),
    bid: (outflow) =>
      bidFor(
        asked,
        outflow,
        async () => {
          const priced = await price()
          const { height: slot, hash } = await ask('solid')
          const reference = { slot, blockhash: blockhashOf(hash), height: slot * BLOCKS_EACH }
          const units = { units: TRANSFER_UNITS, holdingRentLamports: 0n }
          const bid = { family: 'solana', ...units, ...priced, reference } as const
          return accept({ cost: priced.feeLamports, bid })
        },
        RENT,
      ),
    draft: (outflow, feeBid, funds) => solanaDraft.draft(drafter, outflow, feeBid, funds),
    raise: (previous, feeBid) => solanaDraft.raise(drafter, previous, feeBid),
    lockedUnits: async () => fromChainUnits('SOL:SOL', RENT).units,
  }
}
