import { readCoinsTx } from './chains/read_coins_tx.ts'
import type { SimulatedNodes } from './chains/simulated_chains.ts'
import type { Ground } from './ground.ts'
import { type Tariffs, TYPICAL_VBYTES } from './tariffs.ts'

/** A replacement pays so much for its own relay on top of what it replaces (BIP-125 rule 4). */
const RELAY_SATOSHI_PER_VB = 1n
/** A signature may be a byte shorter than was reckoned with. */
const SPARE_VBYTES_AN_INPUT = 1n
/** What is too little to be change goes to the miners. */
const CHANGE_VBYTES = 31n
const CHANGE_SATOSHI_MAX = 1_000n

type Sent = {
  readonly payout_id: string
  readonly attempt: number
  readonly tx_hash: string
  readonly bytes: string
}

/** What a payout on Bitcoin has cost is no more than was ever asked for a transaction of its size, and what being raised takes. */
export async function findDearPayouts(
  rows: Ground['rows'],
  { BTC }: SimulatedNodes,
  tariffs: Tariffs,
): Promise<string[]> {
  const sent = await rows<Sent>(
    `SELECT payout_id, attempt, tx_hash, bytes FROM attempts JOIN outflows USING (bucket, payout_id)
     WHERE chain = 'BTC' AND kind IN ('payout', 'refund') AND bytes IS NOT NULL ORDER BY payout_id, attempt`,
  )
  const costs = tariffs.costsUntil('BTC:BTC', Number.POSITIVE_INFINITY)
  const highest = costs.reduce((most, cost) => (cost > most ? cost : most), 0n)
  return sent.flatMap(({ payout_id, attempt, tx_hash, bytes }) => {
    const status = BTC.lookup(tx_hash)
    const tx = readCoinsTx(bytes)
    if (status.where !== 'block' || tx === null) return []
    const hasChange = tx.outputs.length > 1
    const inputs = BigInt(tx.spends.length)
    const vbytes = tx.vbytes + SPARE_VBYTES_AN_INPUT * inputs + (hasChange ? 0n : CHANGE_VBYTES)
    const most =
      (highest * vbytes) / TYPICAL_VBYTES +
      RELAY_SATOSHI_PER_VB * vbytes * BigInt(attempt - 1) +
      (hasChange ? 1n : CHANGE_SATOSHI_MAX)
    const cost = status.cost.units
    return cost <= most
      ? []
      : [`no more is paid to miners than they ask: ${payout_id} cost ${cost} of ${most}`]
  })
}
