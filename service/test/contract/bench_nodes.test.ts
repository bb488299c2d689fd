import { expect, test, vi } from 'vitest'
import { paidIn } from '../../bench/blocks/own_addresses.ts'
import { scannedChains } from '../../bench/scanned_chains.ts'
import { startServerProcess } from '../../bench/server_process.ts'
import type { FindOurs } from '../../src/chains/chain.ts'
import { nativeAsset } from '../../src/domain/catalog/assets.ts'
import { chainIds } from '../../src/domain/catalog/networks.ts'

/**
 * What: the nodes that the benchmark of scanning asks answer what the connectors ask by now.
 * How: each as the benchmark starts it, with two blocks and what they pay to us, read by the real connector.
 */
test.each(chainIds)('the node of %s that benchmarks ask is understood', async (id) => {
  const node = await startServerProcess('block_server.ts', [id, '2'])
  try {
    const chain = scannedChains[id].connect(node.url)
    const lookAt = async (height: number) => {
      await fetch(`${node.url}/head`, { method: 'POST', body: String(height) })
      const ours = paidIn(height).map(scannedChains[id].addressOf)
      const findOurs: FindOurs = async (asked) => new Set(asked.filter((one) => ours.includes(one)))
      return { head: await chain.head(), block: await chain.readBlock(height, findOurs) }
    }
    for (const height of [1, 2]) {
      // On a busy machine a block may take its maker longer than the connector waits for an answer.
      const { head, block } = await vi.waitFor(() => lookAt(height), { timeout: 60_000 })
      expect(block).toMatchObject({ height: head.height, hash: head.hash })
      expect(block?.transfers.map(({ asset }) => asset).sort()).toEqual([...scannedChains[id].pays].sort())
    }
    // What is written down of the reserve with every look.
    const { id: native } = nativeAsset(id)
    expect((await chain.estimatePayout(native)).cost.asset).toBe(native)
    const { reserve } = scannedChains[id]
    if (reserve !== null) expect(await chain.balance(native, [reserve])).toBeGreaterThanOrEqual(0n)
  } finally {
    await node.stop()
  }
})
