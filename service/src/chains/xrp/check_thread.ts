import { createHash } from 'node:crypto'
import { decodeAccountID } from 'ripple-address-codec'
import { type Fields, isObject } from '../replies.ts'
import { askAccount } from './balance.ts'
import type { Ledger } from './ledger.ts'
import { hashIn, integerIn, listIn, objectIn, textIn } from './replies.ts'
import { NoAnswer, type Rpc } from './rpc.ts'

/** The transaction that changed an entry, and the ledger that it is in. */
type Change = { readonly txHash: string; readonly height: number }

/**
 * Rejects unless a ledger's transactions are told with every one that changed `account`. The entry of an account names the last
 * transaction that changed it, and that one's metadata the one before it (rippled, ApplyStateTable::threadItem;
 * https://xrpl.org/docs/references/protocol/ledger-data/ledger-entry-types/accountroot). Followed back to an earlier ledger, none may be
 * missing. Chosen over the hash of all transactions (`transaction_hash`): to make it of what is told, every field of every stranger's
 * transaction would have to be known here, and the first one of a new amendment would stop the chain.
 */
export async function checkThread(rpc: Rpc, account: string, ledger: Ledger): Promise<void> {
  // The header has said that there were none.
  if (ledger.transactions.length === 0) return
  const told = await askAccount(rpc, account, { ledger_hash: ledger.hash })
  // Nothing has come to an account that is not there yet.
  if (told === null) return
  const unseen = new Map(ledger.transactions.map(byHash))
  const entry = entryOf(account)
  let last: Change | null = changeNamed(objectIn(told.account_data, 'account_info account_data'))
  while (last !== null && last.height >= ledger.height) {
    const tx = unseen.get(last.txHash)
    if (tx === undefined)
      throw new NoAnswer('ledger transactions', `${last.txHash} of ${account} is not among them`)
    // Each is once in the thread, so that a wrong one ends as well.
    unseen.delete(last.txHash)
    last = changeBefore(tx, entry)
  }
}

function byHash(transaction: unknown): readonly [string, Fields] {
  const tx = objectIn(transaction, 'transaction')
  return [hashIn(tx.hash, 'transaction hash'), tx]
}

/** Null when the transaction made the entry. */
function changeBefore(tx: Fields, entry: string): Change | null {
  const meta = objectIn(tx.metaData ?? tx.meta, 'transaction metaData')
  for (const node of listIn(meta.AffectedNodes, 'AffectedNodes')) {
    const { CreatedNode, ModifiedNode } = objectIn(node, 'AffectedNodes')
    if (isObject(CreatedNode) && CreatedNode.LedgerIndex === entry) return null
    if (isObject(ModifiedNode) && ModifiedNode.LedgerIndex === entry) return changeNamed(ModifiedNode)
  }
  throw new NoAnswer('ledger', `${textIn(tx.hash, 'transaction hash')} does not say what it changed`)
}

function changeNamed({ PreviousTxnID, PreviousTxnLgrSeq }: Fields): Change {
  return {
    txHash: hashIn(PreviousTxnID, 'PreviousTxnID'),
    height: integerIn(PreviousTxnLgrSeq, 'PreviousTxnLgrSeq'),
  }
}

/** Before an account's id, in what the index of its entry is a hash of: https://xrpl.org/docs/references/protocol/ledger-data/common-fields#account-ids */
const ACCOUNT_SPACE = Buffer.from('0061', 'hex')

/** The index of an account's entry. Metadata names an entry by it, also where it leaves the fields out. */
function entryOf(account: string): string {
  const digest = createHash('sha512').update(ACCOUNT_SPACE).update(decodeAccountID(account)).digest('hex')
  return digest.slice(0, 64).toUpperCase()
}
