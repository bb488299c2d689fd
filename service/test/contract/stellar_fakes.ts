import {
  Asset,
  encodeMuxedAccount,
  encodeMuxedAccountToAddress,
  Keypair,
  Memo,
  Operation,
  type xdr,
} from '@stellar/stellar-sdk/base'
import { parsePlace } from '../../src/chains/stellar/address.ts'
import { assert } from '../../src/domain/assert.ts'
import type { FakeDeposit } from './chain_driver.ts'
import type { Outsider, StellarDriver } from './stellar_driver.ts'

const native = Asset.native()
const lumens = (destination: string, amount = '5') =>
  Operation.payment({ destination, asset: native, amount })
const NOBODY = '4000000000'

type Fake = (what: string, say: (to: string, sender: Outsider) => Said) => FakeDeposit
type Said = { readonly operations: xdr.Operation | readonly xdr.Operation[]; readonly memo?: Memo }

/** Ways to look like a deposit of lumens: failed, wrong issuer, memo type and value, muxed id. */
export function stellarFakes(running: () => StellarDriver): readonly FakeDeposit[] {
  const fake: Fake = (what, say) => ({
    what,
    shows: 'nothing',
    make: async (_driver, to) => {
      const sender = await running().outsider()
      const { operations, memo } = say(to, sender)
      return { txHash: await sender.submit(operations, memo === undefined ? {} : { memo }) }
    },
  })
  return [
    fake('a payment without a memo', (to) => ({ operations: lumens(placeOf(to).account) })),
    fake('a payment with the memo of nobody', (to) => ({
      operations: lumens(placeOf(to).account),
      memo: Memo.id(NOBODY),
    })),
    fake('a payment to the muxed id of nobody', (to) => ({ operations: lumens(otherId(to)) })),
    fake('a payment to the muxed id of nobody that says ours in its memo', (to) => ({
      operations: lumens(otherId(to)),
      memo: Memo.id(placeOf(to).id),
    })),
    fake('a payment to our muxed id that says another in its memo', (to) => ({
      operations: lumens(to),
      memo: Memo.text(NOBODY),
    })),
    fake('a payment whose memo has the number among words', (to) => ({
      operations: lumens(placeOf(to).account),
      memo: Memo.text(`order ${placeOf(to).id}`),
    })),
    fake('a payment whose memo has noughts before the number', (to) => ({
      operations: lumens(placeOf(to).account),
      memo: Memo.text(`0${placeOf(to).id}`),
    })),
    fake('a payment whose memo has the number as a hash', (to) => ({
      operations: lumens(placeOf(to).account),
      memo: Memo.hash(BigInt(placeOf(to).id).toString(16).padStart(64, '0')),
    })),
    ...failing(fake),
    {
      what: 'a payment that was accepted and then lost by the network',
      shows: 'nothing',
      make: async (driver, to) => {
        const sender = await running().outsider()
        let txHash = ''
        await driver.lose?.(async () => {
          txHash = await sender.submit(lumens(to))
        })
        return { txHash }
      },
    },
  ]
}

/** What the ledger does not do, or does to somebody else, or does with something else. */
function failing(fake: Fake): readonly FakeDeposit[] {
  return [
    fake('a payment of more than the sender has, which took its fee', (to) => ({
      operations: lumens(to, '900'),
    })),
    fake('a payment beside one that fails, which fails with it', (to) => ({
      operations: [lumens(to), lumens(Keypair.random().publicKey())],
    })),
    fake('a payment to somebody else with our memo', (to, { account }) => ({
      operations: lumens(account),
      memo: Memo.id(placeOf(to).id),
    })),
    fake('a payment of a token that its sender calls XLM', (to, { account }) => ({
      operations: Operation.payment({ destination: to, asset: new Asset('XLM', account), amount: '5' }),
    })),
    fake('a path payment that would bring too little', (to) => ({
      operations: Operation.pathPaymentStrictSend({
        sendAsset: native,
        sendAmount: '5',
        destination: to,
        destAsset: native,
        destMin: '6',
      }),
    })),
    fake('an account that is made where ours is', (to) => ({
      operations: Operation.createAccount({ destination: placeOf(to).account, startingBalance: '5' }),
      memo: Memo.id(placeOf(to).id),
    })),
    fake('a data entry that speaks of a payment', (to) => ({
      operations: Operation.manageData({ name: 'payment', value: to.slice(0, 60) }),
      memo: Memo.id(placeOf(to).id),
    })),
  ]
}

function placeOf(to: string): { account: string; id: string } {
  const place = parsePlace(to)
  assert(place.ok && place.value.id !== null, `${to} is a muxed address`)
  return { account: place.value.account, id: place.value.id }
}

function otherId(to: string): string {
  return encodeMuxedAccountToAddress(encodeMuxedAccount(placeOf(to).account, NOBODY))
}
