import type { Rpc } from '../json_rpc.ts'
import type { Replacement } from '../local_network.ts'
import { fromBtc, isUnknownTransaction, toBtc } from './node_words.ts'

type WalletTransaction = {
  confirmations: number
  details: { category: string; address: string; amount: number }[]
  decoded: { txid: string; vin: { txid: string; vout: number }[]; vout: { value: number }[] }
}
type Coin = { txid: string; vout: number; sats: bigint }

/**
 * A real double spend of a transaction that the faucet sent: the same inputs, a higher fee.
 * https://github.com/bitcoin/bitcoin/blob/master/doc/policy/mempool-replacements.md
 */
export async function replaceTransaction(
  rpc: Rpc,
  wallet: Rpc,
  txHash: string,
  replacement: Replacement,
): Promise<{ txHash: string } | undefined> {
  const old = await readTransaction(rpc, wallet, txHash)
  if (old === undefined) return undefined
  if (old.confirmations !== 0) throw new Error(`${txHash} is already in a block`)
  if (replacement.feeBumpOnly === true) {
    const { txid } = await wallet<{ txid: string }>('bumpfee', [txHash])
    return { txHash: txid }
  }
  const payment = old.details.find(({ category }) => category === 'send')
  if (payment === undefined) throw new Error(`${txHash} pays nobody`)
  const changeAddress = await wallet<string>('getrawchangeaddress', ['bech32'])
  const ownAddress = await wallet<string>('getnewaddress', ['', 'bech32'])
  const to = replacement.to ?? (replacement.units === undefined ? ownAddress : payment.address)
  const units = replacement.units ?? fromBtc(-payment.amount)
  const { baseSats, perCoinSats } = await replacementFee(rpc, txHash)
  const known = old.decoded.vin.length
  const coins = await enoughCoins(rpc, wallet, old, { needed: units + baseSats, perCoinSats })
  const feeSats = baseSats + BigInt(coins.length - known) * perCoinSats
  const change = coins.reduce((sum, coin) => sum + coin.sats, 0n) - units - feeSats
  const dustSats = 1000n
  const outputs = [{ [to]: toBtc(units) }, ...(change > dustSats ? [{ [changeAddress]: toBtc(change) }] : [])]
  const inputs = coins.map(({ txid, vout }) => ({ txid, vout, sequence: 0xfffffffd }))
  const unsigned = await rpc<string>('createrawtransaction', [inputs, outputs])
  const signed = await wallet<{ hex: string }>('signrawtransactionwithwallet', [unsigned])
  return { txHash: await rpc<string>('sendrawtransaction', [signed.hex]) }
}

async function readTransaction(
  rpc: Rpc,
  wallet: Rpc,
  txHash: string,
): Promise<WalletTransaction | undefined> {
  try {
    return await wallet<WalletTransaction>('gettransaction', [txHash, false, true])
  } catch (error) {
    if (!isUnknownTransaction(error)) throw error
  }
  try {
    await rpc('getrawtransaction', [txHash])
  } catch (error) {
    if (isUnknownTransaction(error)) return undefined
    throw error
  }
  throw new Error(`${txHash} was not sent by the faucet`)
}

/**
 * Above what it and all that spends it paid together, above the price of relaying it once more, and at a
 * higher rate than before however many coins are added.
 */
async function replacementFee(rpc: Rpc, txHash: string): Promise<{ baseSats: bigint; perCoinSats: bigint }> {
  const entry = await rpc<{
    fees: { base: number; descendant: number }
    vsize: number
    descendantsize: number
  }>('getmempoolentry', [txHash])
  const extraSatPerVbyte = 5n
  const coinVbytes = 70n
  const outputVbytes = 80n
  const oldSatPerVbyte = fromBtc(entry.fees.base) / BigInt(entry.vsize) + 1n
  const satPerVbyte = oldSatPerVbyte + extraSatPerVbyte
  const relaySats = BigInt(entry.descendantsize) * extraSatPerVbyte
  return {
    baseSats: fromBtc(entry.fees.descendant) + relaySats + outputVbytes * satPerVbyte,
    perCoinSats: coinVbytes * satPerVbyte,
  }
}

/** The old inputs, and when the new payment is larger, confirmed coins: unconfirmed ones are not allowed. */
async function enoughCoins(
  rpc: Rpc,
  wallet: Rpc,
  old: WalletTransaction,
  price: { needed: bigint; perCoinSats: bigint },
): Promise<Coin[]> {
  const coins = await Promise.all(
    old.decoded.vin.map(async ({ txid, vout }): Promise<Coin> => {
      const tx = await rpc<{ vout: { value: number }[] }>('getrawtransaction', [txid, true])
      return { txid, vout, sats: fromBtc(tx.vout[vout]?.value ?? 0) }
    }),
  )
  let missing = price.needed - coins.reduce((sum, coin) => sum + coin.sats, 0n)
  if (missing <= 0n) return coins
  const spare = await wallet<{ txid: string; vout: number; amount: number }[]>('listunspent', [1])
  for (const { txid, vout, amount } of spare) {
    if (missing <= 0n) break
    coins.push({ txid, vout, sats: fromBtc(amount) })
    missing += price.perCoinSats - fromBtc(amount)
  }
  if (missing > 0n) throw new Error('the faucet has not enough coins')
  return coins
}
