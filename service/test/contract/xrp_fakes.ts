import { xAddressToClassicAddress } from 'ripple-address-codec'
import type { FakeDeposit } from './chain_driver.ts'
import type { Outsider, XrpDriver } from './xrp_driver.ts'

/** Ways to look like a deposit of XRP: XRP partial payment, IOU named XRP, missing tag. */
export function xrpFakes(running: () => XrpDriver): readonly FakeDeposit[] {
  const payment = (to: string, more: object = {}) => {
    const { classicAddress, tag } = xAddressToClassicAddress(to)
    return {
      TransactionType: 'Payment',
      Destination: classicAddress,
      DestinationTag: tag,
      Amount: '50000000',
      ...more,
    }
  }
  const fake = (
    what: string,
    fieldsOf: (to: string, sender: Outsider) => object,
    drops?: bigint,
  ): FakeDeposit => ({
    what,
    shows: 'nothing',
    make: async (_driver, to) => {
      const sender = await running().outsider(drops)
      return { txHash: await sender.submit(fieldsOf(to, sender)) }
    },
  })
  return [
    fake('a payment without a tag', (to) => payment(to, { DestinationTag: undefined })),
    fake('a payment with the tag of nobody', (to) => payment(to, { DestinationTag: 4_000_000_000 })),
    fake('a payment whose tag is the source tag', (to) =>
      payment(to, { DestinationTag: undefined, SourceTag: tagOf(to) }),
    ),
    fake('a payment that says the tag in a memo', (to) =>
      payment(to, { DestinationTag: undefined, Memos: [{ Memo: { MemoData: hexOf(String(tagOf(to))) } }] }),
    ),
    fake('a payment of more than the sender has, which took its fee', (to) =>
      payment(to, { Amount: '900000000' }),
    ),
    fake('a payment to somebody else with our tag', (to, { account }) =>
      payment(to, { Destination: otherThan(account) }),
    ),
    fake('a payment of a token that the payer issues and calls by three letters', (to, { account }) =>
      payment(to, { Amount: { currency: 'XRT', issuer: account, value: '50' } }),
    ),
    fake('a payment of a token whose code spells XRP in ASCII', (to, { account }) =>
      payment(to, { Amount: { currency: hexOf('XRP').padEnd(40, '0'), issuer: account, value: '50' } }),
    ),
    fake('an AccountSet with a memo that speaks of a payment', (to) => ({
      TransactionType: 'AccountSet',
      Memos: [{ Memo: { MemoData: hexOf(to) } }],
    })),
    fake('trust in our account, which is no money', (to) => ({
      TransactionType: 'TrustSet',
      LimitAmount: { currency: 'USD', issuer: xAddressToClassicAddress(to).classicAddress, value: '1000000' },
    })),
    {
      what: 'a payment that was accepted and then lost by the network',
      shows: 'nothing',
      make: async (driver, to) => {
        const sender = await running().outsider()
        let txHash = ''
        await driver.lose?.(async () => {
          txHash = await sender.submit(payment(to))
        })
        return { txHash }
      },
    },
  ]
}

function tagOf(to: string): number {
  const { tag } = xAddressToClassicAddress(to)
  if (tag === false) throw new Error(`${to} has a tag`)
  return tag
}

function hexOf(text: string): string {
  return Buffer.from(text).toString('hex').toUpperCase()
}

/** The account that holds everything at first is always there. */
function otherThan(account: string): string {
  const master = 'rHb9CJAWyB4rj91VRWn96DkukG4bwdtyTh'
  if (account === master) throw new Error('it is somebody else')
  return master
}
