import { describe, expect, test } from 'vitest'
import { assetOf, nativeAsset } from '../../src/domain/catalog/assets.ts'
import { chainFacts } from '../../src/domain/catalog/networks.ts'
import type { Outflow } from '../../src/domain/payouts/intent.ts'
import { outsideAddressOn } from './chains/outside_address.ts'
import { payingSigner } from './chains/paying_signer.ts'
import { connectSimulated, directLines, openNodes } from './chains/simulated_chains.ts'
import { findWrongTags, type Named, nameRefund } from './tags.ts'

/**
 * What: a payment to an account that many share is wrong unless it says for whom, as its client did.
 * How: real drafts and signatures on simulated chains, to other tags than were asked for.
 */
const ids = ['XRP', 'XLM', 'EOS'] as const
type Id = (typeof ids)[number]

const ORDER = 'CB0000000000000001'

/** What is wrong with an order that asks for `asked` when `paid` was paid. */
async function wrongWith(id: Id, kind: 'payout' | 'refund', asked: Named, paid: Named | null) {
  const nodes = openNodes(() => 1_800_000_000_000)
  const { id: asset, minPayout } = nativeAsset(id)
  const keys = payingSigner()
  const reserve = await keys.address(chainFacts[id].family, 'reserve', 0)
  nodes[id].pay([{ to: reserve, asset, units: 10n ** 12n }])
  if (id === 'XLM') nodes.XLM.opened.add(nodes.XLM.holderOf(asked.address))
  nodes[id].mine(20)
  const chain = connectSimulated(directLines(nodes), async () => reserve).get(id)
  if (chain === undefined) throw new Error('it is simulated')
  if (paid !== null) {
    const { address, tag } = paid
    const outflow: Outflow = { payoutId: `${ORDER}:1`, kind: 'payout', asset, units: minPayout, address, tag }
    const bid = await chain.bid(outflow)
    if (!bid.ok) throw new Error(bid.rejection.message)
    const from = { purpose: 'reserve', index: 0 } as const
    const nonce = id === 'XLM' ? 1 : 0
    const draft = chain.draft(
      outflow,
      bid.value,
      id === 'EOS' ? { model: 'timed', from } : { model: 'account', from, nonce },
    )
    if (!draft.ok) throw new Error(draft.rejection.message)
    expect(nodes[id].send((await keys.pay(draft.value)).bytes)).toBe('accepted')
    nodes[id].mine(1)
    expect(nodes[id].paidTo(asked.address)).toHaveLength(1)
    expect(nodes[id].history().flatMap(({ transfers }) => transfers)).toHaveLength(1)
  }
  const isPayout = kind === 'payout'
  const rows = [{ order_id: ORDER, to_asset: isPayout ? asset : 'SOL:SOL', from_asset: asset }]
  const elsewhere = { address: outsideAddressOn(id, 'elsewhere'), told: null }
  return findWrongTags(
    async () => rows as never,
    nodes,
    { payout: () => (isPayout ? asked : elsewhere), refund: () => (isPayout ? elsewhere : asked) },
    { count: () => {} },
  )
}

const somebody = (id: Id) => outsideAddressOn(id, 'somebody')
const beside = (id: Id, tag: string | null, told: string | null): Named => ({
  address: somebody(id),
  tag,
  told,
})
const toldFor = (id: Id, tag: string) => (id === 'XLM' ? `id ${tag}` : tag)

describe.each(ids)('on %s', (id) => {
  const asked = beside(id, '7', toldFor(id, '7'))

  test('a payout for whom it was asked is right', async () => {
    expect(await wrongWith(id, 'payout', asked, asked)).toEqual([])
  })

  test('a payout that is not there is for others to miss', async () => {
    expect(await wrongWith(id, 'payout', asked, null)).toEqual([])
  })

  test("a payout with another's tag is named", async () => {
    const [wrong] = await wrongWith(id, 'payout', asked, beside(id, '8', null))
    expect(wrong).toMatch(
      `who shares an account is named: ${ORDER} is paid: ${somebody(id)} got ${unitsOf(id)} for ${toldFor(id, '8')}, and that is ${toldFor(id, '7')}`,
    )
  })

  test('a payout without a tag is named', async () => {
    const [wrong] = await wrongWith(id, 'payout', asked, beside(id, null, null))
    expect(wrong).toContain(`for null, and that is ${toldFor(id, '7')}`)
  })

  test('an order that was taken without a tag is named', async () => {
    const nobody = beside(id, null, null)
    expect(await wrongWith(id, 'payout', nobody, null)).toEqual([
      `who shares an account is named: ${ORDER} was taken without a tag`,
    ])
  })

  test('a refund has the tag of its address, or none', async () => {
    const unnamed = nameRefund(id, somebody(id), 0)
    const named = nameRefund(id, somebody(id), 1)
    expect(await wrongWith(id, 'refund', unnamed, unnamed)).toEqual([])
    expect(await wrongWith(id, 'refund', named, named)).toEqual([])
    expect(await wrongWith(id, 'refund', named, unnamed)).toHaveLength(1)
    expect(await wrongWith(id, 'refund', unnamed, named)).toHaveLength(1)
  })
})

test('Stellar tells a memo of the kind text from one of the kind id, and both from a muxed address', async () => {
  const asText = beside('XLM', '007', 'text 007')
  const muxed = nameRefund('XLM', somebody('XLM'), 2)
  expect(muxed.told).toBe('muxed 7')
  expect(await wrongWith('XLM', 'payout', asText, asText)).toEqual([])
  expect(await wrongWith('XLM', 'payout', asText, beside('XLM', '7', null))).toHaveLength(1)
  expect(await wrongWith('XLM', 'payout', muxed, muxed)).toEqual([])
  expect(await wrongWith('XLM', 'payout', muxed, beside('XLM', '7', null))).toHaveLength(1)
})

function unitsOf(id: Id): bigint {
  const { minPayout, decimals, chainDecimals } = assetOf(nativeAsset(id).id)
  return minPayout / 10n ** BigInt(decimals - chainDecimals)
}
