import type { Devnet } from '@cambist/devnet'
import {
  appendTransactionMessageInstructions,
  createSolanaRpc,
  createTransactionMessage,
  getBase64EncodedWireTransaction,
  type Instruction,
  type KeyPairSigner,
  pipe,
  setTransactionMessageFeePayerSigner,
  setTransactionMessageLifetimeUsingBlockhash,
  signTransactionMessageWithSigners,
} from '@solana/kit'

/** A transaction of somebody outside, sent whatever becomes of it; answers its signature. */
export async function submitSolana(
  { networks }: Pick<Devnet, 'networks'>,
  payer: KeyPairSigner,
  ...instructions: readonly Instruction[]
): Promise<string> {
  const rpc = createSolanaRpc(networks.SOL?.rpcUrl ?? '')
  const { value } = await rpc.getLatestBlockhash({ commitment: 'confirmed' }).send()
  const message = pipe(
    createTransactionMessage({ version: 0 }),
    (empty) => setTransactionMessageFeePayerSigner(payer, empty),
    (paid) => setTransactionMessageLifetimeUsingBlockhash(value, paid),
    (timed) => appendTransactionMessageInstructions(instructions, timed),
  )
  const wire = getBase64EncodedWireTransaction(await signTransactionMessageWithSigners(message))
  return rpc.sendTransaction(wire, { encoding: 'base64', skipPreflight: true }).send()
}
