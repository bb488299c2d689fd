import { expect, test } from 'vitest'
import type { ChainId } from '../../src/domain/catalog/networks.ts'
import { type HttpLine, openHttpLine } from '../harness/http_line.ts'
import { startTestSandbox } from '../harness/test_sandbox.ts'

/**
 * What: a sandbox that has slept is ready only when it has looked at its chains again, so that nobody is told they are away.
 * How: sandboxes of tests go on from a first start that was stopped; the node of Bitcoin takes its time.
 */
test('every chain was looked at when a second start is ready', async () => {
  let startedMs = 0
  const lines: HttpLine[] = []
  const slowly = async (chain: ChainId, rpcUrl: string) => {
    startedMs = Date.now()
    if (chain !== 'BTC') return rpcUrl
    const line = await openHttpLine(rpcUrl)
    line.meddle(() => 'delay')
    lines.push(line)
    return line.url
  }
  const sandbox = await startTestSandbox({ reach: slowly })
  try {
    const heads = await sandbox.rows<{ chain: string; looked_wall_ms: number; height: number }>(
      'SELECT chain, looked_wall_ms, height FROM chain_heads ORDER BY chain',
    )
    expect(heads.map(({ chain }) => chain)).toEqual(['BNB', 'BTC', 'ETH'])
    for (const { looked_wall_ms: lookedMs, height } of heads) {
      expect(lookedMs).toBeGreaterThanOrEqual(startedMs)
      // Of a chain that is new the first block would be the one that it was funded in.
      expect(Number(height)).toBeGreaterThan(1)
    }
  } finally {
    await sandbox.stop()
    await Promise.all(lines.map((line) => line.stop()))
  }
})
