import { createPublicKey, verify } from 'node:crypto'
import { base58 } from '@scure/base'
import { getCompiledTransactionMessageDecoder, getTransactionDecoder } from '@solana/kit'
import { COMPUTE_BUDGET_PROGRAM } from './programs.ts'

/** A transaction as it waits and as it lies in a block: everything else is read out of its bytes. */
export type SolanaTransaction = {
  /** Its first signature, by which it is known. */
  readonly id: string
  /** In base64. */
  readonly wire: string
  /** What a test asked for: it is in its block and has failed so. */
  readonly failWith?: string
}

export type Decoded = {
  readonly signatures: readonly string[]
  readonly version: 'legacy' | number
  readonly accounts: readonly {
    readonly address: string
    readonly signer: boolean
    readonly writable: boolean
  }[]
  readonly blockhash: string
  readonly header: {
    readonly signers: number
    readonly readonlySigners: number
    readonly readonlyOthers: number
  }
  readonly instructions: readonly {
    readonly program: number
    readonly accounts: readonly number[]
    readonly data: Uint8Array
  }[]
  /** In lamports, as it would be charged. */
  readonly fee: bigint
}

/** The bytes are no transaction, or not one that this simulator takes. */
export class Undecodable extends Error {}

const WIRE_BYTES_MAX = 1232

/** Throws `Undecodable`. Signatures are verified by `hasGoodSignatures`. */
export function decodeTransaction(wire: string): Decoded {
  const bytes = Buffer.from(wire, 'base64')
  if (bytes.length > WIRE_BYTES_MAX)
    throw new Undecodable(`base64 encoded solana_transaction too large: ${bytes.length} bytes`)
  const { message, signatures } = partsOf(bytes)
  if ('addressTableLookups' in message && (message.addressTableLookups?.length ?? 0) > 0)
    throw new Undecodable('address lookup tables are not simulated')
  if (message.version !== 'legacy' && message.version !== 0)
    throw new Undecodable(`transactions of version ${message.version} are not simulated`)
  const { numSignerAccounts, numReadonlySignerAccounts, numReadonlyNonSignerAccounts } = message.header
  const { staticAccounts } = message
  const accounts = staticAccounts.map((address, index) => ({
    address: String(address),
    signer: index < numSignerAccounts,
    writable:
      index < numSignerAccounts
        ? index < numSignerAccounts - numReadonlySignerAccounts
        : index < staticAccounts.length - numReadonlyNonSignerAccounts,
  }))
  const instructions = message.instructions.map(({ programAddressIndex, accountIndices, data }) => ({
    program: programAddressIndex,
    accounts: accountIndices ?? [],
    data: Uint8Array.from(data ?? []),
  }))
  return {
    signatures,
    version: message.version,
    accounts,
    blockhash: String(message.lifetimeToken),
    header: {
      signers: numSignerAccounts,
      readonlySigners: numReadonlySignerAccounts,
      readonlyOthers: numReadonlyNonSignerAccounts,
    },
    instructions,
    fee: feeOf(accounts, instructions),
  }
}

function partsOf(bytes: Uint8Array) {
  try {
    const transaction = getTransactionDecoder().decode(bytes)
    const message = getCompiledTransactionMessageDecoder().decode(transaction.messageBytes)
    const signatures = Object.values(transaction.signatures).map((signature) =>
      base58.encode(Uint8Array.from(signature ?? new Uint8Array(64))),
    )
    return { message, signatures }
  } catch (error) {
    throw new Undecodable(`failed to deserialize solana_transaction: ${(error as Error).message}`)
  }
}

export function transactionOf(wire: string, failWith?: string): SolanaTransaction {
  const [id = ''] = decodeTransaction(wire).signatures
  return { id, wire, ...(failWith !== undefined && { failWith }) }
}

export function hasGoodSignatures(wire: string): boolean {
  const bytes = Buffer.from(wire, 'base64')
  const { messageBytes } = getTransactionDecoder().decode(bytes)
  const { signatures, accounts } = decodeTransaction(wire)
  return signatures.every((signature, index) => {
    const raw = base58.decode(accounts[index]?.address ?? '')
    const jwk = { kty: 'OKP', crv: 'Ed25519', x: Buffer.from(raw).toString('base64url') }
    const key = createPublicKey({ key: jwk, format: 'jwk' })
    return verify(null, Uint8Array.from(messageBytes), key, base58.decode(signature))
  })
}

const LAMPORTS_PER_SIGNATURE = 5_000n
/** What an instruction may use when nobody says how much. */
const UNITS_PER_INSTRUCTION = 200_000n

/** https://solana.com/docs/core/fees: so much for a signature, and the price of a unit times those that were asked for. */
function feeOf(accounts: Decoded['accounts'], instructions: Decoded['instructions']): bigint {
  const budget = instructions.filter(({ program }) => accounts[program]?.address === COMPUTE_BUDGET_PROGRAM)
  let units = BigInt(instructions.length - budget.length) * UNITS_PER_INSTRUCTION
  let microLamports = 0n
  for (const { data } of budget) {
    const bytes = Buffer.from(data)
    if (bytes[0] === 2 && bytes.length === 5) units = BigInt(bytes.readUInt32LE(1))
    if (bytes[0] === 3 && bytes.length === 9) microLamports = bytes.readBigUInt64LE(1)
  }
  const signers = BigInt(accounts.filter(({ signer }) => signer).length)
  return signers * LAMPORTS_PER_SIGNATURE + (units * microLamports + 999_999n) / 1_000_000n
}
