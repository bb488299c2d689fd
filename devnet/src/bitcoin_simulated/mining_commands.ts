import { draftOn } from '../simulated/state.ts'
import { descriptorScript } from './chain_commands.ts'
import { type BitcoinNode, type Command, hashIn, integerIn, listIn, textIn } from './node.ts'
import { codes, NodeError } from './node_error.ts'
import { formProblem, MIN_RELAY_SATS } from './policy.ts'
import { inputsProblem, scriptsProblem, spend, spentBy } from './rules.ts'
import { scriptOfAddress } from './scripts.ts'
import { type BitcoinTx, decodedOf } from './transaction.ts'
import { decode } from './transaction_commands.ts'

/** What regtest lets a caller do to the chain. */
export const miningCommands: Readonly<Record<string, Command>> = {
  generatetoaddress: (node, params) => {
    const count = integerIn(params, 0, 'nblocks')
    const script = scriptOfAddress(textIn(params, 1, 'address'))
    if (script === undefined) throw new NodeError(codes.notFound, 'Error: Invalid address')
    return generate(node, count, script)
  },
  generatetodescriptor: (node, params) =>
    generate(node, integerIn(params, 0, 'num_blocks'), descriptorScript(params[1])),
  generateblock: (node, params) => {
    const output = textIn(params, 0, 'output')
    const script = scriptOfAddress(output) ?? orUndefined(() => descriptorScript(output))
    if (script === undefined) throw new NodeError(codes.notFound, 'Error: Invalid address or descriptor')
    const txs = listIn(params, 1, 'transactions').map((given) => waitingOrNew(node, String(given)))
    checkTogether(node, txs)
    for (const tx of txs) node.chain.submit(tx)
    const ids = new Set(txs.map(({ id }) => id))
    mineTo(node, script, ({ id }) => ids.has(id))
    // Whoever waits and spends the same waits in vain.
    node.pool.prune()
    return { hash: node.chain.head.seal.hash }
  },
  invalidateblock: (node, params) => {
    const block = node.chain.view().blockOf(hashIn(params, 0, 'blockhash'))
    if (block === undefined) throw new NodeError(codes.notFound, 'Block not found')
    node.chain.undo(node.chain.head.height - block.height + 1)
    node.pool.prune()
    return null
  },
}

function generate(node: BitcoinNode, count: number, script: Uint8Array): string[] {
  return Array.from({ length: count }, () => {
    mineTo(node, script, (tx) => isWorthIt(node, tx))
    return node.chain.head.seal.hash
  })
}

function mineTo({ chain, miner }: BitcoinNode, script: Uint8Array, pick: (tx: BitcoinTx) => boolean): void {
  miner.payee = script
  try {
    chain.mine(1, pick)
  } finally {
    miner.payee = null
  }
}

/** Not one whose fee was talked down; whoever spends it waits with it. */
function isWorthIt({ pool }: BitcoinNode, tx: BitcoinTx): boolean {
  const entry = pool.entries.get(tx.id)
  if (entry === undefined) return false
  const counted = entry.spent.feeSats + (pool.priorities.get(tx.id) ?? 0n)
  return counted * 1000n >= MIN_RELAY_SATS * BigInt(entry.decoded.vsize)
}

function waitingOrNew({ pool }: BitcoinNode, given: string): BitcoinTx {
  const waiting = pool.entries.get(given)
  if (waiting !== undefined) return waiting.tx
  if (/^[0-9a-f]{64}$/.test(given))
    throw new NodeError(codes.notFound, `Transaction ${given} not in mempool.`)
  const { txid } = decode(
    given,
    `Transaction decode failed for ${given}. Make sure the tx has at least one input.`,
  )
  return pool.entries.get(txid)?.tx ?? { id: txid, hex: given, timeMs: Date.now() }
}

/** As a block would be checked: without what a node merely does not relay. */
function checkTogether({ chain }: BitcoinNode, txs: readonly BitcoinTx[]): void {
  const draft = draftOn(chain.view().state)
  const height = chain.head.height + 1
  const refuse = (why: string) => new NodeError(codes.transaction, `TestBlockValidity failed: ${why}`)
  for (const tx of txs) {
    const decoded = decodedOf(tx)
    const form = formProblem(decoded)
    if (form !== undefined) throw refuse(form)
    const spent = spentBy(decoded, draft)
    if (spent === undefined)
      throw refuse(
        `bad-txns-inputs-missingorspent, CheckTxInputs: inputs missing/spent in transaction ${tx.id}`,
      )
    const inputs = inputsProblem(decoded, spent, height)
    if (inputs !== undefined) throw refuse(inputs)
    const script = scriptsProblem(tx, spent)
    if (script !== undefined) throw refuse(`block-script-verify-flag-failed (${script}`)
    spend(draft, decoded, height)
  }
}

function orUndefined<T>(work: () => T): T | undefined {
  try {
    return work()
  } catch {
    return undefined
  }
}
