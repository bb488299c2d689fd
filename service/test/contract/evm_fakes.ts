import { type Address, encodeFunctionData, erc20Abi, type Hex, pad } from 'viem'
import type { FakeDeposit } from './chain_driver.ts'
import type { EvmDriver } from './evm_driver.ts'

/** Small contracts, in the EVM's own words: what they are called with first (32 bytes) is an address. */
export const code = {
  /** DELEGATECALL to the address, with all that was sent along: its code runs here, the coin stays here. */
  delegatecall: '5f5f5f5f5f355af400',
  /** CALLCODE to the address with the value sent along: an older DELEGATECALL that even names a value. */
  callcode: '5f5f5f5f345f355af200',
  /** STATICCALL to the address. */
  staticcall: '5f5f5f5f5f355afa00',
  /** SELFDESTRUCT in favour of the address. */
  selfdestruct: '5f35ff',
  /** CALL to the address with the value sent along, then SELFDESTRUCT in its own favour, which moves nothing (EIP-6780). */
  payThenStay: '5f5f5f5f345f355af15030ff',
  /** CALL to the address with half of the value sent along, then SELFDESTRUCT in favour of it, which leaves the other half. */
  payHalfThenLeave: '5f5f5f5f600234045f355af1505f35ff',
  /** SELFDESTRUCT in its own favour. */
  stay: '30ff',
  /** An NFT's Transfer to the address: the topic of ERC-20's, with the number of the piece as a fourth topic. */
  nftTransfer: '60015f35337fddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef5f5fa400',
  /** SHA-256, a precompile, then CALL to the address with the value sent along. */
  precompileThenPay: '5f5f5f5f60025afa505f5f5f5f345f355af100',
  /** STATICCALL to nobody with 8 KB, as often as it is told. */
  shout: '5f356200200051505b5f5f620020005f60555afa50600190038060085700',
} as const

const WEI = 10n ** 16n
const TOKENS = 5_000_000n

type Make = (driver: EvmDriver, to: Address) => Promise<Hex>

/** Every class of facts "crediting a deposit" that exists on the EVM; `to` is an address of ours. */
export function evmFakes(driverOf: () => EvmDriver): readonly FakeDeposit[] {
  const fake = (what: string, shows: FakeDeposit['shows'], make: Make): FakeDeposit => ({
    what,
    shows,
    make: async (_, to) => ({ txHash: await make(driverOf(), to as Address) }),
  })
  return [...failures(fake), ...illusions(fake), ...foreignTokens(fake)]
}

type Fake = (what: string, shows: FakeDeposit['shows'], make: Make) => FakeDeposit

function failures(fake: Fake): readonly FakeDeposit[] {
  return [
    fake('a listed token sent in a transaction that fails', 'nothing', (driver, to) =>
      driver.callAsFaucet(listedToken(driver), transfer(to, 10n ** 40n)),
    ),
    fake('an internal payment in a transaction that fails', 'nothing', async (driver, to) => {
      const payer = await driver.deploy('Payer')
      return driver.callAsFaucet(payer, driver.encode('Payer', 'payThenRevert', [to]), WEI)
    }),
    fake('an internal payment undone by a revert that is swallowed', 'nothing', async (driver, to) => {
      const payer = await driver.deploy('Payer')
      return driver.callAsFaucet(payer, driver.encode('Payer', 'payAndRevertInside', [to]), WEI)
    }),
  ]
}

function illusions(fake: Fake): readonly FakeDeposit[] {
  const call = (name: keyof typeof code) => async (driver: EvmDriver, to: Address) =>
    driver.callAsFaucet(await driver.deployCode(code[name]), pad(to), WEI)
  return [
    fake('a DELEGATECALL that carries a value', 'nothing', call('delegatecall')),
    fake('a CALLCODE that carries a value', 'nothing', call('callcode')),
    fake('a STATICCALL', 'nothing', call('staticcall')),
    fake("an NFT's Transfer", 'nothing', async (driver, to) =>
      driver.callAsFaucet(await driver.deployCode(code.nftTransfer), pad(to)),
    ),
    fake('a transfer of no coin', 'nothing', (driver, to) => driver.callAsFaucet(to, '0x')),
    fake('a transfer of no tokens', 'nothing', (driver, to) =>
      driver.callAsFaucet(listedToken(driver), transfer(to, 0n)),
    ),
  ]
}

function foreignTokens(fake: Fake): readonly FakeDeposit[] {
  return [
    fake('a token named Tether USD that moves nothing', 'unlisted', async (driver, to) =>
      driver.callAsFaucet(await driver.deploy('SpoofToken'), transfer(to, TOKENS)),
    ),
    fake('a token that says Transfer and returns false', 'unlisted', async (driver, to) =>
      driver.callAsFaucet(await driver.deploy('FalseReturnToken'), transfer(to, TOKENS)),
    ),
    fake('a token that takes a fee on the way', 'unlisted', async (driver, to) =>
      driver.callAsFaucet(
        await driver.deploy('FeeOnTransferToken', [100n, 10n ** 12n]),
        transfer(to, TOKENS),
      ),
    ),
    fake('an honest token that is not listed', 'unlisted', async (driver, to) => {
      const faucet = driver.client.account.address
      const token = await driver.deploy('TestToken', ['Tether USD', 'USDT', 6, faucet])
      return driver.callAsFaucet(token, driver.encode('TestToken', 'mint', [to, TOKENS]))
    }),
    fake('a Transfer event of a contract that is no token', 'unlisted', async (driver, to) => {
      const payer = await driver.deploy('Payer')
      const { address } = driver.client.account
      return driver.callAsFaucet(payer, driver.encode('Payer', 'emitFakeTransfer', [address, to, TOKENS]))
    }),
  ]
}

export function transfer(to: Address, units: bigint): Hex {
  return encodeFunctionData({ abi: erc20Abi, functionName: 'transfer', args: [to, units] })
}

export function listedToken({ settings }: EvmDriver): Address {
  const [contract] = Object.values(settings.tokens)
  if (contract === undefined) throw new Error('a token is listed')
  return contract
}
