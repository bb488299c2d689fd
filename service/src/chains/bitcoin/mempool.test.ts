import { OutScript, RawTx, Transaction } from '@scure/btc-signer'
import { expect, test } from 'vitest'
import type { FindOurs } from '../chain.ts'
import { watchMempool } from './mempool.ts'
import { refusing, scriptedRpc, silent } from './testing/scripted_rpc.ts'

const everyone: FindOurs = async (addresses) => new Set(addresses)
const hash = new Uint8Array(20).fill(7)

function payment(satoshi: bigint) {
  const bytes = RawTx.encode({
    version: 2,
    segwitFlag: false,
    inputs: [{ txid: new Uint8Array(32).fill(1), index: 0, finalScriptSig: new Uint8Array(), sequence: 0 }],
    outputs: [{ amount: satoshi, script: OutScript.encode({ type: 'wpkh', hash }) }],
    witnesses: [],
    lockTime: 0,
  })
  return { txid: Transaction.fromRaw(bytes).id, hex: Buffer.from(bytes).toString('hex') }
}

function pool(...txs: { txid: string; hex: string }[]) {
  const waiting = new Map(txs.map(({ txid, hex }) => [txid, hex]))
  const gone = refusing(-5, 'No such mempool or blockchain transaction.')
  const rpc = scriptedRpc({
    getrawmempool: () => [...waiting.keys()],
    getrawtransaction: (txid) => waiting.get(String(txid)) ?? gone(),
  })
  const read = watchMempool(rpc, 'regtest')
  return { rpc, waiting, read, hashes: async () => (await read(everyone)).map(({ txHash }) => txHash) }
}

test('every transaction is told once, and again when it came back', async () => {
  const [first, second] = [payment(1_000n), payment(2_000n)]
  const { waiting, hashes } = pool(first)
  expect(await hashes()).toEqual([first.txid])
  expect(await hashes()).toEqual([])
  waiting.set(second.txid, second.hex)
  expect(await hashes()).toEqual([second.txid])
  waiting.delete(first.txid)
  expect(await hashes()).toEqual([])
  waiting.set(first.txid, first.hex)
  expect(await hashes()).toEqual([first.txid])
})

test('a transaction that vanishes between the list and the look is no error and is told when it returns', async () => {
  const [first, second] = [payment(1_000n), payment(2_000n)]
  const { rpc, waiting } = pool(first)
  const listed = { ...rpc, call: async () => [first.txid, second.txid] }
  const read = watchMempool(listed, 'regtest')
  expect((await read(everyone)).map(({ txHash }) => txHash)).toEqual([first.txid])
  waiting.set(second.txid, second.hex)
  expect((await read(everyone)).map(({ txHash }) => txHash)).toEqual([second.txid])
})

test('what is to be told again is told again, as long as it waits', async () => {
  const [first, second] = [payment(1_000n), payment(2_000n)]
  const { read, hashes } = pool(first, second)
  expect(await hashes()).toEqual([first.txid, second.txid])
  const again = new Set([first.txid, payment(3_000n).txid])
  expect((await read(everyone, again)).map(({ txHash }) => txHash)).toEqual([first.txid])
  expect(await hashes()).toEqual([])
})

test('what could not be looked up in our tables is told the next time', async () => {
  const first = payment(1_000n)
  const { read, hashes } = pool(first)
  await expect(read(() => Promise.reject(new Error('database away')))).rejects.toThrow('database away')
  expect(await hashes()).toEqual([first.txid])
})

test('a node that fails in between is an error, and nothing is forgotten', async () => {
  const first = payment(1_000n)
  const { rpc, hashes } = pool(first)
  const cut = watchMempool({ ...rpc, batch: async () => silent() }, 'regtest')
  await expect(cut(everyone)).rejects.toThrow()
  expect(await hashes()).toEqual([first.txid])
})

test('the address table is asked once a look, and not at all for nothing new', async () => {
  const { read } = pool(payment(1_000n), payment(2_000n), payment(3_000n))
  let asked = 0
  const counting: FindOurs = (addresses) => {
    asked += 1
    expect(addresses).toHaveLength(1)
    return everyone(addresses)
  }
  expect(await read(counting)).toHaveLength(3)
  await read(counting)
  expect(asked).toBe(1)
})

test('a mempool that is suddenly full is caught up with over several looks', async () => {
  const txs = Array.from({ length: 6_000 }, (_, index) => payment(1_000n + BigInt(index)))
  const { read } = pool(...txs)
  const looks = [await read(everyone), await read(everyone), await read(everyone)]
  expect(looks.map(({ length, isPart }) => [length, isPart])).toEqual([
    [5_000, true],
    [1_000, false],
    [0, false],
  ])
  expect(new Set(looks.flat().map(({ txHash }) => txHash)).size).toBe(6_000)
})
