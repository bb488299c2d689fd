import type { FakeDeposit } from './chain_driver.ts'
import type { TronDriver } from './tron_driver.ts'

const UNITS = 50_000_000
const TRANSFER = 'transfer(address,uint256)'

/** Ways to look like a deposit on TRON: contractRet, listed contract, TRC-10 of the same name. */
export function tronFakes(running: () => TronDriver): readonly FakeDeposit[] {
  type Make = (driver: TronDriver, to: string) => Promise<string>
  const fake = (what: string, shows: FakeDeposit['shows'], make: Make): FakeDeposit => ({
    what,
    shows,
    make: async (_driver, to) => ({ txHash: await make(running(), to) }),
  })
  const transfer = (driver: TronDriver, contract: string, to: string, units: number | string = UNITS) =>
    driver.call(contract, TRANSFER, [
      { type: 'address', value: to },
      { type: 'uint256', value: units },
    ])
  const listed = ({ info }: TronDriver) => info.tokens.USDT.address
  const payer = ({ info }: TronDriver) => info.contracts.Payer.address
  const pay =
    (name: string): Make =>
    async (driver, to) =>
      driver.call(payer(driver), name, [{ type: 'address', value: to }], UNITS)
  const failing =
    (contractRet: string): Make =>
    async (driver, to) => {
      driver.failNext(contractRet)
      return transfer(driver, listed(driver), to)
    }
  const oddToken =
    (name: keyof TronDriver['info']['contracts']): Make =>
    async (driver, to) =>
      transfer(driver, driver.info.contracts[name].address, to)
  return [
    fake('USDT in a transaction that ran out of energy', 'nothing', failing('OUT_OF_ENERGY')),
    fake('USDT in a transaction that was reverted', 'nothing', failing('REVERT')),
    fake('more USDT than the sender has', 'nothing', (driver, to) =>
      transfer(driver, listed(driver), to, `1${'0'.repeat(30)}`),
    ),
    fake('TRX in a transaction that its block says has failed', 'nothing', async (driver, to) => {
      driver.failNext('FAILED')
      const { faucet } = driver
      return driver.submit(
        await faucet.transactionBuilder.sendTrx(to, UNITS, faucet.defaultAddress.hex || ''),
      )
    }),
    fake('no USDT at all', 'nothing', (driver, to) => transfer(driver, listed(driver), to, 0)),
    fake('a TRC-10 token that is named USDT', 'unlisted', async (driver, to) => {
      const { faucet, info } = driver
      return driver.submit(
        await faucet.transactionBuilder.sendToken(
          to,
          UNITS,
          info.falseTrc10,
          faucet.defaultAddress.hex || '',
        ),
      )
    }),
    fake('a token that says Transfer and moves nothing', 'unlisted', oddToken('SpoofToken')),
    fake('a token that answers false', 'unlisted', oddToken('FalseReturnToken')),
    fake('a token that keeps a fee', 'unlisted', oddToken('FeeOnTransferToken')),
    fake('a token that reverts', 'nothing', oddToken('RevertingToken')),
    fake('a token that burns all energy', 'nothing', oddToken('BurningToken')),
    fake('a Transfer event of a contract that is no token', 'unlisted', (driver, to) =>
      driver.call(payer(driver), 'emitFakeTransfer(address,address,uint256)', [
        { type: 'address', value: driver.faucet.defaultAddress.base58 },
        { type: 'address', value: to },
        { type: 'uint256', value: UNITS },
      ]),
    ),
    fake('an internal payment in a transaction that fails', 'nothing', pay('payThenRevert(address)')),
    fake('an internal payment undone by a revert inside', 'nothing', pay('payAndRevertInside(address)')),
  ]
}
