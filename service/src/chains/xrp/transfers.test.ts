import { classicAddressToXAddress } from 'ripple-address-codec'
import { expect, test } from 'vitest'
import { NoAnswer } from './rpc.ts'
import { transfersToOurs } from './transfers.ts'

/** Metadata as https://xrpl.org/docs/references/protocol/transactions/metadata has it; each case beside a true deposit. */
const account = 'rPT1Sjq2YGrBMTttX4GZHjKu9dyfzbpAYe'
const sender = 'rHsMGQEkVNJmpGWs8XUBoTBiAAbwxZN5v3'
const issuer = 'rvYAfWj5gh67oV6fW32ZzP3Aw4Eubs59B'
const spelling = { isMain: true }
const tagged = (tag: number) => classicAddressToXAddress(account, tag, false)
const ours = new Set([account, tagged(7)])
const hash = 'AB'.repeat(32)

function accountRoot(of: string, before: string | undefined, after: string) {
  return {
    ModifiedNode: {
      LedgerEntryType: 'AccountRoot',
      FinalFields: { Account: of, Balance: after },
      PreviousFields: before === undefined ? {} : { Balance: before },
    },
  }
}

function payment(changes: object = {}, meta: object = {}) {
  return {
    TransactionType: 'Payment',
    Account: sender,
    Destination: account,
    DestinationTag: 7,
    Amount: '5000000',
    Fee: '12',
    hash,
    ...changes,
    metaData: {
      TransactionResult: 'tesSUCCESS',
      delivered_amount: '5000000',
      AffectedNodes: [
        accountRoot(sender, '90000012', '85000000'),
        accountRoot(account, '1000000', '6000000'),
      ],
      ...meta,
    },
  }
}

const read = (...transactions: object[]) =>
  transfersToOurs(transactions, spelling, async (texts) => new Set(texts.filter((text) => ours.has(text))))

const deposit = { id: `${hash}:xrp`, txHash: hash, to: tagged(7), asset: 'XRP:XRP', units: 5_000_000n }

test('a payment to a tag of ours is a deposit', async () => {
  expect(await read(payment())).toEqual([deposit])
})

test('a partial payment is what it delivered, whatever its Amount says', async () => {
  const partial = payment(
    { Flags: 0x0002_0000, Amount: '5000000000' },
    {
      delivered_amount: '1',
      AffectedNodes: [accountRoot(account, '1000000', '1000001')],
    },
  )
  expect(await read(partial, payment())).toEqual([{ ...deposit, units: 1n }, deposit])
})

test.each([
  ['a payment that failed and took its fee', payment({}, { TransactionResult: 'tecPATH_PARTIAL' })],
  [
    'a payment to somebody else',
    payment({ Destination: issuer }, { AffectedNodes: [accountRoot(issuer, '0', '5000000')] }),
  ],
  [
    'a payment that moved nothing',
    payment({}, { AffectedNodes: [accountRoot(account, undefined, '1000000')] }),
  ],
  [
    'our own payout',
    payment(
      { Account: account, Destination: sender },
      { AffectedNodes: [accountRoot(account, '6000012', '1000000')] },
    ),
  ],
])('%s is none', async (_, transaction) => {
  expect(await read(transaction, payment())).toEqual([deposit])
})

test.each([
  ['no tag', { DestinationTag: undefined }],
  ['a tag that nobody was given', { DestinationTag: 8 }],
  ['the last tag there is, given to nobody', { DestinationTag: 2 ** 32 - 1 }],
])('a payment with %s reaches the account and no order', async (_, changes) => {
  expect(await read(payment(changes), payment())).toEqual([{ ...deposit, to: account }, deposit])
})

test('a token named XRP is foreign, whatever its name', async () => {
  const token = { currency: 'XRP', issuer, value: '5000000' }
  const iou = payment(
    { Amount: token },
    { delivered_amount: token, AffectedNodes: [accountRoot(sender, '24', '12')] },
  )
  expect(await read(iou, payment())).toEqual([
    {
      id: `${hash}:token`,
      txHash: hash,
      to: tagged(7),
      asset: { unlisted: `XRP.${issuer}` },
      units: 5_000_000n * 10n ** 15n,
    },
    deposit,
  ])
})

test.each([
  ['1.5e-3', 15n * 10n ** 11n],
  ['1e-20', 0n],
  ['9999999999999999e80', 9_999_999_999_999_999n * 10n ** 95n],
])('of a token, %s is read to the last digit that counts', async (value, units) => {
  const token = { currency: 'USD', issuer, value }
  const [transfer] = await read(payment({ Amount: token }, { delivered_amount: token, AffectedNodes: [] }))
  expect(transfer?.units).toBe(units)
})

test.each(['EscrowFinish', 'CheckCash', 'AccountDelete', 'PaymentChannelClaim'])(
  'what %s brings is told as well, to whom it names',
  async (kind) => {
    const grown = [accountRoot(account, '1000000', '6000000')]
    const bare = { TransactionType: kind, delivered_amount: undefined }
    const named = payment(bare, { delivered_amount: undefined, AffectedNodes: grown })
    const unnamed = payment(
      { ...bare, Destination: undefined, DestinationTag: undefined },
      { AffectedNodes: grown },
    )
    expect(await read(named, unnamed)).toEqual([deposit, { ...deposit, to: account }])
  },
)

test('the account that a payment made is there with all of it', async () => {
  const made = {
    CreatedNode: { LedgerEntryType: 'AccountRoot', NewFields: { Account: account, Balance: '5000000' } },
  }
  expect(await read(payment({}, { AffectedNodes: [made] }))).toEqual([deposit])
})

test('a node whose payment delivers one amount and moves another is not believed', async () => {
  await expect(read(payment({}, { delivered_amount: '5000001' }))).rejects.toThrow(NoAnswer)
  await expect(read(payment({}, { delivered_amount: '4999999' }))).rejects.toThrow(NoAnswer)
  await expect(read(payment({}, { delivered_amount: 'unavailable' }))).rejects.toThrow(NoAnswer)
  await expect(read({ ...payment(), metaData: undefined })).rejects.toThrow(NoAnswer)
})

const mpt = (value: string) => ({ mpt_issuance_id: `0000012F${'FD'.repeat(20)}`, value })
const token = { currency: 'USD', issuer, value: '5' }
const other = 'rf1BiGeXwwQoi8Z2ueFYTEXSwuJYfV2Jpn'

/**
 * What: nothing that strangers do among themselves keeps a ledger from being read.
 * How: what anybody can have in a ledger, beside a deposit.
 */
test.each([
  [
    'a multi-purpose token, as much as there may be of it',
    payment({ Destination: other }, { delivered_amount: mpt(String(2n ** 63n - 1n)), AffectedNodes: [] }),
  ],
  [
    'a token out of an offer of the payee, who gets XRP for it',
    payment(
      { Destination: other, Amount: token, SendMax: '9000000' },
      { delivered_amount: token, AffectedNodes: [accountRoot(other, '1000000', '6000000')] },
    ),
  ],
  [
    'the account of an AMM of two tokens, which begins with no XRP',
    payment(
      { TransactionType: 'AMMCreate', Destination: undefined },
      {
        AffectedNodes: [{ CreatedNode: { LedgerEntryType: 'AccountRoot', NewFields: { Account: other } } }],
      },
    ),
  ],
  [
    'amounts and a tag of a kind that is yet to come',
    payment(
      { Destination: other, DestinationTag: { hash: 'AB' } },
      {
        delivered_amount: { kind: 'new', value: '-1' },
        AffectedNodes: [accountRoot(other, '1', { value: '2' } as never)],
      },
    ),
  ],
])("strangers' %s", async (_, transaction) => {
  expect(await read(transaction, payment())).toEqual([deposit])
})

test('a multi-purpose token is told to its last unit', async () => {
  const [transfer] = await read(
    payment({}, { delivered_amount: mpt('9223372036854775807'), AffectedNodes: [] }),
  )
  expect(transfer).toMatchObject({ to: tagged(7), units: 2n ** 63n - 1n })
})

test('XRP that comes beside a token is of an offer of the account, and not for the tag', async () => {
  const paid = payment({ Amount: token }, { delivered_amount: token })
  expect(await read(paid)).toEqual([
    { ...deposit, to: account },
    expect.objectContaining({ to: tagged(7), asset: { unlisted: `USD.${issuer}` } }),
  ])
})

test('XRP for an offer of ours is not for the tag of whom the payment names', async () => {
  const paid = payment({ Destination: other, Amount: token }, { delivered_amount: token })
  expect(await read(paid, payment())).toEqual([{ ...deposit, to: account }, deposit])
})

test('what is ours and cannot be read is no answer', async () => {
  const broken = [
    payment({ DestinationTag: 2 ** 32 }),
    payment({ DestinationTag: '7' }),
    payment({}, { delivered_amount: undefined }),
    payment({}, { AffectedNodes: [accountRoot(account, '1', '1e9')] }),
    payment({}, { delivered_amount: { kind: 'new', value: '1' } }),
    payment({}, { delivered_amount: mpt('1.5') }),
    payment({ hash: undefined }),
  ]
  for (const transaction of broken) await expect(read(transaction)).rejects.toThrow(NoAnswer)
})
