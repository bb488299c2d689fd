import { expect, test } from 'vitest'
import type { Transfer } from '../../chains/chain.ts'
import { nativeAsset } from '../../domain/catalog/assets.ts'
import type { ChainId } from '../../domain/catalog/networks.ts'
import { paperChain } from '../testing/paper_chain.ts'
import type { Look } from './look.ts'
import { withoutSweeps } from './own_sweeps.ts'

/**
 * What: what one address of ours sent to another is no deposit, and is asked for only where there are sweeps.
 * How: chains on paper, and a database that knows one sweep and counts what it is asked.
 */
async function lookAt(id: ChainId) {
  const transfers = ['our sweep', 'a deposit'].map(
    (txHash): Transfer => ({ id: txHash, txHash, to: 'ours', asset: nativeAsset(id).id, units: 1n }),
  )
  let asked = 0
  const query = async () => {
    asked += 1
    return [{ tx_hash: 'our sweep' }]
  }
  const look = { world: { db: { query } }, chain: paperChain(id) } as unknown as Look
  const told = await withoutSweeps(look, transfers)
  return { asked, told: told.map(({ txHash }) => txHash) }
}

test.each(['ETH', 'TRX', 'SOL'] as const)('a sweep on %s is passed over', async (id) => {
  expect(await lookAt(id)).toEqual({ asked: 1, told: ['a deposit'] })
})

test.each(['BTC', 'XRP', 'XLM', 'EOS'] as const)(
  'nothing is asked on %s, where nothing is swept',
  async (id) => {
    expect(await lookAt(id)).toMatchObject({ asked: 0 })
  },
)
