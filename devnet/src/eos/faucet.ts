import { randomBytes } from 'node:crypto'
import { PackedTransaction, PrivateKey, Serializer, SignedTransaction, Transaction } from '@wharfkit/antelope'
import type { LocalNetwork } from '../local_network.ts'
import type { SimulatedChain } from '../simulated/chain.ts'
import { encodeAction } from './abis.ts'
import type { Eos } from './blocks.ts'
import { SYSTEM_ACCOUNT, TOKEN_CONTRACT } from './contracts.ts'
import { type Action, decodeTransaction, type Packed } from './decode_transaction.ts'
import { authorityOf, OUTSIDER_PREFIX, readBalance } from './entries.ts'
import { CHAIN_ID, FAUCET, GENESIS_PRIVATE_KEY, irreversibleHeight } from './rules.ts'
import { referencePrefix } from './run_transaction.ts'
import { accept, nextTimeMs } from './submit.ts'
import { writeAsset } from './token.ts'

const LIFETIME_MS = 600_000
const NAME_LETTERS = 'abcdefghijklmnopqrstuvwxyz12345'
const key = PrivateKey.from(GENESIS_PRIVATE_KEY)

export type EosFaucet = Pick<LocalNetwork, 'send' | 'balance' | 'freshAddress'> & {
  createAccount(name: string, publicKey: string): Promise<{ txHash: string }>
}

export function eosFaucet(chain: SimulatedChain<Eos>): EosFaucet {
  return {
    send: async (currency, to, units, _coins, tag = '') => {
      checkCurrency(currency)
      const quantity = writeAsset(units, 4, 'EOS')
      const params = { from: FAUCET, to, quantity, memo: tag }
      return act(
        chain,
        actionOf(TOKEN_CONTRACT, 'transfer', FAUCET, encodeAction('token', 'transfer', params)),
      )
    },
    balance: async (currency, address) => {
      checkCurrency(currency)
      return readBalance(chain.view().state, TOKEN_CONTRACT, address, 'EOS')?.units ?? 0n
    },
    // It has been there since the first block, and nobody has its key.
    freshAddress: () => {
      const letters = [...randomBytes(6)].map((byte) => NAME_LETTERS[byte % NAME_LETTERS.length])
      return OUTSIDER_PREFIX + letters.join('')
    },
    createAccount: async (name, publicKey) => {
      const authority = authorityOf(publicKey)
      const params = { creator: FAUCET, name, owner: authority, active: authority }
      return act(
        chain,
        actionOf(SYSTEM_ACCOUNT, 'newaccount', FAUCET, encodeAction('system', 'newaccount', params)),
      )
    },
  }
}

function checkCurrency(currency: string): void {
  if (currency !== 'EOS') throw new Error(`there is no ${currency} on EOS`)
}

function actionOf(account: string, name: string, actor: string, data: string): Action {
  return { account, name, authorization: [{ actor, permission: 'active' }], data }
}

function act(chain: SimulatedChain<Eos>, action: Action): { txHash: string } {
  const view = chain.view()
  // One that is not undone any more: so that a reorganisation does not make the transaction void.
  const { height, seal } = view.block(irreversibleHeight(view)) ?? chain.head
  const transaction = Transaction.from({
    expiration: new Date(nextTimeMs(chain) + LIFETIME_MS).toISOString().slice(0, 19),
    ref_block_num: height & 0xffff,
    ref_block_prefix: referencePrefix(seal.hash),
    // Two payments of the same amount are two payments.
    max_net_usage_words: 1000 + randomBytes(3).readUIntBE(0, 3),
    context_free_actions: [],
    actions: [{ ...action, authorization: [...action.authorization] }],
  })
  const signatures = [key.signDigest(transaction.signingDigest(CHAIN_ID))]
  const packed = PackedTransaction.fromSigned(SignedTransaction.from({ ...transaction, signatures }), 0)
  const tx = decodeTransaction(Serializer.objectify(packed) as Packed, CHAIN_ID)
  accept(chain, tx)
  return { txHash: tx.id }
}
