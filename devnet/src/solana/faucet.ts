import { generateKeyPairSync, randomBytes } from 'node:crypto'
import { base58 } from '@scure/base'
import {
  AccountRole,
  type Address,
  address,
  appendTransactionMessageInstructions,
  blockhash,
  createTransactionMessage,
  getBase64EncodedWireTransaction,
  type Instruction,
  type KeyPairSigner,
  pipe,
  setTransactionMessageFeePayerSigner,
  setTransactionMessageLifetimeUsingBlockhash,
  signTransactionMessageWithSigners,
} from '@solana/kit'
import { getTransferSolInstruction } from '@solana-program/system'
import {
  getCreateAssociatedTokenIdempotentInstruction,
  getTransferCheckedInstruction,
} from '@solana-program/token'
import type { LocalNetwork } from '../local_network.ts'
import { draftOn } from '../simulated/state.ts'
import type { SolanaNode } from './command.ts'
import { transactionOf } from './decode_transaction.ts'
import { readAccount } from './entries.ts'
import { faucetSigner, holdingOf, mints } from './genesis.ts'
import { BLOCKHASH_BLOCKS, runTransaction } from './run_transaction.ts'
import { readHolding } from './token_accounts.ts'

/** At home: no trouble of the node is one of the faucet. */
type Home = Pick<SolanaNode, 'chain' | 'vm'>

export function solanaFaucet(node: Home): Pick<LocalNetwork, 'send' | 'balance' | 'freshAddress'> {
  return {
    send: async (currency, to, units) => {
      const faucet = await faucetSigner()
      if (currency === 'SOL') return submit(node, faucet, [solTo(faucet, address(to), units)])
      if (currency !== 'USDC') throw new Error(`there is no ${currency} on SOL`)
      return submit(node, faucet, await usdcTo(faucet, address(to), units))
    },
    balance: async (currency, holder) => {
      const { state } = node.chain.view()
      if (currency === 'SOL') return readAccount(state, address(holder))?.lamports ?? 0n
      if (currency !== 'USDC') throw new Error(`there is no ${currency} on SOL`)
      return readHolding(state, await holdingOf(holder, 'USDC'))?.units ?? 0n
    },
    freshAddress: () => {
      const { publicKey } = generateKeyPairSync('ed25519')
      return base58.encode(Buffer.from(publicKey.export({ format: 'jwk' }).x ?? '', 'base64url'))
    },
  }
}

function solTo(source: KeyPairSigner, destination: Address, amount: bigint): Instruction {
  return unmistakable(getTransferSolInstruction({ source, destination, amount }))
}

/** Makes the place where it is to lie, when it is not there yet. */
async function usdcTo(faucet: KeyPairSigner, owner: Address, amount: bigint): Promise<Instruction[]> {
  const mint = address(mints.USDC.address)
  const [source, destination] = [
    address(await holdingOf(faucet.address, 'USDC')),
    address(await holdingOf(owner, 'USDC')),
  ]
  return [
    getCreateAssociatedTokenIdempotentInstruction({ payer: faucet, ata: destination, owner, mint }),
    unmistakable(
      getTransferCheckedInstruction({ source, mint, destination, authority: faucet, amount, decimals: 6 }),
    ),
  ]
}

/** Equal payments of one moment would be the same bytes: an account that nobody looks at tells them apart. */
function unmistakable(instruction: Instruction): Instruction {
  const nobody = { address: address(base58.encode(randomBytes(32))), role: AccountRole.READONLY }
  return { ...instruction, accounts: [...(instruction.accounts ?? []), nobody] }
}

async function submit(
  { chain, vm }: Home,
  faucet: KeyPairSigner,
  instructions: readonly Instruction[],
): Promise<{ txHash: string }> {
  const { height, seal } = chain.head
  const lifetime = {
    blockhash: blockhash(seal.hash),
    lastValidBlockHeight: BigInt(height + BLOCKHASH_BLOCKS - 1),
  }
  const message = pipe(
    createTransactionMessage({ version: 0 }),
    (empty) => setTransactionMessageFeePayerSigner(faucet, empty),
    (paid) => setTransactionMessageLifetimeUsingBlockhash(lifetime, paid),
    (timed) => appendTransactionMessageInstructions(instructions, timed),
  )
  const signed = await signTransactionMessageWithSigners(message)
  const tx = transactionOf(getBase64EncodedWireTransaction(signed))
  const { err, logs } = runTransaction(tx, draftOn(chain.view().state), chain.head.height + 1, vm)
  if (err !== null) throw new Error(`SOL: ${JSON.stringify(err)}\n${logs.join('\n')}`)
  chain.submit(tx)
  return { txHash: tx.id }
}
