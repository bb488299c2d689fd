import { createHash } from 'node:crypto'
import { base58 } from '@scure/base'
import {
  AccountRole,
  address,
  appendTransactionMessageInstructions,
  blockhash,
  createKeyPairSignerFromPrivateKeyBytes,
  createTransactionMessage,
  getSignatureFromTransaction,
  getTransactionEncoder,
  type Instruction,
  type KeyPairSigner,
  pipe,
  setTransactionMessageComputeUnitLimit,
  setTransactionMessageComputeUnitPrice,
  setTransactionMessageFeePayerSigner,
  setTransactionMessageLifetimeUsingBlockhash,
  signTransactionMessageWithSigners,
} from '@solana/kit'
import { getTransferSolInstruction } from '@solana-program/system'
import {
  findAssociatedTokenPda,
  getCreateAssociatedTokenIdempotentInstruction,
  getTransferCheckedInstruction,
  TOKEN_PROGRAM_ADDRESS,
} from '@solana-program/token'
import { accept, type Outcome } from '../../domain/outcome.ts'
import { isSameKey, type KeyPath, type SignedTx, type SolanaIntent } from '../../domain/payouts/intent.ts'
import { solanaFeeOf } from '../../domain/payouts/solana_fee.ts'
import { lastBlockOf, SOLANA_BLOCKS_OF_LIFE } from '../../domain/payouts/solana_life.ts'
import type { Keys } from '../derivation.ts'
import { refuseToSign } from '../rejections.ts'
import type { SolanaSettings } from '../settings.ts'
import type { SignRejection } from '../signer.ts'

/** What an intent may say: the last of its blocks, or the one before, as earlier releases had it. */
const LIVES = [SOLANA_BLOCKS_OF_LIFE, SOLANA_BLOCKS_OF_LIFE - 1]

/** A transfer of SOL, or of a token to where its owner's wallet looks for it. Deterministic (RFC 8032). */
export async function signSolana(
  intent: SolanaIntent,
  keys: Keys,
  settings: SolanaSettings | undefined,
  /** Of the token. */
  decimals: number,
): Promise<Outcome<SignedTx, SignRejection>> {
  if (settings === undefined) return refuseToSign('malformed', 'Solana is not configured')
  const problem = findProblem(intent, settings)
  if (problem !== null) return problem
  const signerOf = (key: KeyPath) => createKeyPairSignerFromPrivateKeyBytes(keys.privateKey('solana', key))
  const source = await signerOf(intent.from)
  const payer = isSameKey(intent.from, intent.payer) ? source : await signerOf(intent.payer)
  const { blockhash: hash } = intent.reference
  const lifetime = { blockhash: blockhash(hash), lastValidBlockHeight: BigInt(lastBlockOf(intent)) }
  const instructions = await instructionsOf(intent, source, payer, decimals)
  const message = pipe(
    createTransactionMessage({ version: 0 }),
    (empty) => setTransactionMessageFeePayerSigner(payer, empty),
    (paid) => setTransactionMessageLifetimeUsingBlockhash(lifetime, paid),
    (timed) => appendTransactionMessageInstructions(instructions, timed),
    (acting) => setTransactionMessageComputeUnitLimit(intent.computeUnits, acting),
    (limited) => setTransactionMessageComputeUnitPrice(intent.unitPriceMicroLamports, limited),
  )
  const signed = await signTransactionMessageWithSigners(message)
  const bytes = Buffer.from(Uint8Array.from(getTransactionEncoder().encode(signed))).toString('hex')
  return accept({ txHash: getSignatureFromTransaction(signed), bytes })
}

function findProblem(intent: SolanaIntent, { feeLamportsMax }: SolanaSettings) {
  const { from, payer, token, reference, lastHeight } = intent
  if (from.purpose === 'change' || payer.purpose === 'change')
    return refuseToSign('malformed', 'intent.from: Solana has no change addresses')
  const isReserve = payer.purpose === 'reserve' && payer.index === 0
  if (!isSameKey(from, payer) && !(isReserve && from.purpose === 'deposit' && token !== null))
    return refuseToSign('malformed', 'intent.payer is who sends, or the reserve for a token of a deposit')
  if (!LIVES.includes(lastHeight - reference.height))
    return refuseToSign(
      'malformed',
      `intent.lastHeight is ${SOLANA_BLOCKS_OF_LIFE} blocks after intent.reference`,
    )
  return solanaFeeOf(intent) > feeLamportsMax
    ? refuseToSign('limit_exceeded', `a transaction costs at most ${feeLamportsMax} lamports`)
    : null
}

async function instructionsOf(
  intent: SolanaIntent,
  source: KeyPairSigner,
  payer: KeyPairSigner,
  decimals: number,
): Promise<readonly Instruction[]> {
  const owner = address(intent.to)
  if (intent.token === null)
    return [
      unmistakable(intent, getTransferSolInstruction({ source, destination: owner, amount: intent.units })),
    ]
  const mint = address(intent.token)
  const holdingOf = async (holder: KeyPairSigner['address']) => {
    const [holding] = await findAssociatedTokenPda({
      owner: holder,
      mint,
      tokenProgram: TOKEN_PROGRAM_ADDRESS,
    })
    return holding
  }
  const [from, to] = [await holdingOf(source.address), await holdingOf(owner)]
  const transfer = { source: from, mint, destination: to, authority: source, amount: intent.units, decimals }
  return [
    getCreateAssociatedTokenIdempotentInstruction({ payer, ata: to, owner, mint }),
    unmistakable(intent, getTransferCheckedInstruction(transfer)),
  ]
}

/**
 * Two equal payments that refer to one block would be the same bytes, and so one payment. An account that nobody looks at
 * tells them apart: a reference, as in https://docs.solanapay.com/spec#reference
 */
function unmistakable({ payoutId, attempt }: SolanaIntent, instruction: Instruction): Instruction {
  const digest = createHash('sha256').update(`cambist ${payoutId}#${attempt}`).digest()
  const reference = { address: address(base58.encode(digest)), role: AccountRole.READONLY }
  return { ...instruction, accounts: [...(instruction.accounts ?? []), reference] }
}
