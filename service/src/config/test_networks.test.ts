import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startDevnet } from '@cambist/devnet'
import { expect, test } from 'vitest'
import { chainIds } from '../domain/catalog/networks.ts'
import { isTestNetwork } from './test_networks.ts'

test('the networks of the devnet are test networks, and no main network is one', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'cambist-networks-'))
  const networks = ['ETH', 'BNB', 'XRP', 'XLM', 'TRX', 'EOS', 'SOL'] as const
  const devnet = await startDevnet({ dataDir: folder, networks, mining: 'manual', isLasting: false })
  try {
    const { ETH, BNB, XRP, XLM, TRX, EOS, SOL } = devnet.networks
    const local = {
      BTC: 'regtest',
      ETH: ETH?.chainId,
      BNB: BNB?.chainId,
      XRP: XRP?.networkId,
      XLM: XLM?.passphrase,
      TRX: TRX?.genesisBlockId,
      EOS: EOS?.chainId,
      SOL: SOL?.genesisHash,
    }
    for (const chain of chainIds) expect(isTestNetwork(chain, local[chain] ?? ''), chain).toBe(true)
  } finally {
    await devnet.stop()
    rmSync(folder, { recursive: true, force: true })
  }
  for (const chain of ['ETH', 'BNB'] as const) {
    for (const id of [1, 10, 56, 137, 8_453, 42_161]) expect(isTestNetwork(chain, id), `${id}`).toBe(false)
  }
  expect(isTestNetwork('BTC', 'mainnet')).toBe(false)
  expect(isTestNetwork('XRP', 0)).toBe(false)
})
