import { expect, test } from 'vitest'
import { assert } from '../domain/assert.ts'
import type { BitcoinIntent, Intent } from '../domain/payouts/intent.ts'
import { HOUR_MS } from '../domain/time.ts'
import type { Authority, SignedStore, Signer } from './signer.ts'
import {
  bitcoinIntent,
  coin,
  customerBitcoin,
  customerEvm,
  customerSolana,
  evmIntent,
  keys,
  otherBitcoin,
  otherEvm,
  sealed,
  solanaIntent,
  startSigner,
  usdt,
} from './testing/fixtures.ts'
import { memoryStore } from './testing/memory_store.ts'

const toCustomerBitcoin = sealed({ destination: customerBitcoin, payoutAsset: 'BTC:BTC' })
const reserve = {
  evm: keys.address('evm', { purpose: 'reserve', index: 15 }),
  bitcoin: keys.address('bitcoin', { purpose: 'reserve', index: 0 }),
}

async function signed(signer: Signer, intent: Intent, authority: Authority) {
  const outcome = await signer.sign(intent, authority)
  assert(outcome.ok, outcome.ok ? '' : `${outcome.rejection.code}: ${outcome.rejection.message}`)
  return outcome.value
}

/** The code of the refusal; 'signed' when there is none. */
async function codeOf(signer: Signer, intent: Intent, authority: Authority) {
  const outcome = await signer.sign(intent, authority)
  return outcome.ok ? 'signed' : outcome.rejection.code
}

test('a payout is stored with what leaves in ledger units, and its bytes are the answer', async () => {
  const { signer, store, clock } = startSigner()
  const intent = evmIntent({ token: usdt, units: 2_500_000n, gasLimit: 100_000n })
  const tx = await signed(signer, intent, sealed({ payoutAsset: 'USDT:ERC20' }))
  expect(store.records).toEqual([
    {
      payoutId: 'CB1:1',
      attempt: 1,
      intent,
      asset: 'USDT:ERC20',
      units: 2_500_000n * 10n ** 12n,
      tx,
      atMs: clock.now,
    },
  ])
})

test('the same attempt again gives the same bytes, whatever changed in between', async () => {
  const { signer, store } = startSigner()
  const authority = sealed({ kind: 'refund', refundAddress: customerEvm })
  const tx = await signed(signer, evmIntent(), authority)
  const later = startSigner({ payoutUnitsMax: {}, evm: {} }, store).signer
  expect(await signed(later, structuredClone(evmIntent()), authority)).toEqual(tx)
  expect(await signed(later, evmIntent(), sealed({ kind: 'refund', refundAddress: otherEvm }))).toEqual(tx)
  expect(store.records).toHaveLength(1)
})

test('the same attempt with any other intent is a conflict', async () => {
  const { signer, store } = startSigner()
  await signed(signer, evmIntent(), sealed())
  for (const changes of [
    { nonce: 6 },
    { units: 1n },
    { maxFeePerGasWei: 31_000_000_000n },
    { chain: 'BNB' as const },
  ]) {
    expect(await codeOf(signer, evmIntent(changes), sealed())).toBe('conflict')
  }
  expect(await codeOf(signer, bitcoinIntent(), toCustomerBitcoin)).toBe('conflict')
  expect(store.records).toHaveLength(1)
})

test('a filler that is drafted anew at another fee is answered with what was signed of it, and nothing else is', async () => {
  const { signer, store } = startSigner()
  const filler = sealed({ kind: 'filler' })
  const first = evmIntent({ to: reserve.evm, units: 0n })
  const tx = await signed(signer, first, filler)
  const again = evmIntent({ to: reserve.evm, units: 0n, maxFeePerGasWei: 31_000_000_000n, gasLimit: 30_000n })
  expect(await signed(signer, again, filler)).toEqual({ ...tx, intent: first })
  expect(await signed(signer, first, filler)).toEqual(tx)
  for (const other of [{ nonce: 6 }, { units: 1n }, { to: otherEvm }])
    expect(await codeOf(signer, { ...again, ...other }, filler)).toBe('conflict')
  expect(store.records).toHaveLength(1)
  const paying = startSigner()
  await signed(paying.signer, evmIntent(), sealed())
  expect(await codeOf(paying.signer, { ...evmIntent(), maxFeePerGasWei: 31_000_000_000n }, filler)).toBe(
    'conflict',
  )
})

test('so is one on Bitcoin that shares a coin, whatever change address it goes back to', async () => {
  const { signer } = startSigner()
  const backTo = (
    index: number,
    changes: Partial<BitcoinIntent> = {},
    attempt = 1,
    satoshi = 149_998_000n,
  ) => {
    const payeeKey = { purpose: 'change', index } as const
    const payment = { address: keys.address('bitcoin', payeeKey), satoshi }
    return [
      bitcoinIntent({ payment, change: null, feeSatoshi: 150_000_000n - satoshi, attempt, ...changes }),
      sealed({ kind: 'filler', payeeKey }),
    ] as const
  }
  const tx = await signed(signer, ...backTo(9))
  expect(await signed(signer, ...backTo(10))).toEqual({ ...tx, intent: backTo(9)[0] })
  expect(await codeOf(signer, ...backTo(9, { inputs: [coin(3, 150_000_000n)] }))).toBe('conflict')
  expect(await codeOf(signer, ...backTo(10, {}, 2, 149_999_000n)), 'a lower fee').toBe('conflict')
  expect((await signed(signer, ...backTo(10, {}, 2, 149_990_000n))).txHash).not.toBe(tx.txHash)
})

test('a row changed in the database after the order was sealed is refused', async () => {
  const { signer, store } = startSigner()
  const truth = sealed({ destinationTag: '7', refundAddress: customerEvm })
  for (const changed of [
    { destination: otherEvm },
    { destinationTag: '8' },
    { destinationTag: null },
    { refundAddress: otherEvm },
    { refundAddress: null },
    { payoutAsset: 'USDC:ERC20' as const },
    { depositAsset: 'BTC:BTC' as const },
    { seal: 'a'.repeat(64) },
    { seal: sealed({ orderId: 'CB2' }).seal },
  ]) {
    expect(await codeOf(signer, evmIntent({ to: otherEvm }), { ...truth, ...changed })).toBe('seal_broken')
  }
  for (const kind of ['refund', 'sweep', 'filler'] as const) {
    const asked = evmIntent({ to: kind === 'refund' ? otherEvm : reserve.evm, units: 1n })
    const changed = { ...truth, kind, refundAddress: otherEvm }
    expect(await codeOf(signer, asked, changed), kind).toBe('seal_broken')
  }
  const other = { ...truth, orderId: 'CB2' }
  expect(await codeOf(signer, evmIntent({ payoutId: 'CB2:1' }), other)).toBe('seal_broken')
  expect(store.records).toEqual([])
  expect(await codeOf(signer, evmIntent(), truth)).toBe('signed')
})

test("what was sealed for a transfer of our own pays nobody, and an order's seal moves nothing of ours", async () => {
  const { signer, store } = startSigner()
  const terms = { destination: customerEvm, refundAddress: otherEvm }
  const payees = { payout: customerEvm, refund: otherEvm, sweep: reserve.evm, filler: reserve.evm }
  const ask = (kind: keyof typeof payees, sealedAs: keyof typeof payees) => {
    const intent = evmIntent({ to: payees[kind], units: kind === 'filler' ? 0n : 1n })
    return codeOf(signer, intent, { ...sealed({ ...terms, kind: sealedAs }), kind })
  }
  for (const own of ['sweep', 'filler'] as const) {
    for (const paying of ['payout', 'refund'] as const) {
      expect(await ask(paying, own), `${paying} sealed as ${own}`).toBe('seal_broken')
      expect(await ask(own, paying), `${own} sealed as ${paying}`).toBe('seal_broken')
    }
  }
  expect(store.records).toEqual([])
})

test("a payout id of another order is refused, so one order's seal pays one order", async () => {
  const { signer } = startSigner()
  for (const payoutId of ['CB2:1', 'CB11:1', 'B1:1', 'CB1:1:1', 'CB1', 'CB1:', 'CB1:0', 'CB1:01', 'CB1:-1']) {
    expect(await codeOf(signer, evmIntent({ payoutId }), sealed())).toBe('malformed')
  }
})

test('a payout is made in the asset that was sealed for it, a refund in the one that was paid in', async () => {
  const { signer, store } = startSigner()
  const terms = { payoutAsset: 'ETH:ETH', depositAsset: 'USDT:ERC20', refundAddress: customerEvm } as const
  const ether = evmIntent()
  const tether = evmIntent({ token: usdt, units: 1n, gasLimit: 100_000n })
  expect(await codeOf(signer, tether, sealed(terms))).toBe('not_the_asset')
  expect(await codeOf(signer, ether, sealed({ ...terms, kind: 'refund' }))).toBe('not_the_asset')
  const onBnb = evmIntent({ chain: 'BNB', evmChainId: 56 })
  expect(await codeOf(signer, onBnb, sealed(terms))).toBe('not_the_asset')
  expect(store.records).toEqual([])
  expect(await codeOf(signer, ether, sealed(terms))).toBe('signed')
  const refund = { ...tether, payoutId: 'CB1:2' }
  expect(await codeOf(signer, refund, sealed({ ...terms, kind: 'refund' }))).toBe('signed')
})

test('each kind goes to its own payee only', async () => {
  const { signer, store } = startSigner()
  const authority = { destination: customerEvm, refundAddress: otherEvm }
  const evm = (kind: Authority['kind'], to: string, units = 1n) =>
    codeOf(signer, evmIntent({ to, units }), sealed({ ...authority, kind }))
  expect(await evm('payout', otherEvm)).toBe('not_the_destination')
  expect(await evm('payout', reserve.evm)).toBe('not_the_destination')
  expect(await evm('refund', customerEvm)).toBe('not_the_destination')
  const beyond = keys.address('evm', { purpose: 'reserve', index: 16 })
  for (const to of [customerEvm, otherEvm, keys.address('evm', { purpose: 'deposit', index: 0 }), beyond]) {
    expect(await evm('filler', to, 0n)).toBe('not_the_destination')
    expect(await evm('sweep', to)).toBe('not_the_destination')
  }
  const noRefundAddress = sealed({ kind: 'refund', refundAddress: null })
  expect(await codeOf(signer, evmIntent(), noRefundAddress)).toBe('not_the_destination')

  const toOther = bitcoinIntent({ payment: { address: otherBitcoin, satoshi: 120_000_000n } })
  expect(await codeOf(signer, toOther, toCustomerBitcoin)).toBe('not_the_destination')
  const onEvm = sealed({ destination: customerEvm })
  expect(await codeOf(signer, bitcoinIntent(), onEvm)).toBe('not_the_destination')
  expect(store.records).toEqual([])
})

test('each kind is signed to its payee; only payouts and refunds count as leaving', async () => {
  const { signer, store } = startSigner()
  const terms = { destination: customerEvm.toLowerCase(), refundAddress: otherEvm }
  await signed(signer, evmIntent(), sealed(terms))
  await signed(signer, evmIntent({ payoutId: 'CB1:2', to: otherEvm }), sealed({ ...terms, kind: 'refund' }))
  await signed(
    signer,
    evmIntent({ payoutId: 'CB1:3', to: reserve.evm, units: 0n }),
    sealed({ ...terms, kind: 'filler' }),
  )
  await signed(signer, evmIntent({ payoutId: 'CB1:4', to: reserve.evm }), sealed({ ...terms, kind: 'sweep' }))
  const payment = { address: reserve.bitcoin, satoshi: 120_000_000n }
  await signed(signer, bitcoinIntent({ payoutId: 'CB1:5', payment }), sealed({ ...terms, kind: 'sweep' }))
  expect(store.records.map(({ asset, units }) => [asset, units])).toEqual([
    ['ETH:ETH', 10n ** 18n],
    ['ETH:ETH', 10n ** 18n],
    ['ETH:ETH', 0n],
    ['ETH:ETH', 0n],
    ['BTC:BTC', 0n],
  ])
})

test('a filler moves nothing, a payout something', async () => {
  const { signer } = startSigner()
  const filler = sealed({ kind: 'filler' })
  expect(await codeOf(signer, evmIntent({ to: reserve.evm, units: 1n }), filler)).toBe('malformed')
  expect(await codeOf(signer, evmIntent({ to: reserve.evm, units: 0n, token: usdt }), filler)).toBe(
    'malformed',
  )
  expect(await codeOf(signer, evmIntent({ units: 0n }), sealed())).toBe('malformed')
})

test('a filler on Bitcoin brings all back in one output to a change address of ours, whose key it names', async () => {
  const { signer, store } = startSigner()
  const payeeKey = { purpose: 'change', index: 9 } as const
  const own = keys.address('bitcoin', payeeKey)
  const filler = sealed({ kind: 'filler', payeeKey })
  const back = (address: string, changes: Partial<BitcoinIntent> = {}) =>
    bitcoinIntent({ payment: { address, satoshi: 149_998_000n }, change: null, ...changes })
  expect(await codeOf(signer, back(customerBitcoin), filler)).toBe('not_the_destination')
  expect(await codeOf(signer, back(own), sealed({ kind: 'filler' }))).toBe('not_the_destination')
  const otherKey = sealed({ kind: 'filler', payeeKey: { purpose: 'change', index: 10 } })
  expect(await codeOf(signer, back(own), otherKey)).toBe('not_the_destination')
  const deposit = { purpose: 'deposit', index: 9 } as const
  const toDeposit = back(keys.address('bitcoin', deposit))
  expect(await codeOf(signer, toDeposit, sealed({ kind: 'filler', payeeKey: deposit }))).toBe('malformed')
  const split = bitcoinIntent({ payment: { address: own, satoshi: 120_000_000n } })
  expect(await codeOf(signer, split, filler)).toBe('malformed')
  const feeTooHigh = back(own, { payment: { address: own, satoshi: 149_899_999n }, feeSatoshi: 100_001n })
  expect(await codeOf(signer, feeTooHigh, filler)).toBe('limit_exceeded')
  expect(store.records).toEqual([])

  await signed(signer, back(own), filler)
  const next = (satoshi: bigint, feeSatoshi: bigint, attempt = 2) =>
    back(own, { attempt, payment: { address: own, satoshi }, feeSatoshi })
  const other = { inputs: [coin(3, 100_000_000n)], payment: { address: own, satoshi: 99_998_000n } }
  expect(await codeOf(signer, back(own, { attempt: 2, ...other }), filler)).toBe('conflict')
  expect(await codeOf(signer, next(149_998_500n, 1_500n), filler)).toBe('conflict')
  expect(await codeOf(signer, next(149_996_000n, 4_000n), filler)).toBe('signed')
  expect(store.records.map(({ units }) => units)).toEqual([0n, 0n])
  expect(await codeOf(signer, evmIntent({ payoutId: 'CB1:2', to: reserve.evm, units: 0n }), filler)).toBe(
    'malformed',
  )
})

test('only listed contracts are called, each on its own chain, and only configured chains are signed for', async () => {
  const { signer } = startSigner()
  expect(await codeOf(signer, evmIntent({ token: otherEvm, gasLimit: 100_000n }), sealed())).toBe('malformed')
  const onBnb = { chain: 'BNB', evmChainId: 56, token: usdt } as const
  expect(await codeOf(signer, evmIntent(onBnb), sealed())).toBe('malformed')
  const ethOnly = startSigner({ evm: {} }).signer
  expect(await codeOf(ethOnly, evmIntent(), sealed())).toBe('malformed')
})

test('a token of six decimals is limited in ledger units', async () => {
  const { signer } = startSigner()
  const pay = (units: bigint) =>
    codeOf(
      signer,
      evmIntent({ token: usdt, units, gasLimit: 100_000n }),
      sealed({ payoutAsset: 'USDT:ERC20' }),
    )
  expect(await pay(10_000_000_001n)).toBe('limit_exceeded')
  expect(await pay(10_000_000_000n)).toBe('signed')
})

test('an asset without a limit is not paid at all', async () => {
  const { signer } = startSigner({ payoutUnitsMax: {} })
  expect(await codeOf(signer, evmIntent({ units: 1n }), sealed())).toBe('limit_exceeded')
})

test('limits over time hold, pass with time, and count a payout once however many attempts it takes', async () => {
  const { signer, clock } = startSigner()
  const pay = (number: number, attempt = 1) => {
    const intent = bitcoinIntent({
      payoutId: `CB1:${number}`,
      attempt,
      inputs: [coin(number, 100_002_000n), coin(100 + attempt, 1_000n)].slice(0, attempt),
      payment: { address: customerBitcoin, satoshi: 100_000_000n },
      change: null,
      feeSatoshi: attempt === 1 ? 2_000n : 3_000n,
    })
    return codeOf(signer, intent, toCustomerBitcoin)
  }
  expect(await pay(1)).toBe('signed')
  expect(await pay(1, 2)).toBe('signed')
  expect(await pay(1, 3)).toBe('signed')
  expect(await pay(2)).toBe('signed')
  expect(await pay(3)).toBe('signed')
  expect(await pay(4)).toBe('limit_exceeded') // 3 of 3 this hour
  expect(await pay(3, 2)).toBe('signed') // what is counted already may be replaced

  clock.now += HOUR_MS - 1
  expect(await pay(4)).toBe('limit_exceeded')
  clock.now += 1
  expect(await pay(4)).toBe('signed')
  expect(await pay(5)).toBe('limit_exceeded') // 4 of 4 this day
  clock.now += 23 * HOUR_MS
  expect(await pay(5)).toBe('signed')
})

test('it is told what the limits leave, before anything is written down', async () => {
  const { signer, clock } = startSigner()
  expect(await signer.room('BTC:BTC')).toEqual({ onePayout: 200_000_000n, together: 300_000_000n })
  const payment = { address: customerBitcoin, satoshi: 149_998_000n }
  expect(await codeOf(signer, bitcoinIntent({ payment, change: null }), toCustomerBitcoin)).toBe('signed')
  expect(await signer.room('BTC:BTC')).toEqual({ onePayout: 200_000_000n, together: 150_002_000n })
  clock.now += HOUR_MS
  expect(await signer.room('BTC:BTC')).toEqual({ onePayout: 200_000_000n, together: 250_002_000n })
  expect(await signer.room('ETH:ETH')).toEqual({ onePayout: 10n * 10n ** 18n, together: null })
  expect(await signer.room('USDC:BEP20'), 'without a limit it is not paid').toMatchObject({ onePayout: 0n })
  await expect(signer.room('nothing' as 'BTC:BTC')).rejects.toThrow()
})

test('it says which attempt of an outflow it has signed last, whatever it has refused since', async () => {
  const { signer } = startSigner()
  expect(await signer.lastSigned('CB1:1'), 'nothing').toBe(0)
  const wei = (times: bigint) => ({ maxFeePerGasWei: 30_000_000_000n * times })
  expect(await codeOf(signer, evmIntent(), sealed())).toBe('signed')
  expect(await signer.lastSigned('CB1:1')).toBe(1)
  expect(await codeOf(signer, evmIntent({ attempt: 2, ...wei(2n) }), sealed())).toBe('signed')
  expect(await codeOf(signer, evmIntent({ attempt: 3, ...wei(3n), nonce: 6 }), sealed())).toBe('conflict')
  expect(await signer.lastSigned('CB1:1')).toBe(2)
  expect(await signer.lastSigned('CB1:2'), 'another outflow of the order').toBe(0)
  await expect(signer.lastSigned('CB1')).rejects.toThrow('payoutId is malformed')
})

test('where only time keeps attempts apart, each counts: the service may say that an earlier one was not taken', async () => {
  const first = solanaIntent()
  const limits = [{ asset: 'SOL:SOL', windowMs: HOUR_MS, unitsMax: first.units * 3n }]
  const { signer, clock } = startSigner({ limits })
  const pay = (attempt: number) => {
    const height = first.reference.height + 151 * (attempt - 1)
    const reference = { ...first.reference, height }
    const intent = solanaIntent({ attempt, reference, lastHeight: height + 151 })
    return codeOf(signer, intent, sealed({ destination: customerSolana, payoutAsset: 'SOL:SOL' }))
  }
  for (const attempt of [1, 2, 3]) expect(await pay(attempt)).toBe('signed')
  expect(await pay(4)).toBe('limit_exceeded')
  expect(await pay(3), 'what is signed is answered').toBe('signed')
  clock.now += HOUR_MS
  expect(await pay(4)).toBe('signed')
})

test('a higher attempt that excludes the earlier ones on chain is signed', async () => {
  const { signer, store } = startSigner()
  await signed(signer, evmIntent(), sealed())
  const raised = evmIntent({
    attempt: 2,
    maxFeePerGasWei: 60_000_000_000n,
    maxPriorityFeePerGasWei: 2_000_000_000n,
  })
  await signed(signer, raised, sealed())

  const authority = sealed({ orderId: 'CB2', destination: customerBitcoin, payoutAsset: 'BTC:BTC' })
  const first = bitcoinIntent({ payoutId: 'CB2:1' })
  await signed(signer, first, authority)
  assert(first.change !== null, 'there is change')
  const change = { ...first.change, satoshi: first.change.satoshi - 2_000n }
  await signed(signer, { ...first, attempt: 2, change, feeSatoshi: 4_000n }, authority)
  expect(store.records.map(({ attempt, units }) => [attempt, units])).toEqual([
    [1, 10n ** 18n],
    [2, 10n ** 18n],
    [1, 120_000_000n],
    [2, 120_000_000n],
  ])
})

test('a higher attempt that could pay twice, pay more or pay someone else is a conflict', async () => {
  const { signer } = startSigner()
  await signed(signer, evmIntent(), sealed({ refundAddress: otherEvm }))
  for (const changes of [
    { nonce: 6 },
    { from: { purpose: 'reserve', index: 1 } as const },
    { from: { purpose: 'deposit', index: 0 } as const },
    { units: 2n * 10n ** 18n },
  ]) {
    expect(await codeOf(signer, evmIntent({ attempt: 2, ...changes }), sealed())).toBe('conflict')
  }
  const inUsdt = sealed({ payoutAsset: 'USDT:ERC20' })
  expect(await codeOf(signer, evmIntent({ attempt: 2, token: usdt }), inUsdt)).toBe('conflict')
  const onBnb = evmIntent({ attempt: 2, chain: 'BNB', evmChainId: 56 })
  expect(await codeOf(signer, onBnb, sealed({ payoutAsset: 'BNB:BNB' }))).toBe('conflict')
  const toOther = sealed({ kind: 'refund', refundAddress: otherEvm })
  expect(await codeOf(signer, evmIntent({ attempt: 2, to: otherEvm }), toOther)).toBe('conflict')
  const onBitcoin = sealed({ destination: customerBitcoin, payoutAsset: 'BTC:BTC' })
  expect(await codeOf(signer, bitcoinIntent({ attempt: 2 }), onBitcoin)).toBe('conflict')
})

test('a higher attempt of a payout on Bitcoin pays neither more nor less', async () => {
  const { signer } = startSigner()
  const first = bitcoinIntent()
  await signed(signer, first, toCustomerBitcoin)
  for (const more of [1n, -1n]) {
    const payment = { ...first.payment, satoshi: first.payment.satoshi + more }
    const raised = bitcoinIntent({ attempt: 2, payment, feeSatoshi: first.feeSatoshi - more })
    expect(await codeOf(signer, raised, toCustomerBitcoin)).toBe('conflict')
  }
})

test('attempts follow one another', async () => {
  const { signer } = startSigner()
  expect(await codeOf(signer, evmIntent({ attempt: 2 }), sealed())).toBe('conflict')
  await signed(signer, evmIntent(), sealed())
  expect(await codeOf(signer, evmIntent({ attempt: 3 }), sealed())).toBe('conflict')
  expect(await codeOf(signer, evmIntent({ attempt: 2, gasLimit: 22_000n }), sealed())).toBe('signed')
})

test('once a later outflow of an order is signed, an earlier one is not: a refund came after it was given up', async () => {
  const { signer, store } = startSigner()
  const refund = sealed({ kind: 'refund', refundAddress: customerEvm })
  const toCustomer = sealed({ destination: customerEvm })
  const payout = evmIntent({ payoutId: 'CB1:1', nonce: 4 })
  await signed(signer, evmIntent({ payoutId: 'CB1:2', nonce: 5 }), refund)
  expect(await signer.sign(payout, toCustomer)).toMatchObject({
    rejection: { code: 'conflict', message: 'a later outflow of the order of CB1:1 was signed already' },
  })
  expect(store.records.map(({ payoutId }) => payoutId)).toEqual(['CB1:2'])
})

test('a Bitcoin attempt shares an input with every earlier one, not only the last', async () => {
  const { signer } = startSigner()
  const [a, b, c] = [coin(1, 60_000_000n), coin(2, 60_000_000n), coin(3, 60_000_000n)]
  const spend = (attempt: number, inputs: readonly (typeof a)[]) => {
    const total = BigInt(inputs.length) * 60_000_000n
    const key = { purpose: 'change', index: 0 } as const
    const change = { address: keys.address('bitcoin', key), satoshi: total - 50_002_000n, key }
    const payment = { address: customerBitcoin, satoshi: 50_000_000n }
    return codeOf(
      signer,
      bitcoinIntent({ attempt, inputs, payment, change, feeSatoshi: 2_000n }),
      toCustomerBitcoin,
    )
  }
  expect(await spend(1, [a])).toBe('signed')
  expect(await spend(2, [b])).toBe('conflict')
  expect(await spend(2, [a, b])).toBe('signed')
  expect(await spend(3, [b])).toBe('conflict') // 1 and 3 could both be mined
  expect(
    await spend(3, [
      { ...a, satoshi: 59_000_000n },
      { ...b, satoshi: 61_000_000n },
    ]),
  ).toBe('conflict')
  const short = { ...b, satoshi: 59_000_000n }
  expect(await spend(3, [a, short, { ...c, satoshi: 61_000_000n }])).toBe('conflict')
  expect(await spend(3, [c, a])).toBe('signed')
})

test('what does not add up or costs too much is refused and not stored', async () => {
  const { signer, store } = startSigner()
  expect(await codeOf(signer, bitcoinIntent({ feeSatoshi: 1n }), toCustomerBitcoin)).toBe('malformed')
  expect(await codeOf(signer, evmIntent({ gasLimit: 200_001n }), sealed())).toBe('limit_exceeded')
  expect(await codeOf(signer, evmIntent({ evmChainId: 1 }), sealed())).toBe('malformed')
  expect(store.records).toEqual([])
})

test('of two signers that race on one store both answer the same bytes, and another intent is a conflict', async () => {
  const store = memoryStore()
  const signers = Array.from({ length: 6 }, () => startSigner({}, store).signer)
  const outcomes = await Promise.all(
    signers.map((signer, at) => signer.sign(evmIntent({ nonce: at < 4 ? 5 : 6 }), sealed())),
  )
  expect(store.records).toHaveLength(1)
  const winner = store.records[0]
  assert(winner !== undefined && winner.intent.family === 'evm', 'one attempt is stored')
  for (const [at, outcome] of outcomes.entries()) {
    const isWinner = winner.intent.nonce === (at < 4 ? 5 : 6)
    expect(outcome).toMatchObject(
      isWinner ? { ok: true, value: winner.tx } : { rejection: { code: 'conflict' } },
    )
  }
})

test('what the store holds is answered, not what was just built', async () => {
  const store = memoryStore()
  const odd: Pick<SignedStore, 'attempts' | 'insertOnce'> = {
    attempts: async () => [],
    insertOnce: async (record) => ({ ...record, tx: { txHash: '0xstored', bytes: 'stored' } }),
  }
  const { signer } = startSigner({}, { ...store, ...odd })
  expect(await signed(signer, evmIntent(), sealed())).toEqual({ txHash: '0xstored', bytes: 'stored' })
})

test('a store that is down is an error to try again after, not an answer', async () => {
  const store = memoryStore()
  const down = { ...store, insertOnce: () => Promise.reject(new Error('no connection')) }
  const { signer } = startSigner({}, down)
  await expect(signer.sign(evmIntent(), sealed())).rejects.toThrow('no connection')
  expect(await codeOf(startSigner({}, store).signer, evmIntent(), sealed())).toBe('signed')
})

const deposit = { purpose: 'deposit', index: 7 } as const
const depositAddress = keys.address('evm', deposit)
const gasMax = 10n ** 17n

test('a sweep brings gas from the reserve to the deposit address whose key is told, up to the cap', async () => {
  const { signer, store } = startSigner({ payoutUnitsMax: {}, limits: [] })
  const gas = (payoutId: string, units: bigint) => evmIntent({ payoutId, to: depositAddress, units })
  const authority = sealed({ kind: 'sweep', payeeKey: deposit })
  expect(await codeOf(signer, gas('CB1:1', gasMax), authority)).toBe('signed')
  expect(await codeOf(signer, gas('CB1:2', gasMax + 1n), authority)).toBe('limit_exceeded')
  expect(store.records).toMatchObject([{ payoutId: 'CB1:1', units: 0n }])
})

test.each<[string, Parameters<typeof evmIntent>[0], Parameters<typeof sealed>[0], string]>([
  ['an address that is not of that key', { to: otherEvm }, {}, 'not_the_destination'],
  ['the deposit address of another key', {}, { payeeKey: { ...deposit, index: 8 } }, 'not_the_destination'],
  ['a deposit address without its key', {}, { payeeKey: null }, 'not_the_destination'],
  [
    'the reserve under a reserve key',
    { to: reserve.evm },
    { payeeKey: { purpose: 'reserve', index: 15 } },
    'malformed',
  ],
  ['a change key', {}, { payeeKey: { purpose: 'change', index: 7 } }, 'malformed'],
  ['a token', { token: usdt, gasLimit: 100_000n }, {}, 'malformed'],
  ['nothing', { units: 0n }, {}, 'malformed'],
  ['gas out of another deposit address', { from: { purpose: 'deposit', index: 8 } }, {}, 'malformed'],
  ['a payout', {}, { kind: 'payout', destination: depositAddress }, 'malformed'],
  ['a refund', {}, { kind: 'refund', refundAddress: depositAddress }, 'malformed'],
  ['a filler', { units: 0n }, { kind: 'filler' }, 'malformed'],
  ['a dearer fee than any', { maxFeePerGasWei: 500_000_000_001n }, {}, 'limit_exceeded'],
])('gas for a sweep is refused: %s', async (_, intent, authority, code) => {
  const { signer, store } = startSigner()
  const asked = evmIntent({ to: depositAddress, units: 1n, ...intent })
  expect(await codeOf(signer, asked, sealed({ kind: 'sweep', payeeKey: deposit, ...authority }))).toBe(code)
  expect(store.records).toEqual([])
})

test('a chain that is not configured brings no gas, nor does Bitcoin', async () => {
  const authority = sealed({ kind: 'sweep', payeeKey: deposit })
  const { signer } = startSigner({ evm: {} })
  expect(await codeOf(signer, evmIntent({ to: depositAddress, units: 1n }), authority)).toBe('limit_exceeded')
  const address = keys.address('bitcoin', deposit)
  const coins = bitcoinIntent({ payment: { address, satoshi: 120_000_000n } })
  expect(await codeOf(signer, coins, authority)).toBe('malformed')
})

test('what leaves a deposit address as a sweep goes to the reserve and nowhere else, whatever it is', async () => {
  const { signer } = startSigner({ payoutUnitsMax: {}, limits: [] })
  const authority = sealed({ kind: 'sweep', destination: customerEvm, refundAddress: otherEvm })
  let number = 0
  const sweep = (to: string, token: string | null) => {
    number += 1
    const gasLimit = token === null ? 21_000n : 100_000n
    return codeOf(
      signer,
      evmIntent({ payoutId: `CB1:${number}`, from: deposit, to, token, gasLimit }),
      authority,
    )
  }
  const otherDeposit = keys.address('evm', { purpose: 'deposit', index: 8 })
  for (const token of [null, usdt]) {
    for (const to of [customerEvm, otherEvm, depositAddress, otherDeposit]) {
      expect(await sweep(to, token)).toBe('not_the_destination')
    }
    expect(await sweep(reserve.evm, token)).toBe('signed')
  }
  expect(await sweep(reserve.evm, customerEvm), 'a token that is not listed').toBe('malformed')
})

test('a dearer attempt of a sweep of coin may bring less to the reserve; no other kind may pay less', async () => {
  const { signer } = startSigner()
  const dearer = { maxFeePerGasWei: 40_000_000_000n, maxPriorityFeePerGasWei: 2_000_000_000n, attempt: 2 }
  const sweep = { from: deposit, to: reserve.evm, units: 1_000n }
  const authority = sealed({ kind: 'sweep' })
  await signed(signer, evmIntent(sweep), authority)
  expect(await codeOf(signer, evmIntent({ ...sweep, ...dearer, units: 1_001n }), authority)).toBe('conflict')
  expect(await codeOf(signer, evmIntent({ ...sweep, ...dearer, units: 999n }), authority)).toBe('signed')

  const token = { ...sweep, payoutId: 'CB1:2', token: usdt, gasLimit: 100_000n }
  await signed(signer, evmIntent(token), authority)
  expect(await codeOf(signer, evmIntent({ ...token, ...dearer, units: 999n }), authority)).toBe('conflict')
  const gas = { payoutId: 'CB1:3', to: depositAddress, units: 1_000n }
  const toDeposit = sealed({ kind: 'sweep', payeeKey: deposit })
  await signed(signer, evmIntent(gas), toDeposit)
  expect(await codeOf(signer, evmIntent({ ...gas, ...dearer, units: 999n }), toDeposit)).toBe('conflict')
  const payout = { payoutId: 'CB1:4', from: deposit, units: 1_000n }
  await signed(signer, evmIntent(payout), sealed())
  expect(await codeOf(signer, evmIntent({ ...payout, ...dearer, units: 999n }), sealed())).toBe('conflict')
})

test('addresses are the ones of the keys, in order', async () => {
  const { signer } = startSigner()
  expect(await signer.addresses('bitcoin', 'deposit', 7, 3)).toEqual(
    [7, 8, 9].map((index) => keys.address('bitcoin', { purpose: 'deposit', index })),
  )
  expect(await signer.addresses('evm', 'reserve', 0, 1)).toEqual([
    keys.address('evm', { purpose: 'reserve', index: 0 }),
  ])
})

test.each([
  ['evm', 'change', 0, 1],
  ['evm', 'deposit', -1, 1],
  ['evm', 'deposit', 0, 0],
  ['evm', 'deposit', 0, 1_001],
  ['evm', 'deposit', 2 ** 31 - 1, 2],
  ['evm', 'deposit', 0.5, 1],
] as const)('addresses %s %s from %s count %s are refused', async (family, purpose, from, count) => {
  await expect(startSigner().signer.addresses(family, purpose, from, count)).rejects.toThrow()
})
