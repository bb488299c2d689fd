import { assert } from '../../domain/assert.ts'
import type { Coin, Intent } from '../../domain/payouts/intent.ts'
import { type Known, readKnown } from './lookup.ts'
import { integerIn, listIn, objectIn, textIn } from './replies.ts'
import { NoAnswer, type Rpc, RpcRefusal } from './rpc.ts'

/** So many transactions are followed back at the most; a reorganisation seldom leaves more than a few in a line. */
const ANCESTORS_MAX = 100

type Outpoint = Pick<Coin, 'txHash' | 'index'>

/**
 * What keeps an outpoint from being spent: nothing; another transaction in the best chain, `deep` or not; or that the
 * transaction it comes from is in no block, and never will be (`gone`), or may yet be, or nobody can tell (`waits`).
 */
type Fate = 'unspent' | 'spent' | 'spent deep' | 'gone' | 'waits'

/**
 * `confirmations`: as deep as it has to be to be believed. An answer counts only where all of it is about the same best block.
 * Whatever the node does not tell is no proof: a transaction that is nowhere may come back.
 */
export async function areExcluded(
  rpc: Rpc,
  confirmations: number,
  attempts: readonly Intent[],
): Promise<boolean> {
  try {
    const tip = textIn(await rpc.call('getbestblockhash'), 'getbestblockhash')
    return await search(new BestChain(rpc, tip, confirmations), attempts)
  } catch (error) {
    if (error instanceof NoAnswer || error instanceof RpcRefusal) return false
    throw error
  }
}

/** Whether the best chain has it and nothing in that chain spends it. */
export async function isUnspent(rpc: Rpc, { txHash, index }: Outpoint): Promise<boolean> {
  return (await rpc.call('gettxout', txHash, index, false)) !== null
}

async function search(chain: BestChain, attempts: readonly Intent[]): Promise<boolean> {
  for (const attempt of attempts) {
    assert(attempt.family === 'bitcoin', 'a coin chain has attempts that spend coins')
    const fates: Fate[] = []
    for (const coin of attempt.inputs) fates.push(await chain.fateOf(coin))
    if (!fates.includes('gone') || fates.some((fate) => fate === 'spent' || fate === 'spent deep'))
      return false
  }
  return attempts.length > 0
}

function nameOf({ txHash, index }: Outpoint): string {
  return `${txHash}:${index}`
}

/** What is asked of the best chain while its best block is `tip`. */
class BestChain {
  readonly #rpc: Rpc
  readonly #tip: string
  readonly #confirmations: number
  readonly #dead = new Map<string, boolean>()
  #spentLately: Promise<ReadonlySet<string>> | null = null

  constructor(rpc: Rpc, tip: string, confirmations: number) {
    this.#rpc = rpc
    this.#tip = tip
    this.#confirmations = confirmations
  }

  async fateOf(outpoint: Outpoint): Promise<Fate> {
    const { isUnspent, origin } = await this.#ask(outpoint)
    if (isUnspent) return 'unspent'
    if (origin === null || origin.where === 'mempool') return 'waits'
    if (origin.where === 'block') {
      this.#spentLately ??= this.#readLastBlocks()
      return (await this.#spentLately).has(nameOf(outpoint)) ? 'spent' : 'spent deep'
    }
    return (await this.#isDead(outpoint.txHash, origin.tx)) ? 'gone' : 'waits'
  }

  /**
   * In one request, so that it is one node that answers: of several behind one address another may be a block ahead, and what is
   * spent in that block would be taken for spent long ago, because it is in none of the last blocks below the tip.
   */
  async #ask({ txHash, index }: Outpoint): Promise<{ isUnspent: boolean; origin: Known | null }> {
    const [before, output, found, after] = await this.#rpc.batch([
      ['getbestblockhash'],
      ['gettxout', txHash, index, false],
      ['getrawtransaction', txHash, 1],
      ['getbestblockhash'],
    ])
    if (output === undefined || found === undefined || !before?.ok || !after?.ok)
      throw new NoAnswer('getbestblockhash', 'no hash')
    if (before.value !== this.#tip || after.value !== this.#tip)
      throw new NoAnswer('gettxout', 'the best block is another one')
    if (!output.ok) throw output.rejection
    if (output.value !== null) return { isUnspent: true, origin: null }
    return { isUnspent: false, origin: readKnown(found) }
  }

  /** Its block lost. Whether an input of it is gone for good. */
  async #isDead(txHash: string, tx: Record<string, unknown>): Promise<boolean> {
    const known = this.#dead.get(txHash)
    if (known !== undefined || this.#dead.size >= ANCESTORS_MAX) return known ?? false
    this.#dead.set(txHash, false)
    for (const vin of listIn(tx.vin, 'vin')) {
      if (!(await this.#isTaken(objectIn(vin, 'vin'), textIn(tx.blockhash, 'blockhash')))) continue
      this.#dead.set(txHash, true)
      return true
    }
    return false
  }

  /** Whether nothing but what is in the best chain will ever have this input. */
  async #isTaken(input: Record<string, unknown>, lostBlock: string): Promise<boolean> {
    if (input.coinbase !== undefined) return this.#isBuried(lostBlock)
    const fate = await this.fateOf(outpointOf(input))
    return fate === 'spent deep' || fate === 'gone'
  }

  /** A coinbase says the height of its block (BIP-34): once another block is deep there, it belongs nowhere. */
  async #isBuried(lost: string): Promise<boolean> {
    return (await this.#heightOf(lost)) <= (await this.#heightOf(this.#tip)) + 1 - this.#confirmations
  }

  async #heightOf(hash: string): Promise<number> {
    const header = objectIn(await this.#rpc.call('getblockheader', hash), 'getblockheader')
    return integerIn(header.height, 'getblockheader height')
  }

  /** What the blocks spend that are not deep yet. */
  async #readLastBlocks(): Promise<ReadonlySet<string>> {
    const spent = new Set<string>()
    let hash: unknown = this.#tip
    for (let depth = 1; depth < this.#confirmations && hash !== undefined; depth += 1) {
      const block = objectIn(
        await this.#rpc.call('getblock', textIn(hash, 'previousblockhash'), 2),
        'getblock',
      )
      for (const tx of listIn(block.tx, 'getblock tx')) {
        for (const vin of listIn(objectIn(tx, 'getblock tx').vin, 'vin')) {
          const input = objectIn(vin, 'vin')
          if (input.coinbase === undefined) spent.add(nameOf(outpointOf(input)))
        }
      }
      hash = block.previousblockhash
    }
    return spent
  }
}

function outpointOf(input: Record<string, unknown>): Outpoint {
  return { txHash: textIn(input.txid, 'vin txid'), index: integerIn(input.vout, 'vin vout') }
}
