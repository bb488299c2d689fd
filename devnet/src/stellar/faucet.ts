import {
  Account,
  Asset,
  extractBaseAddress,
  Keypair,
  Memo,
  MuxedAccount,
  Operation,
  TransactionBuilder,
} from '@stellar/stellar-sdk/base'
import type { LocalNetwork } from '../local_network.ts'
import type { SimulatedChain } from '../simulated/chain.ts'
import { draftOn } from '../simulated/state.ts'
import { PASSPHRASE, readTransaction } from './decode_transaction.ts'
import { formatAmount, readAccount } from './entries.ts'
import { BASE_FEE } from './reserves.ts'
import { genesisKey, type Stellar } from './rules.ts'
import { runTransaction } from './run_transaction.ts'

export function stellarFaucet(
  chain: SimulatedChain<Stellar>,
): Pick<LocalNetwork, 'send' | 'balance' | 'freshAddress'> {
  return {
    send: async (currency, to, units, _coins, tag) => {
      if (currency !== 'XLM') throw new Error(`there is no ${currency} on XLM`)
      return send(chain, to, units, tag)
    },
    balance: async (currency, address) => {
      if (currency !== 'XLM') throw new Error(`there is no ${currency} on XLM`)
      return readAccount(chain.view().state, extractBaseAddress(address))?.balance ?? 0n
    },
    // Its key is forgotten at once, and it is no account until somebody creates it.
    freshAddress: () => Keypair.random().publicKey(),
  }
}

/** The faucet does not stand in the queue, where it would have one place a ledger: it asks for what it may do, and does it. */
function send(
  chain: SimulatedChain<Stellar>,
  to: string,
  stroops: bigint,
  tag: string | undefined,
): { txHash: string } {
  const state = chain.open()
  const account = new Account(
    genesisKey.publicKey(),
    String(readAccount(state, genesisKey.publicKey())?.sequence),
  )
  const isThere = readAccount(state, extractBaseAddress(to)) !== undefined
  const amount = formatAmount(stroops)
  const operation = isThere
    ? Operation.payment({ destination: to, asset: Asset.native(), amount })
    : Operation.createAccount({ destination: extractBaseAddress(to), startingBalance: amount })
  const transaction = new TransactionBuilder(account, {
    fee: String(BASE_FEE),
    networkPassphrase: PASSPHRASE,
  })
    .addOperation(operation)
    .addMemo(memoOf(to, tag, isThere))
    .setTimeout(0)
    .build()
  transaction.sign(genesisKey)
  const tx = readTransaction(transaction.toEnvelope().toXdr('base64'), PASSPHRASE)
  const place = { height: chain.head.height + 1, timeMs: Date.now() }
  const outcome = runTransaction(tx, draftOn(state), place)
  const said = 'refused' in outcome ? outcome.refused : outcome.included
  if (said.code !== 'tx_success') {
    const codes = [said.code, ...said.operations.map(({ code }) => code)].join(' ')
    throw new Error(`the faucet's payment to ${to} is refused: ${codes}`)
  }
  chain.submit(tx)
  return { txHash: tx.id }
}

/**
 * A number is a memo of the kind id, and everything else text. An address with a number in it needs none, except where it
 * has to make its account: that operation knows no such addresses.
 */
function memoOf(to: string, tag: string | undefined, isThere: boolean): Memo {
  const inside = to.startsWith('M') ? MuxedAccount.fromAddress(to, '0').id() : undefined
  if (tag !== undefined && inside !== undefined && tag !== inside)
    throw new Error(`the address says ${inside}, not ${tag}`)
  if (inside !== undefined) return isThere ? Memo.none() : Memo.id(inside)
  if (tag === undefined) return Memo.none()
  const isNumber = /^(0|[1-9]\d*)$/.test(tag) && BigInt(tag) < 2n ** 64n
  return isNumber ? Memo.id(tag) : Memo.text(tag)
}
