import { expect, test } from 'vitest'
import { base58Of } from './address.ts'
import { mempoolReader } from './mempool.ts'
import { scriptedNode } from './testing/scripted_node.ts'

const PAYEE = `41${'22'.repeat(20)}`
const hashes = Array.from({ length: 25 }, (_, index) => index.toString(16).padStart(64, '0'))

/**
 * What: however much waits, a look asks for little of it, and later looks for the rest.
 * How: a scripted node with 25 payments to us that wait, and counts what it is asked for.
 */
test('what waits is asked for ten at a time, each once', async () => {
  const { look, asked } = crowded()
  const told: string[][] = []
  for (let looks = 0; looks < 4; looks += 1) {
    const transfers = await look(async () => new Set([base58Of(PAYEE)]))
    told.push(transfers.map(({ txHash }) => txHash))
  }
  expect(told.map(({ length }) => length)).toEqual([10, 10, 5, 0])
  expect(told.flat()).toEqual(hashes)
  expect(asked).toEqual(hashes)
  const again = await look(async () => new Set([base58Of(PAYEE)]), new Set(hashes.slice(3, 5)))
  expect(again.map(({ txHash }) => txHash)).toEqual(hashes.slice(3, 5))
})

test('what is to be told again is asked for before all others', async () => {
  const { look } = crowded()
  const isOurs = async () => new Set([base58Of(PAYEE)])
  const again = await look(isOurs, new Set(hashes.slice(20, 22)))
  expect(again.map(({ txHash }) => txHash)).toEqual([...hashes.slice(20, 22), ...hashes.slice(0, 8)])
})

function crowded() {
  const asked: unknown[] = []
  const value = { owner_address: `41${'11'.repeat(20)}`, to_address: PAYEE, amount: 7 }
  const contract = [{ type: 'TransferContract', parameter: { value } }]
  const node = scriptedNode({
    'wallet/gettransactionlistfrompending': () => ({ txId: hashes }),
    'wallet/gettransactionfrompending': ({ value: hash }) => {
      asked.push(hash)
      return { txID: hash, raw_data: { contract } }
    },
  })
  return { look: mempoolReader(node, { native: 'TRX:TRX', tokens: new Map() }), asked }
}

/** Such a call costs its sender nothing while it waits, and its units are more than any table of ours takes. */
test("a listed token's transfer of more than there is of it is not told", async () => {
  const token = `41${'33'.repeat(20)}`
  const waiting = [2n ** 256n - 1n, 2n ** 128n + 1n, 7n].map((units, index) => {
    const words = [PAYEE.slice(2), units.toString(16)].map((word) => word.padStart(64, '0'))
    const data = `a9059cbb${words.join('')}`
    const value = { owner_address: `41${'11'.repeat(20)}`, contract_address: token, data }
    const contract = [{ type: 'TriggerSmartContract', parameter: { value } }]
    return { txID: hashes[index] ?? '', raw_data: { contract } }
  })
  const node = scriptedNode({
    'wallet/gettransactionlistfrompending': () => ({ txId: waiting.map(({ txID }) => txID) }),
    'wallet/gettransactionfrompending': ({ value: hash }) => waiting.find(({ txID }) => txID === hash),
  })
  const look = mempoolReader(node, { native: 'TRX:TRX', tokens: new Map([[token, 'USDT:TRC20']]) })
  const transfers = await look(async () => new Set([base58Of(PAYEE)]))
  expect(transfers).toMatchObject([{ txHash: hashes[2], asset: 'USDT:TRC20', units: 7n * 10n ** 12n }])
})
