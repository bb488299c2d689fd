import { Action, Name, Serializer } from '@wharfkit/antelope'
import type { FakeDeposit } from './chain_driver.ts'
import { type EosDriver, placeOf } from './eos_driver.ts'

const NOBODY = '4000000000'

type Fake = (
  what: string,
  shows: FakeDeposit['shows'],
  make: (driver: EosDriver, to: string) => Promise<string>,
) => FakeDeposit

/** Ways to look like a deposit of EOS: hard_fail, fake eosio.token, notification duplicates. */
export function eosFakes(running: () => EosDriver): readonly FakeDeposit[] {
  const fake: Fake = (what, shows, make) => ({
    what,
    shows,
    make: async (_driver, to) => ({ txHash: await make(running(), to) }),
  })
  return [...otherMemos(fake), ...otherContracts(fake), ...undone(fake)]
}

/** True money that is nobody's: it arrives at the account, and no order hears of it. */
function otherMemos(fake: Fake): readonly FakeDeposit[] {
  const memos: readonly (readonly [string, (memo: string) => string])[] = [
    ['without a memo', () => ''],
    ['with the memo of nobody', () => NOBODY],
    ['whose memo has the number among words', (memo) => `order ${memo}`],
    ['whose memo has a nought before the number', (memo) => `0${memo}`],
    ['whose memo has a blank behind the number', (memo) => `${memo} `],
    [
      'whose memo has the number in other digits',
      (memo) => memo.replace(/\d/g, (digit) => '٠١٢٣٤٥٦٧٨٩'[+digit] ?? ''),
    ],
    ['whose memo is our whole address', (memo) => `mycambist123/${memo}`],
  ]
  return memos.map(([what, memoOf]) =>
    fake(`a payment ${what}`, 'nothing', (driver, to) =>
      driver.act(driver.pay(to, '5.0000 EOS', memoOf(placeOf(to).memo))),
    ),
  )
}

function otherContracts(fake: Fake): readonly FakeDeposit[] {
  return [
    fake('the EOS of another contract with the same code', 'unlisted', (driver, to) =>
      driver.act(driver.pay(to, '5.0000 EOS', undefined, driver.info.contracts.fakeToken)),
    ),
    fake('a contract that only says that something was transferred', 'unlisted', (driver, to) =>
      driver.act(driver.pay(to, '5.0000 EOS', undefined, driver.info.contracts.liar)),
    ),
    fake('an account without any contract, called as if it had one', 'unlisted', (driver, to) =>
      driver.act(driver.pay(to, '5.0000 EOS', undefined, 'devnetfaucet')),
    ),
    fake('another token of the true contract', 'unlisted', (driver, to) =>
      driver.act(driver.pay(to, '5.0000 SYS')),
    ),
    fake('the notification of a payment to somebody else, passed on', 'nothing', (driver, to) => {
      const { forwarder } = driver.info.contracts
      const { account, memo } = placeOf(to)
      const forward = Action.from({
        account: forwarder,
        name: 'forward',
        authorization: [{ actor: driver.info.faucet.account, permission: 'active' }],
        data: Serializer.encode({ object: Name.from(account) }),
      })
      return driver.act([forward, driver.pay(forwarder, '5.0000 EOS', memo)])
    }),
    fake('a payment to somebody else with our memo', 'nothing', async (driver, to) =>
      driver.act(driver.pay(await driver.outsideAddress(), '5.0000 EOS', placeOf(to).memo)),
    ),
  ]
}

/** What the chain did not do, or took back before it was irreversible. */
function undone(fake: Fake): readonly FakeDeposit[] {
  return [
    fake('a payment that its block has as failed', 'nothing', (driver, to) => {
      driver.failNext('hard_fail')
      return driver.act(driver.pay(to, '5.0000 EOS'))
    }),
    fake('a payment that was accepted and then lost by the network', 'nothing', async (driver, to) => {
      let txHash = ''
      await driver.lose?.(async () => {
        txHash = await driver.act(driver.pay(to, '5.0000 EOS'))
      })
      return txHash
    }),
    fake('a delayed payment for which there was nothing left', 'nothing', async (driver, to) => {
      const { refuser } = driver.info.contracts
      const refused = driver.pay(refuser, '1.0000 EOS')
      const txHash = await driver.act([driver.pay(to, '5.0000 EOS'), refused], { delaySeconds: 1 })
      await driver.mineOnly(3)
      return txHash
    }),
    fake(
      'a payment in a block that was undone, and that then had no time left',
      'nothing',
      async (driver, to) => {
        const txHash = await driver.act(driver.pay(to, '5.0000 EOS'), { lifeMs: 2_000 })
        await driver.mineOnly(3)
        for (let round = 0; round < 3; round += 1) await driver.reorg(4)
        return txHash
      },
    ),
    fake('an action of another name', 'nothing', (driver, to) => {
      const paid = driver.pay(to, '5.0000 EOS', undefined, 'devnetfaucet')
      return driver.act(Action.from({ ...paid, name: 'transferred' }))
    }),
    fake('less than nothing, said by a contract that does not look', 'nothing', (driver, to) => {
      const { liar } = driver.info.contracts
      const said = driver.pay(to, '5.0000 EOS', undefined, liar)
      const data = Buffer.from(said.data.array)
      data.writeBigInt64LE(-50_000n, 16)
      return driver.act(Action.from({ ...said, data: data.toString('hex') }))
    }),
  ]
}
