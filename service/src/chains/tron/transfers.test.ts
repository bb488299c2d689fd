import { expect, test } from 'vitest'
import { base58Of } from './address.ts'
import { readMoves } from './moves.ts'
import { transfersToOurs } from './transfers.ts'

const hash = 'cd'.repeat(32)
const [payer, payee] = [`41${'11'.repeat(20)}`, `41${'22'.repeat(20)}`]
const listed = { native: 'TRX:TRX', tokens: new Map() } as const

/** What the mempool and the blocks of java-tron say of a transfer of a TRC-10 token; `amount` is an int64 there. */
async function paidInTrc10(amount: number) {
  const value = {
    owner_address: payer,
    to_address: payee,
    asset_name: Buffer.from('1000001').toString('hex'),
    amount,
  }
  const contract = [{ type: 'TransferAssetContract', parameter: { value } }]
  const transaction = { txID: hash, ret: [{ contractRet: 'SUCCESS' }], raw_data: { contract } }
  const { moves } = readMoves([transaction], [{ id: hash, fee: 0 }])
  return transfersToOurs(moves, listed, async (addresses) => new Set(addresses))
}

test('a TRC-10 token is told as what it is', async () => {
  const told = {
    id: `${hash}:trc10`,
    txHash: hash,
    to: base58Of(payee),
    asset: { unlisted: 'TRC10.1000001' },
  }
  expect(await paidInTrc10(3)).toEqual([{ ...told, units: 3n }])
})

test.each([2 ** 53, 2 ** 60, 2 ** 63])('%d of a TRC-10 token stop no block', async (amount) => {
  expect(await paidInTrc10(amount)).toMatchObject([
    { units: BigInt(amount), asset: { unlisted: 'TRC10.1000001' } },
  ])
})
