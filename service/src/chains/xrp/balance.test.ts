import { expect, test } from 'vitest'
import { lockedDrops } from './balance.ts'
import { refusing, type Script, scriptedRpc } from './testing/scripted_rpc.ts'

/**
 * What: of the balance of an account stays what the ledger makes it keep, for itself and for each object that it owns, and a fee.
 * How: a node that answers by a script.
 */
const account = 'rPT1Sjq2YGrBMTttX4GZHjKu9dyfzbpAYe'
const feeDropsMax = 100_000n

function locked(accountInfo: NonNullable<Script[string]>): Promise<bigint> {
  const ledger = { base_fee: 10, reserve_base: 1_000_000, reserve_inc: 200_000, seq: 90 }
  const rpc = scriptedRpc({
    account_info: accountInfo,
    server_state: () => ({ state: { validated_ledger: ledger } }),
  })
  return lockedDrops(rpc, account, feeDropsMax)
}

const owning = (OwnerCount: unknown) => () => ({ account_data: { Account: account, OwnerCount } })

test('what an account owns keeps a part of its balance back', async () => {
  expect(await locked(owning(0))).toBe(1_100_000n)
  expect(await locked(owning(2))).toBe(1_500_000n)
  expect(await locked(refusing('actNotFound')), 'nobody has made it yet').toBe(1_100_000n)
})

test('a node that does not say what an account owns has said nothing', async () => {
  await expect(locked(owning(undefined))).rejects.toThrow('OwnerCount')
  await expect(locked(owning(-1))).rejects.toThrow('OwnerCount')
})
