import { expect, test } from 'vitest'
import { broadcast } from './broadcast.ts'
import { refusing, type Script, scriptedRpc, silent } from './testing/scripted_rpc.ts'

const tx = { txHash: 'ab'.repeat(32), bytes: '0200' }
const spent = refusing(-25, 'bad-txns-inputs-missingorspent')
const nowhere = {
  getbestblockhash: () => 'tip',
  getmempoolinfo: () => ({ loaded: true }),
  getrawtransaction: refusing(-5, 'No such mempool or blockchain transaction. Use gettransaction'),
}
const mined = {
  getbestblockhash: () => 'tip',
  getmempoolinfo: () => ({ loaded: true }),
  getrawtransaction: () => ({ vin: [{ txid: 'x' }], blockhash: 'b', confirmations: 900, fee: '0.00000141' }),
  getblockheader: () => ({ height: 5, confirmations: 900 }),
}

function send(script: Script) {
  return broadcast(scriptedRpc(script), tx)
}

test.each<[string, Script]>([
  ['taken, or waiting already', { sendrawtransaction: () => tx.txHash }],
  ['mined already', { sendrawtransaction: refusing(-27, 'Transaction outputs already in utxo set') }],
  ['mined long ago and its outputs spent since', { ...mined, sendrawtransaction: spent }],
])('accepted: %s', async (_, script) => {
  expect(await send(script)).toBe('accepted')
})

test.each<[string, Script]>([
  ['no transaction at all', { sendrawtransaction: refusing(-22, 'TX decode failed.') }],
  [
    'inputs spent by another',
    { ...nowhere, sendrawtransaction: spent, decoderawtransaction: () => ({ vin: [{ txid: 'nowhere' }] }) },
  ],
  ['dust', { ...nowhere, sendrawtransaction: refusing(-26, 'dust') }],
  [
    'a bad signature',
    { ...nowhere, sendrawtransaction: refusing(-26, 'mandatory-script-verify-flag-failed') },
  ],
  [
    'too cheap a replacement',
    { ...nowhere, sendrawtransaction: refusing(-26, 'insufficient fee, rejecting replacement') },
  ],
])('refused: %s', async (_, script) => {
  expect(await send(script)).toBe('refused')
})

test.each<[string, Script]>([
  ['no answer', { sendrawtransaction: silent }],
  ['a node that starts up', { sendrawtransaction: refusing(-28, 'Loading block index…') }],
  ['a node with trouble of its own', { sendrawtransaction: refusing(-32603, 'internal error') }],
  [
    'refused, and then nobody can say whether it is known',
    { ...nowhere, sendrawtransaction: spent, getrawtransaction: silent },
  ],
  [
    'refused by a node that still reads its old mempool in',
    { ...nowhere, sendrawtransaction: spent, getmempoolinfo: () => ({ loaded: false }) },
  ],
  [
    'refused by a node whose index is not ready',
    {
      ...nowhere,
      sendrawtransaction: spent,
      getrawtransaction: refusing(
        -5,
        'No such mempool transaction. Blockchain transactions are still in the process of being indexed.',
      ),
    },
  ],
])('unknown: %s', async (_, script) => {
  expect(await send(script)).toBe('unknown')
})

/** Ours spends `child` and `other`; `child` spends `parent`, which spends a coinbase: of these the node has what `kept` says. */
function lostNode({ kept = {}, meddle }: { kept?: Script; meddle?: (method: string) => void } = {}) {
  const spends: Record<string, readonly unknown[]> = {
    child: [{ txid: 'parent' }, { txid: 'parent' }],
    parent: [{ txid: 'reward' }],
    reward: [{ coinbase: '51' }],
    other: [{ txid: 'elsewhere' }],
  }
  const pool = new Set<string>()
  const said: Script = {
    decoderawtransaction: () => ({ vin: [{ txid: 'other' }, { txid: 'child' }] }),
    getbestblockhash: () => 'tip',
    getmempoolinfo: () => ({ loaded: true }),
    getrawtransaction: (txid) => {
      const vin = spends[String(txid)]
      if (vin === undefined) return nowhere.getrawtransaction()
      if (pool.has(String(txid))) return { vin, hex: txid }
      return { vin, hex: txid, blockhash: 'a block', confirmations: txid === 'other' ? 7 : 0 }
    },
    sendrawtransaction: (bytes) => {
      const needed = { child: 'parent', [tx.bytes]: 'child' }[String(bytes)]
      if (bytes === 'reward') return refusing(-26, 'coinbase')()
      if (needed !== undefined && !pool.has(needed)) return spent()
      pool.add(String(bytes))
      return bytes === tx.bytes ? tx.txHash : bytes
    },
    ...kept,
  }
  const meddled = Object.entries(said).map(([method, say]): [string, Script[string]] => [
    method,
    (...params) => {
      meddle?.(method)
      return say(...params)
    },
  ])
  const rpc = scriptedRpc(Object.fromEntries(meddled))
  const sent = () => rpc.asked.flatMap(([method, bytes]) => (method === 'sendrawtransaction' ? [bytes] : []))
  return { rpc, sent }
}

test('what it spends goes with it, parents first, where a block that lost had it and the node has dropped it', async () => {
  const { rpc, sent } = lostNode()
  expect(await broadcast(rpc, tx)).toBe('accepted')
  expect(sent()).toEqual([tx.bytes, 'reward', 'parent', 'child', tx.bytes])
})

test('what it spends and is not taken back leaves it refused', async () => {
  const { rpc, sent } = lostNode({ kept: { sendrawtransaction: spent } })
  expect(await broadcast(rpc, tx)).toBe('refused')
  expect(sent()).toEqual([tx.bytes, 'reward', 'parent', 'child'])
})

test.each(['decoderawtransaction', 'getrawtransaction', 'sendrawtransaction'])(
  'a node that says nothing more, from any %s on, leaves no answer that was not given',
  async (cut) => {
    for (let after = 0; ; after += 1) {
      let asked = 0
      const { rpc, sent } = lostNode({
        meddle: (method) => {
          if (method === cut && asked++ >= after) silent()
        },
      })
      const answer = await broadcast(rpc, tx)
      if (asked <= after) {
        expect(answer).toBe('accepted')
        break
      }
      // Sent, and no answer: maybe it has it. Refused, and then silent about what it spends: it has it not.
      const isMaybeSent = after === 0 ? cut !== 'decoderawtransaction' : sent().lastIndexOf(tx.bytes) > 0
      expect(answer, `silent after ${after}`).toBe(isMaybeSent ? 'unknown' : 'refused')
    }
  },
)

test('bytes that are another transaction than they are said to be stop us', async () => {
  await expect(send({ sendrawtransaction: () => 'cd'.repeat(32) })).rejects.toThrow('assertion')
})
