import { Asset, Name, Serializer } from '@wharfkit/antelope'
import { expect, test } from 'vitest'
import { balance } from './balance.ts'
import { blocksOf } from './blocks.ts'
import { CHAIN_ID, idOf, infoAt, scriptedNode, tracedBlock } from './testing/scripted_node.ts'

/**
 * What: what an account held in a block is known also of a node so far away that its head is another one with each answer.
 * How: a node that makes a block with each question about the chain or a balance. In some of them we are paid 0.0005 EOS.
 */
const ACCOUNT = 'mycambist123'
const [START, PAID] = [7, 5]
const FIRST = 1_000

const hex = (name: string) => Serializer.encode({ object: Name.from(name) }).hexString
const quantity = Serializer.encode({ object: Asset.from('0.0005 EOS') }).hexString
const payment = {
  id: 'ef'.repeat(32),
  status: 'executed',
  actions: [
    {
      ...{ global_sequence: 1, receiver: 'eosio.token', account: 'eosio.token', action: 'transfer' },
      data: `${hex('alice')}${hex(ACCOUNT)}${quantity}00`,
    },
  ],
}

/** `isPaid`: whether a block has the payment. `forksAt`: the parent of that block is one that nobody was told of. */
function heldAt(height: number, isPaid: (height: number) => boolean, forksAt?: number) {
  let head = FIRST
  const irreversible = () => head - 2
  const asked = () => {
    head += 1
    return head
  }
  const paidUpTo = (last: number) =>
    Array.from({ length: last - FIRST }, (_, index) => FIRST + 1 + index).filter(isPaid).length
  const rpc = scriptedNode({
    'chain/get_info': () => infoAt(irreversible(), asked()),
    'chain/get_currency_balance': () => [
      `0.${String(START + PAID * paidUpTo(asked())).padStart(4, '0')} EOS`,
    ],
    'trace_api/get_block': ({ block_num }) => {
      const number = block_num as number
      const block = tracedBlock(number, 'pending', isPaid(number) ? [payment] : [])
      return number === forksAt ? { ...block, previous_id: idOf(number - 1).replace('ab', 'cd') } : block
    },
  })
  return balance({ rpc, blocks: blocksOf(rpc, CHAIN_ID) }, 'EOS:EOS', new Set([ACCOUNT]), height)
}

test.each([
  ['nothing', 0],
  ['a payment before the answer', FIRST + 2],
  ['a payment after the answer', FIRST + 3],
  ['a payment later', FIRST + 5],
])('blocks come while a balance is asked for, and bring %s', async (_, paidAt) => {
  expect(await heldAt(FIRST, (height) => height === paidAt)).toBe(BigInt(START))
})

test('a branch that was left meanwhile says nothing of a balance', async () => {
  await expect(heldAt(FIRST, () => false, FIRST + 2)).rejects.toThrow('changed: ask again')
})

test('where every block moves something nobody can say what is held', async () => {
  await expect(heldAt(FIRST, () => true)).rejects.toThrow('more moves than balances can be asked for')
})

test('a balance of a block that another one has taken the place of is asked for again', async () => {
  const left = { ...infoAt(FIRST - 2, FIRST), head_block_id: idOf(FIRST).replace('ab', 'cd') }
  const infos = [left, infoAt(FIRST - 2, FIRST)]
  const balances = ['0.0012 EOS', '0.0007 EOS']
  const rpc = scriptedNode({
    'chain/get_info': () => (infos.length > 1 ? infos.shift() : infos[0]),
    'chain/get_currency_balance': () => [balances.length > 1 ? balances.shift() : balances[0]],
    'trace_api/get_block': ({ block_num }) => tracedBlock(block_num as number, 'pending', []),
  })
  const held = balance({ rpc, blocks: blocksOf(rpc, CHAIN_ID) }, 'EOS:EOS', new Set([ACCOUNT]), FIRST - 2)
  expect(await held).toBe(BigInt(START))
})
