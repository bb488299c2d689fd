import { expect, test } from 'vitest'
import type { Outflow } from '../../domain/payouts/intent.ts'
import { bid, estimatePayout } from './bid.ts'
import { blocksOf } from './blocks.ts'
import { draft, raise } from './draft.ts'
import { NodeRefusal } from './rpc.ts'
import { CHAIN_ID, idOf, infoAt, nodeAt, type Script, scriptedNode } from './testing/scripted_node.ts'

const settings = { chainId: 'aa'.repeat(32), account: 'mycambist123' }
const outflow: Outflow = {
  payoutId: 'CB1:1',
  kind: 'payout',
  asset: 'EOS:EOS',
  units: 25_000n,
  address: 'alice',
  tag: '7',
}
const plenty = { used: 0, available: 5_000, max: 5_000 }
/** Used up by its last transaction, as the node says of it until the next one; so much of that counts still. */
const usedUp = (current_used: unknown) => ({
  used: '5100',
  available: 0,
  max: '5000',
  last_usage_update_time: '1970-01-01T00:00:01.000',
  current_used,
})
const accountOf = (name: unknown, changes: object = {}) => ({
  account_name: name,
  cpu_limit: plenty,
  net_limit: plenty,
  ram_quota: '9000000000',
  ram_usage: 3_000,
  permissions: [],
  ...changes,
})
const unknown = (name: string, reason: string) => () => {
  throw new NodeRefusal('get_account', 500, { code: 0, name, reason })
}

async function bidBy(script: Script, of: Partial<Outflow> = {}) {
  const rpc = scriptedNode({
    ...nodeAt(50),
    'chain/get_account': ({ account_name: name }) => accountOf(name),
    ...script,
  })
  const answer = await bid(
    { rpc, blocks: blocksOf(rpc, CHAIN_ID), account: 'mycambist123' },
    { ...outflow, ...of },
  )
  return answer.ok ? answer.value : answer.rejection.code
}

const wellBid = { family: 'eos', reference: { id: idOf(50), timeMs: 25_000 }, expirationMs: 86_000 } as const

test('a payout refers to the irreversible block, and lives for a minute of the head in whole seconds', async () => {
  expect(await bidBy({})).toEqual(wellBid)
  expect(
    await bidBy({ 'chain/get_account': ({ account_name }) => accountOf(account_name, { ram_quota: -1 }) }),
  ).toEqual(wellBid)
})

test('CPU and NET that were used up and have come back since are enough for a payout', async () => {
  const come = { cpu_limit: usedUp('4500'), net_limit: usedUp(0) }
  const get: Script[string] = ({ account_name }) => accountOf(account_name, come)
  expect(await bidBy({ 'chain/get_account': get })).toEqual(wellBid)
})

test.each([
  [
    'nobody of that name, as newer nodes say it',
    unknown('account_query_exception', 'Account lookup'),
    'destination',
  ],
  [
    'nobody of that name, as older nodes say it',
    unknown('exception', 'unknown key (eosio::chain::name): alice'),
    'destination',
  ],
  ['a node in trouble', unknown('exception', 'bad_alloc'), 'network'],
  ['an answer about somebody else', () => accountOf('bob'), 'network'],
  [
    'no CPU',
    ({ account_name }) => accountOf(account_name, { cpu_limit: { ...plenty, available: 499 } }),
    'network',
  ],
  [
    'no NET',
    ({ account_name }) => accountOf(account_name, { net_limit: { ...plenty, available: '0' } }),
    'network',
  ],
  [
    'CPU that was used up and has not come back',
    ({ account_name }) => accountOf(account_name, { cpu_limit: usedUp(4_501) }),
    'network',
  ],
  [
    'a node that says of NET what is no number',
    ({ account_name }) => accountOf(account_name, { net_limit: usedUp('much') }),
    'network',
  ],
  ['no RAM', ({ account_name }) => accountOf(account_name, { ram_usage: '8999999900' }), 'network'],
] satisfies [string, Script[string], string][])('%s', async (_, answer, code) => {
  expect(await bidBy({ 'chain/get_account': answer })).toBe(code)
})

test.each([
  ['what a transfer takes', {}, undefined],
  ['just as much', { cpu_limit: { ...plenty, available: 500 } }, undefined],
  ['no limit', { ram_quota: -1 }, undefined],
  ['no limit, told with usage', { cpu_limit: { ...usedUp(-1), available: -1, max: -1 } }, undefined],
  ['what was used up and has come back', { cpu_limit: usedUp(4_500), net_limit: usedUp('0') }, undefined],
  ['CPU that has not come back', { cpu_limit: usedUp(4_501) }, 'CPU (499 µs)'],
  ['NET that has not come back', { net_limit: usedUp('5099') }, 'NET (0 bytes)'],
  ['too little CPU', { cpu_limit: { ...plenty, available: 499 } }, 'CPU (499 µs)'],
  ['too little NET', { net_limit: { ...plenty, available: 255 } }, 'NET (255 bytes)'],
  ['too little RAM', { ram_usage: '8999999900' }, 'RAM (100 bytes)'],
])(
  'with %s in the account that pays, an estimate is free and says what is lacking, as bids do',
  async (_, changes, lacks) => {
    const get = ({ account_name: name }: { account_name?: unknown }) => {
      return accountOf(name, name === 'mycambist123' ? changes : {})
    }
    const rpc = scriptedNode({ 'chain/get_account': get })
    const { cost, ...rest } = await estimatePayout({ rpc, account: 'mycambist123' })
    expect(cost.units).toBe(0n)
    expect(rest).toEqual(lacks === undefined ? { isAboveFeeCap: false } : { isAboveFeeCap: false, lacks })
    const answer = await bidBy({ 'chain/get_account': get })
    expect(answer === 'network').toBe(lacks !== undefined)
  },
)

test('an estimate waits for a node that tells of the account', async () => {
  const rpc = scriptedNode({ 'chain/get_account': unknown('exception', 'bad_alloc') })
  await expect(estimatePayout({ rpc, account: 'mycambist123' })).rejects.toThrow('bad_alloc')
})

test('as long as nothing has become irreversible for most of an hour, nobody bids: the signer takes no longer life', async () => {
  const minutesBehind = (minutes: number) => ({ 'chain/get_info': () => infoAt(50, 50 + minutes * 120) })
  expect(await bidBy(minutesBehind(45))).toMatchObject({ reference: { id: idOf(50) } })
  expect(await bidBy(minutesBehind(55))).toBe('network')
})

test('nobody pays himself', async () => {
  expect(await bidBy({}, { address: 'mycambist123' })).toBe('destination')
})

const funds = { model: 'timed', from: { purpose: 'reserve', index: 0 } } as const
const drafted = (of: Partial<Outflow> = {}) => {
  const intent = draft(settings, { ...outflow, ...of }, wellBid, funds)
  return intent.ok ? intent.value : intent.rejection.code
}

test('a payout carries its tag as the memo, and a refund what stands behind the name, or nothing', () => {
  expect(drafted()).toMatchObject({
    payment: { to: 'alice', memo: '7', units: 25_000n },
    attempt: 1,
    ...settings,
  })
  expect(drafted({ tag: null })).toMatchObject({ payment: { to: 'alice', memo: '' } })
  expect(drafted({ tag: null, address: 'alice/u-7' })).toMatchObject({
    payment: { to: 'alice', memo: 'u-7' },
  })
  expect(drafted({ address: 'eosio.token' })).toBe('destination')
})

test('equal payouts of one moment differ', () => {
  const [one, other] = [drafted(), drafted({ payoutId: 'CB2:1' })]
  expect({ ...(other as object), payoutId: 'CB1:1' }).not.toEqual(one)
})

test('no payout names a limit that is too large for a node', () => {
  const limits = Array.from({ length: 50 }, (_, index) => {
    const intent = drafted({ payoutId: `CB${index}:1` })
    return typeof intent === 'string' ? 0 : intent.netWordsMax
  })
  expect(Math.min(...limits)).toBeGreaterThanOrEqual(1_000)
  expect(Math.max(...limits)).toBeLessThan(2 ** 29 - 1)
})

test('a further attempt pays the same, from when no earlier one may be in a block', () => {
  const first = drafted()
  if (typeof first === 'string') throw new Error('it is drafted')
  const early = { ...wellBid, reference: { id: idOf(171), timeMs: 85_500 } }
  expect(raise(first, early)).toMatchObject({ ok: false, rejection: { code: 'network' } })
  const later = { ...wellBid, reference: { id: idOf(172), timeMs: 86_000 }, expirationMs: 150_000 }
  const next = raise(first, later)
  if (!next.ok) throw new Error(next.rejection.message)
  const { attempt, netWordsMax: _, reference, expirationMs, ...same } = next.value
  expect({ attempt, reference, expirationMs }).toEqual({
    attempt: 2,
    reference: later.reference,
    expirationMs: 150_000,
  })
  expect(first).toMatchObject(same)
})
