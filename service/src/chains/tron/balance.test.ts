import { expect, test } from 'vitest'
import { base58Of } from './address.ts'
import { balance } from './balance.ts'
import { blocksOf } from './blocks.ts'
import { blockAt, scriptedNode } from './testing/scripted_node.ts'

const SUN_EACH = 7
/** A node answers that many questions for an account in the three seconds for which a solid block is the newest. */
const ANSWERS_A_BLOCK = 250
const PAID = { height: 1_003, sun: 5 }

/** Somebody pays one of ours in block 1003. Each holds the same before, and the solid block moves on while they are asked. */
function readerOf(paid: string, start = 1_000, answersEach = ANSWERS_A_BLOCK) {
  let answers = 0
  const solid = () => start + Math.floor(answers / answersEach)
  const txID = 'cd'.repeat(32)
  const value = { owner_address: `41${'ee'.repeat(20)}`, to_address: paid, amount: PAID.sun }
  const payment = {
    txID,
    ret: [{ contractRet: 'SUCCESS' }],
    raw_data: { contract: [{ type: 'TransferContract', parameter: { value } }] },
  }
  const block = (height: number) => blockAt(height, height * 3_000, height === PAID.height ? [payment] : [])
  const rpc = scriptedNode({
    'wallet/getblock': ({ id_or_num: height }) => block(Number(height ?? 1_019)),
    'wallet/gettransactioninfobyblocknum': () => [{ id: txID }],
    'walletsolidity/getblock': () => block(solid()),
    'walletsolidity/getaccount': ({ address }) => {
      answers += 1
      const hasCome = address === paid && solid() >= PAID.height
      return { address, balance: SUN_EACH + (hasCome ? PAID.sun : 0) }
    },
  })
  return { rpc, blocks: blocksOf(rpc) }
}

test.each([
  ['before', 1_002, 0],
  ['after', 1_003, PAID.sun],
])('more accounts than are told of in one solid block, just %s a payment', async (_, height, sun) => {
  const holders = Array.from({ length: 2_000 }, (__, at) => `41${at.toString(16).padStart(40, '0')}`)
  const reader = readerOf(holders.at(-1) ?? '')
  const held = await balance(reader, 'TRX:TRX', null, holders.map(base58Of), height)
  expect(held).toBe(BigInt(2_000 * SUN_EACH + sun))
})

test('a payment that becomes solid between two questions is counted once', async () => {
  const [paid, other] = [`41${'0a'.repeat(20)}`, `41${'0b'.repeat(20)}`]
  const reader = readerOf(paid, 1_002, 3)
  // The third answer of all is the first of the next solid block.
  await balance(reader, 'TRX:TRX', null, [base58Of(other)], 1_002)
  expect(await balance(reader, 'TRX:TRX', null, [other, paid].map(base58Of), 1_003)).toBe(19n)
})

test('what a transaction costs its sender is taken off TRX, and off no token', async () => {
  const [holder, token, txID] = [`41${'0a'.repeat(20)}`, `41${'0b'.repeat(20)}`, 'cd'.repeat(32)]
  const value = { owner_address: holder, contract_address: token }
  const call = {
    txID,
    ret: [{ contractRet: 'REVERT' }],
    raw_data: { contract: [{ type: 'TriggerSmartContract', parameter: { value } }] },
  }
  const rpc = scriptedNode({
    'wallet/getblock': ({ id_or_num: height }) =>
      blockAt(Number(height), 3_000 * Number(height), height === '1003' ? [call] : []),
    'wallet/gettransactioninfobyblocknum': () => [{ id: txID, fee: 345_000, result: 'FAILED' }],
    'walletsolidity/getblock': () => blockAt(1_002, 3_006_000),
    'walletsolidity/getaccount': ({ address }) => ({ address, balance: 1_000_000 }),
    'walletsolidity/triggerconstantcontract': () => ({ constant_result: ['7'.padStart(64, '0')] }),
  })
  const heldOf = (asset: 'TRX:TRX' | 'USDT:TRC20', contract: string | null) =>
    balance({ rpc, blocks: blocksOf(rpc) }, asset, contract, [base58Of(holder)], 1_003)
  expect(await heldOf('TRX:TRX', null)).toBe(655_000n)
  expect(await heldOf('USDT:TRC20', token)).toBe(7n * 10n ** 12n)
})
