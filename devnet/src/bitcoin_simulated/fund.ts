import { allCoins, COINBASE_MATURITY, type Coin } from './coins.ts'
import type { BitcoinNode } from './node.ts'
import { codes, NodeError } from './node_error.ts'
import { type Decoded, type Input, type Output, toHex } from './transaction.ts'

export type OwnCoin = {
  readonly txid: string
  readonly vout: number
  readonly coin: Coin
  readonly confirmations: number
}
type Draft = Pick<Decoded, 'version' | 'lockTime' | 'inputs' | 'outputs'>

/** What an input of each kind weighs once it is signed. */
const INPUT_VBYTES = { legacy: 148, 'p2sh-segwit': 91, bech32: 68, bech32m: 58 } as const
const CHANGE_VBYTES = 31
/** Less would be dust, or nearly. */
const CHANGE_MIN_SATS = 1_000n
const REPLACEABLE = 0xffff_fffd
/** A mempool takes 25 in a row: the last are left to whoever spends this one. */
const ANCESTORS_MAX = 20

/** The faucet's coins that nothing spends yet. Unconfirmed ones count when all that made them is the faucet's. */
export function ownCoins(node: BitcoinNode, confirmationsMin: number): OwnCoin[] {
  const { chain, pool, wallet } = node
  const isOwn = ({ script }: Coin) => wallet.typeOf(script) !== undefined
  const mined = allCoins(chain.view().state).flatMap(({ coin, ...at }) => {
    const confirmations = chain.head.height - coin.height + 1
    const isMature = !coin.isCoinbase || confirmations >= COINBASE_MATURITY
    return isOwn(coin) && isMature ? [{ ...at, coin, confirmations }] : []
  })
  const waiting = [...pool.entries.values()].flatMap(({ decoded, spent }) => {
    if (!spent.coins.every(isOwn) || pool.ancestors(decoded.txid).length >= ANCESTORS_MAX) return []
    return decoded.outputs.flatMap((_, vout) => {
      const coin = pool.coin(decoded.txid, vout)
      return coin && isOwn(coin) ? [{ txid: decoded.txid, vout, coin, confirmations: 0 }] : []
    })
  })
  return [...mined, ...waiting].filter(
    ({ txid, vout, confirmations }) =>
      confirmations >= confirmationsMin && pool.spenderOf(txid, vout) === undefined,
  )
}

/** Adds coins and change to a draft. `at`: where the change comes; default: last. */
export function fund(
  node: BitcoinNode,
  draft: Draft,
  satPerVb: number,
  at = draft.outputs.length,
): { readonly tx: Draft; readonly feeSats: bigint; readonly changeAt: number } {
  const given = draft.inputs.map(({ txid, vout }) => {
    const coin = node.pool.coin(txid, vout)
    if (coin === undefined) throw new NodeError(codes.funds, 'Insufficient funds')
    return { txid, vout, coin, confirmations: 0 }
  })
  const wanted = draft.outputs.reduce((sum, { sats }) => sum + sats, 0n)
  const price = (coins: readonly OwnCoin[]) => feeOf(node, coins, draft.outputs, satPerVb)
  const chosen = choose(node, given, (coins) => sum(coins) - wanted - price(coins))
  const fee = price(chosen)
  const change = sum(chosen) - wanted - fee
  const spends = [...draft.inputs, ...chosen.slice(given.length).map(inputOf)]
  if (change < CHANGE_MIN_SATS)
    return { tx: { ...draft, inputs: spends }, feeSats: fee + change, changeAt: -1 }
  const outputs = draft.outputs.toSpliced(at, 0, { sats: change, script: node.wallet.changeScript })
  return { tx: { ...draft, inputs: spends, outputs }, feeSats: fee, changeAt: at }
}

export function inputOf({ txid, vout }: { readonly txid: string; readonly vout: number }): Input {
  return { txid, vout, scriptSig: new Uint8Array(), sequence: REPLACEABLE, witness: [] }
}

/** The smallest coin that is enough alone, or the largest together; confirmed ones if they are enough. */
function choose(
  node: BitcoinNode,
  given: readonly OwnCoin[],
  missing: (coins: readonly OwnCoin[]) => bigint,
): readonly OwnCoin[] {
  if (given.length > 0 && missing(given) >= 0n) return given
  const isGiven = ({ txid, vout }: OwnCoin) => given.some((one) => one.txid === txid && one.vout === vout)
  for (const confirmationsMin of [1, 0]) {
    const coins = ownCoins(node, confirmationsMin)
      .filter((coin) => !isGiven(coin))
      .sort((left, right) => (left.coin.sats < right.coin.sats ? 1 : -1))
    const single = coins.findLast((coin) => missing([...given, coin]) >= 0n)
    if (single !== undefined) return [...given, single]
    for (let count = 2; count <= coins.length; count++) {
      const together = [...given, ...coins.slice(0, count)]
      if (missing(together) >= 0n) return together
    }
  }
  throw new NodeError(codes.funds, 'Insufficient funds')
}

function feeOf(
  { wallet }: BitcoinNode,
  coins: readonly OwnCoin[],
  outputs: readonly Output[],
  satPerVb: number,
): bigint {
  const inputs = coins.map(({ coin }) => INPUT_VBYTES[wallet.typeOf(coin.script) ?? 'legacy'])
  const paid = outputs.map(({ script }) => 9 + toHex(script).length / 2)
  const vbytes = [12, CHANGE_VBYTES, ...inputs, ...paid].reduce((all, one) => all + one, 0)
  return BigInt(Math.ceil(vbytes * satPerVb))
}

function sum(coins: readonly OwnCoin[]): bigint {
  return coins.reduce((all, { coin }) => all + coin.sats, 0n)
}
