import { expect, test } from 'vitest'
import { checkIdentity } from './identity.ts'
import { refusing, type Script, scriptedRpc, silent } from './testing/scripted_rpc.ts'

const right: Script = {
  getblockhash: () => '000000000019d6689c085ae165831e934ff763ae46a2a6c172b3f1b60a8ce26f',
  getblockchaininfo: () => ({ chain: 'main', blocks: 900_000 }),
  getdeploymentinfo: () => ({ deployments: { segwit: { active: true } } }),
  getindexinfo: () => ({ txindex: { synced: true, best_block_height: 900_000 } }),
  getnetworkinfo: () => ({ version: 250_000, localrelay: true }),
}

function check(changes: Script = {}) {
  return checkIdentity(scriptedRpc({ ...right, ...changes }), 'mainnet')
}

test('the right node passes', async () => {
  await expect(check()).resolves.toBeUndefined()
})

test.each<[string, Script, string]>([
  ['of another chain', { getblockchaininfo: () => ({ chain: 'test' }) }, 'configured is mainnet'],
  ['with another first block', { getblockhash: () => '00'.repeat(32) }, 'configured is mainnet'],
  ['of a chain that split off before segwit', { getdeploymentinfo: () => ({ deployments: {} }) }, 'segwit'],
  [
    'that does not know deployments',
    { getdeploymentinfo: refusing(-32601, 'Method not found') },
    'Method not found',
  ],
  ['without txindex', { getindexinfo: () => ({}) }, '-txindex=1'],
  [
    'that still builds its txindex',
    { getindexinfo: () => ({ txindex: { synced: false, best_block_height: 412_345 } }) },
    'still builds its transaction index (block 412345 of 900000)',
  ],
  ['that is too old', { getnetworkinfo: () => ({ version: 249_999, localrelay: true }) }, 'newer'],
  [
    'that hears of no transactions',
    { getnetworkinfo: () => ({ version: 250_000, localrelay: false }) },
    'restart it without -blocksonly',
  ],
  ['that is silent', { getnetworkinfo: silent }, 'no answer'],
])('a node %s is refused', async (_, changes, words) => {
  await expect(check(changes)).rejects.toThrow(words)
})
