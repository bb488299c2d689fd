import type { Hex } from 'viem'
import type { ForkingChain } from './chain_diary.ts'
import { type Storm, underWay } from './storm.ts'

/** Takes the newest blocks out of the chain, and notes whom that met. */
export async function reorganise(storm: Storm, chain: ForkingChain, depth: number): Promise<void> {
  const { sandbox, diaries } = storm
  const taken = new Set(diaries[chain].above(depth))
  for (const { stage, payments, payout } of await underWay(storm)) {
    const isPayoutTaken = payout !== null && taken.has(payout)
    if (isPayoutTaken) storm.orphanedPayouts[chain] += 1
    if (isPayoutTaken || payments.some(({ txHash }) => taken.has(txHash))) storm.struck.reorg[stage] += 1
  }
  const isEvm = chain === 'ETH' || chain === 'BNB'
  const dropped = isEvm ? await rawPayments(storm, chain, taken) : []
  await sandbox.devnet.reorg(chain, depth)
  if (isEvm) await sendAgain(storm, chain, dropped)
  await diaries[chain].read()
}

/** anvil drops what it takes out of a block, so that its sender has to send it again: the bytes, while they are known. */
async function rawPayments(
  { sandbox, orders }: Storm,
  chain: 'ETH' | 'BNB',
  taken: ReadonlySet<string>,
): Promise<Hex[]> {
  const { client } = sandbox.devnet.evm(chain)
  const lost = orders.flatMap(({ payments }) => payments).filter(({ txHash }) => taken.has(txHash))
  const raw: Hex[] = []
  for (const { txHash } of lost) {
    raw.push(await client.request({ method: 'eth_getRawTransactionByHash', params: [txHash] } as never))
  }
  return raw
}

/** Most senders do; what the others sent never comes. */
async function sendAgain(
  { sandbox, chance }: Storm,
  chain: 'ETH' | 'BNB',
  dropped: readonly Hex[],
): Promise<void> {
  const { client } = sandbox.devnet.evm(chain)
  for (const serializedTransaction of dropped) {
    if (!chance.happens(0.7)) continue
    await client.sendRawTransaction({ serializedTransaction }).catch(() => {
      // Its nonce was used by another payment meanwhile.
    })
  }
}
