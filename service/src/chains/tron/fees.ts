import { readAccount } from './balance.ts'
import { integerIn, isEmpty, listIn, objectIn, sunIn } from './replies.ts'
import { NoAnswer, type Rpc } from './rpc.ts'

/** What the network asks, in sun; its witnesses vote about it. */
export type Prices = {
  readonly byte: bigint
  readonly energy: bigint
  /** For a transfer of TRX that makes an account, all in all: it pays this in place of its bytes. */
  readonly newAccount: bigint
}

/** With the 64 bytes that a block adds: a transfer of TRX takes 268, a call of a token's `transfer` 345. */
export const TRANSFER_BYTES = 300n
export const CALL_BYTES = 400n

export async function readPrices(rpc: Rpc): Promise<Prices> {
  const answer = objectIn(await rpc.get('wallet/getchainparameters'), 'getchainparameters')
  const told = new Map(
    listIn(answer.chainParameter, 'chainParameter').map((each) => {
      const { key, value } = objectIn(each, 'chainParameter')
      return [String(key), value]
    }),
  )
  const price = (name: string) => {
    const sun = sunIn(told.get(name), name)
    if (sun === 0n) throw new NoAnswer('getchainparameters', `${name} is not there`)
    return sun
  }
  return {
    byte: price('getTransactionFee'),
    energy: price('getEnergyFee'),
    newAccount: price('getCreateNewAccountFeeInSystemContract') + price('getCreateAccountFee'),
  }
}

/** What a transaction of so many bytes costs at most: nothing as long as the day's free bandwidth lasts for it. */
export async function bytesCost(rpc: Rpc, { byte }: Prices, owner: string, bytes: bigint): Promise<bigint> {
  const net = await rpc.get('wallet/getaccountnet', { address: owner })
  // No account yet: it has all of it once it is one.
  if (isEmpty(net) && (await readAccount(rpc, 'wallet', owner)) === null) return 0n
  const { freeNetLimit, freeNetUsed } = objectIn(net, 'getaccountnet')
  const free = integerIn(freeNetLimit, 'freeNetLimit') - integerIn(freeNetUsed, 'freeNetUsed')
  return BigInt(free) >= bytes ? 0n : bytes * byte
}
