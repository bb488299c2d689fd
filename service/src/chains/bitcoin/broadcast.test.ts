import { expect, test } from 'vitest'
import { broadcast } from './broadcast.ts'
import { refusing, type Script, scriptedRpc, silent } from './testing/scripted_rpc.ts'

const tx = { txHash: 'ab'.repeat(32), bytes: '0200' }
const spent = refusing(-25, 'bad-txns-inputs-missingorspent')
const nowhere = {
  getbestblockhash: () => 'tip',
  getrawtransaction: refusing(-5, 'No such mempool or blockchain transaction. Use gettransaction'),
}
const mined = {
  getbestblockhash: () => 'tip',
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
  ['inputs spent by another', { ...nowhere, sendrawtransaction: spent }],
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

test('bytes that are another transaction than they are said to be stop us', async () => {
  await expect(send({ sendrawtransaction: () => 'cd'.repeat(32) })).rejects.toThrow('assertion')
})
