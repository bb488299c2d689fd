import { expect, test } from 'vitest'
import { lookup } from './lookup.ts'
import { NoAnswer, RpcRefusal } from './rpc.ts'
import { refusing, type Script, scriptedRpc, silent } from './testing/scripted_rpc.ts'

const txHash = 'ab'.repeat(32)
const absent = refusing(
  -5,
  'No such mempool or blockchain transaction. Use gettransaction for wallet transactions.',
)
const loaded = { getmempoolinfo: () => ({ loaded: true }) }
const still = { ...loaded, getbestblockhash: () => 'tip' }
const mined = { vin: [{ txid: 'x' }], blockhash: 'b7', confirmations: 2, fee: '0.00000141' }

function look(script: Script) {
  return lookup(scriptedRpc(script), txHash)
}

test('absent is said when mempool and index have nothing and no block came meanwhile', async () => {
  expect(await look({ ...still, getrawtransaction: absent })).toEqual({ where: 'absent' })
})

test('a block that arrives during the search is searched too', async () => {
  const tips = ['old', 'new', 'new', 'new']
  const answers = [absent, () => mined]
  const status = await look({
    ...loaded,
    getbestblockhash: () => tips.shift(),
    getrawtransaction: () => answers.shift()?.(),
    getblockheader: () => ({ height: 7, confirmations: 2 }),
  })
  expect(status).toMatchObject({ where: 'block', block: { height: 7, hash: 'b7' } })
  expect(answers).toEqual([])
})

test('a chain that never holds still is no answer', async () => {
  let tip = 0
  const script = { ...loaded, getbestblockhash: () => `${tip++}`, getrawtransaction: absent }
  await expect(look(script)).rejects.toThrow(NoAnswer)
})

test.each([
  'No such mempool transaction. Use -txindex or provide a block hash to enable blockchain transaction queries. Use gettransaction for wallet transactions.',
  'No such mempool transaction. Blockchain transactions are still in the process of being indexed. Use gettransaction for wallet transactions.',
  'Loading block index…',
])('a node that cannot know does not make a transaction absent: %s', async (reason) => {
  await expect(look({ ...still, getrawtransaction: refusing(-5, reason) })).rejects.toThrow(RpcRefusal)
})

test('silence is no answer', async () => {
  await expect(look({ ...still, getrawtransaction: silent })).rejects.toThrow(NoAnswer)
  await expect(
    look({ ...loaded, getbestblockhash: refusing(-28, 'Loading'), getrawtransaction: absent }),
  ).rejects.toThrow()
})

test('as long as a node reads its old mempool in, what it does not know is not absent, and what it knows is told', async () => {
  const loading = { ...still, getmempoolinfo: () => ({ loaded: false }) }
  await expect(look({ ...loading, getrawtransaction: absent })).rejects.toThrow(/still being loaded/)
  const lost = { ...mined, confirmations: 0 }
  await expect(look({ ...loading, getrawtransaction: () => lost })).rejects.toThrow(NoAnswer)
  const waiting = { vin: [{ txid: 'x' }], fee: '0.00000141' }
  expect(await look({ ...loading, getrawtransaction: () => waiting })).toEqual({ where: 'mempool' })
  const header = { getblockheader: () => ({ height: 7, confirmations: 2 }) }
  expect(await look({ ...loading, ...header, getrawtransaction: () => mined })).toMatchObject({
    where: 'block',
  })
})

test('a node that keeps from us whether it has loaded makes nothing absent', async () => {
  const refusesInfo = { ...still, getmempoolinfo: refusing(-32601, 'Method not found') }
  await expect(look({ ...refusesInfo, getrawtransaction: absent })).rejects.toThrow(RpcRefusal)
})

test('the mempool is asked whether it has loaded before what is in it', async () => {
  const rpc = scriptedRpc({ ...still, getrawtransaction: absent })
  await lookup(rpc, txHash)
  expect(rpc.asked.map(([method]) => method)).toEqual([
    'getbestblockhash',
    'getmempoolinfo',
    'getrawtransaction',
    'getbestblockhash',
  ])
})

test('a transaction without a block waits; one in a block that lost is nowhere', async () => {
  const waiting = { vin: [{ txid: 'x' }], fee: '0.00000141' }
  expect(await look({ ...still, getrawtransaction: () => waiting })).toEqual({ where: 'mempool' })
  expect(await look({ ...still, getrawtransaction: () => ({ ...mined, confirmations: 0 }) })).toEqual({
    where: 'absent',
  })
})

test('a block that loses while we look makes us look again', async () => {
  const headers = [
    { height: 7, confirmations: -1 },
    { height: 8, confirmations: 1 },
  ]
  const status = await look({
    ...still,
    getrawtransaction: () => mined,
    getblockheader: () => headers.shift(),
  })
  expect(status).toMatchObject({ where: 'block', block: { height: 8 } })
})

test('the cost is the fee to the satoshi; a coinbase has none; without a fee there is no answer', async () => {
  const header = { getblockheader: () => ({ height: 7, confirmations: 2 }) }
  const cost = async (tx: unknown) => look({ ...still, ...header, getrawtransaction: () => tx })
  expect(await cost(mined)).toMatchObject({ cost: { asset: 'BTC:BTC', units: 141n } })
  expect(await cost({ ...mined, vin: [{ coinbase: '00' }], fee: undefined })).toMatchObject({
    cost: { units: 0n },
  })
  await expect(cost({ ...mined, fee: undefined })).rejects.toThrow(NoAnswer)
})
