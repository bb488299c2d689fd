import { randomBytes } from 'node:crypto'
import {
  AccountRole,
  address,
  createKeyPairSignerFromPrivateKeyBytes,
  type Instruction,
  type KeyPairSigner,
} from '@solana/kit'
import { getCreateAccountInstruction, getTransferSolInstruction } from '@solana-program/system'
import {
  AuthorityType,
  findAssociatedTokenPda,
  getApproveInstruction,
  getCreateAssociatedTokenIdempotentInstruction,
  getFreezeAccountInstruction,
  getInitializeAccount3Instruction,
  getMintToInstruction,
  getSetAuthorityInstruction,
  getTransferCheckedInstruction,
  TOKEN_PROGRAM_ADDRESS,
} from '@solana-program/token'
import type { FakeDeposit } from './chain_driver.ts'
import type { SolanaDriver } from './solana_driver.ts'

const LAMPORTS = 50_000_000n
const UNITS = 50_000_000n
const HOLDING_BYTES = 165n
const HOLDING_RENT = 2_039_280n

type Mint = keyof SolanaDriver['info']['mints']

/** Ways to look like a deposit on Solana: err null, mint and program, the difference in what is held. */
export function solanaFakes(running: () => SolanaDriver): readonly FakeDeposit[] {
  const fake: Fake = (what, shows, make) => ({
    what,
    shows,
    make: async (_driver, to) => ({ txHash: await make(running(), to) }),
  })
  return [...inVain(fake), ...elsewhere(fake)]
}

type Make = (driver: SolanaDriver, to: string) => Promise<string>
type Fake = (what: string, shows: FakeDeposit['shows'], make: Make) => FakeDeposit

const token =
  (mint: Mint, units: bigint): Make =>
  async (driver, to) =>
    driver.submit(...(await tokenTo(driver, mint, to, units)))
/** Nothing comes of them. */
function inVain(fake: Fake): readonly FakeDeposit[] {
  return [
    fake('SOL in a transaction that fails', 'nothing', async (driver, to) =>
      driver.submit(coinTo(driver, to, LAMPORTS), tooMuch(driver, to)),
    ),
    fake('USDC in a transaction that fails', 'nothing', async (driver, to) =>
      driver.submit(...(await tokenTo(driver, 'USDC', to, UNITS)), tooMuch(driver, to)),
    ),
    fake('more USDC than the sender has', 'nothing', token('USDC', 10n ** 18n)),
    fake('no USDC at all', 'nothing', token('USDC', 0n)),
    fake('USDC to an account that is frozen', 'nothing', async (driver, to) => {
      const [make, transfer] = await tokenTo(driver, 'USDC', to, UNITS)
      const { faucet: owner, info } = driver
      const account = await holdingOf(driver, 'USDC', to)
      const freeze = getFreezeAccountInstruction({ account, mint: address(info.mints.USDC.address), owner })
      return driver.submit(make, freeze, transfer)
    }),
  ]
}

/** Something arrives, and it is not what it looks like or not where it should be. */
function elsewhere(fake: Fake): readonly FakeDeposit[] {
  return [
    fake('a token that is like USDC', 'unlisted', token('Lookalike', UNITS)),
    fake('a token of the other token program', 'unlisted', token('Token2022', UNITS)),
    fake('a token like USDC that is made for us', 'unlisted', async (driver, to) => {
      const [make] = await tokenTo(driver, 'Lookalike', to, 0n)
      const mint = address(driver.info.mints.Lookalike.address)
      const account = await holdingOf(driver, 'Lookalike', to)
      return driver.submit(
        make,
        getMintToInstruction({ mint, token: account, mintAuthority: driver.faucet, amount: UNITS }),
      )
    }),
    fake('USDC in an account of ours where no wallet looks', 'unlisted', async (driver, to) => {
      const { account, instructions } = await otherAccount(driver, to)
      return driver.submit(...instructions, await transferTo(driver, 'USDC', account, UNITS))
    }),
    fake('an account with USDC inside that is given to us', 'unlisted', async (driver, to) => {
      const { faucet } = driver
      const { account, instructions } = await otherAccount(driver, faucet.address)
      const given = getSetAuthorityInstruction({
        owned: account.address,
        owner: faucet,
        authorityType: AuthorityType.AccountOwner,
        newAuthority: address(to),
      })
      return driver.submit(...instructions, await transferTo(driver, 'USDC', account, UNITS), given)
    }),
    fake('USDC that we may take and that nobody has sent', 'nothing', async (driver, to) =>
      driver.submit(
        getApproveInstruction({
          source: await holdingOf(driver, 'USDC', driver.faucet.address),
          delegate: address(to),
          owner: driver.faucet,
          amount: UNITS,
        }),
      ),
    ),
    fake('SOL where our USDC lies', 'nothing', async (driver, to) => {
      const [make] = await tokenTo(driver, 'USDC', to, 0n)
      return driver.submit(make, coinTo(driver, await holdingOf(driver, 'USDC', to), LAMPORTS))
    }),
    fake('a payment to somebody else that names us', 'nothing', async (driver, to) => {
      const payment = coinTo(driver, await driver.outsideAddress(), LAMPORTS)
      const named = { address: address(to), role: AccountRole.WRITABLE }
      return driver.submit({ ...payment, accounts: [...(payment.accounts ?? []), named] })
    }),
  ]
}

function coinTo({ faucet: source }: SolanaDriver, to: string, amount: bigint): Instruction {
  return getTransferSolInstruction({ source, destination: address(to), amount })
}

/** It undoes everything that comes before it. */
function tooMuch(driver: SolanaDriver, to: string): Instruction {
  return coinTo(driver, to, 10n ** 18n)
}

async function holdingOf({ info }: SolanaDriver, name: Mint, owner: string) {
  const { address: mint, program } = info.mints[name]
  const seeds = { owner: address(owner), mint: address(mint), tokenProgram: address(program) }
  return (await findAssociatedTokenPda(seeds))[0]
}

async function tokenTo(driver: SolanaDriver, name: Mint, to: string, amount: bigint) {
  const { faucet: payer, info } = driver
  const { address: mint, program } = info.mints[name]
  const ata = await holdingOf(driver, name, to)
  const parts = { payer, ata, owner: address(to), mint: address(mint), tokenProgram: address(program) }
  return [
    getCreateAssociatedTokenIdempotentInstruction(parts),
    await transferTo(driver, name, { address: ata }, amount),
  ] as const
}

async function transferTo(
  driver: SolanaDriver,
  name: Mint,
  { address: destination }: Pick<KeyPairSigner, 'address'>,
  amount: bigint,
): Promise<Instruction> {
  const { faucet: authority, info } = driver
  const { address: mint, program } = info.mints[name]
  const source = await holdingOf(driver, name, authority.address)
  return getTransferCheckedInstruction(
    { source, mint: address(mint), destination, authority, amount, decimals: 6 },
    { programAddress: address(program) },
  )
}

/** For USDC, with a key of its own instead of an address that follows from its owner's. */
async function otherAccount({ faucet: payer, info }: SolanaDriver, owner: string) {
  const account = await createKeyPairSignerFromPrivateKeyBytes(randomBytes(32))
  const mint = address(info.mints.USDC.address)
  const instructions: readonly Instruction[] = [
    getCreateAccountInstruction({
      payer,
      newAccount: account,
      lamports: HOLDING_RENT,
      space: HOLDING_BYTES,
      programAddress: TOKEN_PROGRAM_ADDRESS,
    }),
    getInitializeAccount3Instruction({ account: account.address, mint, owner: address(owner) }),
  ]
  return { account, instructions }
}
