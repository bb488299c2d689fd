import { expect, test } from 'vitest'
import { NodeBusy } from '../chain.ts'
import { watchBalance } from './balance.ts'
import { NoAnswer, RpcRefusal } from './rpc.ts'
import { refusing, scriptedRpc } from './testing/scripted_rpc.ts'

/**
 * What: the node's scan of all coins is added up exactly; that it scans for somebody else is told as that and as nothing else.
 * How: a scripted node in the words of Bitcoin Core (src/rpc/blockchain.cpp, scantxoutset).
 */
const scanned = {
  success: true,
  unspents: [{ amount: '0.00000001' }, { amount: '1.10000000' }, { amount: '3.00000000', coinbase: true }],
}

const holding = (scan: () => unknown) =>
  watchBalance(scriptedRpc({ scantxoutset: scan }))('BTC:BTC', ['bc1one', 'bc1two'])

test('coins are added up to the satoshi, but for rewards', async () => {
  expect(await holding(() => scanned)).toBe(110_000_001n)
})

test('a scan that is under way for another process is no refusal of ours', async () => {
  const inProgress = refusing(-8, 'Scan already in progress, use action "abort" or "status"')
  await expect(holding(inProgress)).rejects.toBeInstanceOf(NodeBusy)
  await expect(holding(refusing(-8, 'Invalid descriptor'))).rejects.toBeInstanceOf(RpcRefusal)
  await expect(holding(() => ({ ...scanned, success: false }))).rejects.toBeInstanceOf(NoAnswer)
})

test('after a scan that was refused the next one starts afresh', async () => {
  let asked = 0
  const rpc = scriptedRpc({
    scantxoutset: () => {
      asked += 1
      return asked === 1 ? refusing(-8, 'Scan already in progress')() : scanned
    },
  })
  const balance = watchBalance(rpc)
  const both = await Promise.allSettled([balance('BTC:BTC', ['bc1one']), balance('BTC:BTC', ['bc1one'])])
  expect(both.map(({ status }) => status)).toEqual(['rejected', 'fulfilled'])
})
