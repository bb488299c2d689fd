import { Name, PublicKey, Serializer, Transaction } from '@wharfkit/antelope'
import type { View } from '../simulated/chain.ts'
import { abiFor } from './abis.ts'
import { headerJson, onblockJson, receiptJson, timeText, tracedJson } from './answers.ts'
import { requiredKeys } from './authority.ts'
import { type Eos, PRODUCER } from './blocks.ts'
import { type EosNode, OtherStatus, type Params } from './command.ts'
import { SYSTEM_ACCOUNT, TOKEN_CONTRACT } from './contracts.ts'
import { actionsOf, sha256 } from './decode_transaction.ts'
import { type Account, type Authority, keys, readAccount, readBalance, readToken } from './entries.ts'
import { Refusal } from './refusal.ts'
import { type EosBlock, irreversibleHeight } from './rules.ts'
import { sendTransaction, sendTransaction2 } from './submit.ts'
import { writeAsset } from './token.ts'

type Command = (node: EosNode, params: Params) => unknown

/** By path, after `/v1/`. */
export const commands: Readonly<Record<string, Command>> = {
  'chain/get_info': getInfo,
  'chain/get_block': (node, params) => {
    const block = blockOf(node.told(), params.block_num_or_id)
    return { ...headerJson(block), new_producers: null, transactions: block.included.map(receiptJson) }
  },
  'chain/get_block_info': (node, params) => {
    const block = blockOf(node.told(), params.block_num)
    return { ...headerJson(block), ref_block_num: block.height & 0xffff }
  },
  'chain/get_account': getAccount,
  'chain/get_currency_balance': getBalance,
  'chain/get_currency_stats': getStats,
  'chain/get_abi': getAbi,
  'chain/get_raw_abi': getRawAbi,
  'chain/get_required_keys': getRequiredKeys,
  'chain/get_transaction_status': getStatus,
  'chain/push_transaction': sendTransaction,
  'chain/send_transaction': sendTransaction,
  'chain/send_transaction2': sendTransaction2,
  'trace_api/get_block': traceBlock,
  'trace_api/get_transaction_trace': traceTransaction,
}

function getInfo(node: EosNode): object {
  const view = node.told()
  const { head } = view
  const irreversible = view.block(irreversibleHeight(view)) ?? head
  const version = 'v5.0.0'
  return {
    server_version: 'cambist0',
    chain_id: node.chainId(),
    head_block_num: head.height,
    last_irreversible_block_num: irreversible.height,
    last_irreversible_block_id: irreversible.seal.hash,
    head_block_id: head.seal.hash,
    head_block_time: timeText(head.timeMs),
    head_block_producer: PRODUCER,
    virtual_block_cpu_limit: 200_000_000,
    virtual_block_net_limit: 1_048_576_000,
    block_cpu_limit: 200_000,
    block_net_limit: 1_048_576,
    server_version_string: version,
    fork_db_head_block_num: head.height,
    fork_db_head_block_id: head.seal.hash,
    server_full_version_string: `${version}-simulated`,
    total_cpu_weight: '0',
    total_net_weight: '0',
    earliest_available_block_num: 1,
    last_irreversible_block_time: timeText(irreversible.timeMs),
  }
}

function blockOf(view: View<Eos>, asked: unknown): EosBlock {
  const text = String(asked)
  const found = /^\d{1,10}$/.test(text) ? view.block(Number(text)) : view.blockOf(text.toLowerCase())
  if (found === undefined) throw new Refusal('unknown_block_exception', `Could not find block: ${text}`)
  return found
}

function nameOf(given: unknown): string {
  if (typeof given !== 'string' || !Name.pattern.test(given) || given === '')
    throw new Refusal('name_type_exception', `Invalid name: ${String(given)}`)
  return given.replace(/\.+$/, '')
}

function accountOf(view: View<Eos>, given: unknown): { name: string; account: Account } {
  const name = nameOf(given)
  const account = readAccount(view.state, name)
  if (account === undefined) throw new Refusal('unspecified', `unknown key (eosio::chain::name): ${name}`)
  return { name, account }
}

function getAccount(node: EosNode, params: Params): object {
  const view = node.told()
  const { name, account } = accountOf(view, params.account_name)
  const held = readBalance(view.state, TOKEN_CONTRACT, name, 'EOS')
  const createdAt = timeText(account.createdAtMs)
  const limit = {
    used: 0,
    available: 1_000_000_000,
    max: 1_000_000_000,
    last_usage_update_time: createdAt,
    current_used: 0,
  }
  return {
    account_name: name,
    head_block_num: view.head.height,
    head_block_time: timeText(view.head.timeMs),
    privileged: name === SYSTEM_ACCOUNT,
    last_code_update: timeText(0),
    created: createdAt,
    ...(held && { core_liquid_balance: writeAsset(held.units, 4, 'EOS') }),
    ram_quota: -1,
    net_weight: -1,
    cpu_weight: -1,
    net_limit: limit,
    cpu_limit: limit,
    ram_usage: 3000,
    permissions: [
      {
        perm_name: 'active',
        parent: 'owner',
        required_auth: authorityJson(account.active),
        linked_actions: [],
      },
      { perm_name: 'owner', parent: '', required_auth: authorityJson(account.owner), linked_actions: [] },
    ],
    total_resources: null,
    self_delegated_bandwidth: null,
    refund_request: null,
    voter_info: null,
    rex_info: null,
  }
}

/** Nodes write keys in their older form. */
function authorityJson(authority: Authority): object {
  const older = (key: string) => PublicKey.from(key).toLegacyString()
  return { ...authority, keys: authority.keys.map(({ key, weight }) => ({ key: older(key), weight })) }
}

function getBalance(node: EosNode, { code, account, symbol }: Params): string[] {
  const view = node.told()
  const { name: contract } = accountOf(view, code)
  const owner = nameOf(account)
  const codes = typeof symbol === 'string' ? [symbol.toUpperCase()] : heldCodes(view, contract, owner)
  return codes.flatMap((held) => {
    const balance = readBalance(view.state, contract, owner, held)
    const token = readToken(view.state, contract, held)
    return balance && token ? [writeAsset(balance.units, token.precision, held)] : []
  })
}

function heldCodes({ state }: View<Eos>, contract: string, owner: string): string[] {
  const prefix = keys.balance(contract, owner, '')
  return state.keys(prefix).map((key) => key.slice(prefix.length))
}

function getStats(node: EosNode, { code, symbol }: Params): object {
  const { name } = accountOf(node.told(), code)
  const asked = String(symbol).toUpperCase()
  const token = readToken(node.told().state, name, asked)
  if (token === undefined) return {}
  const written = (units: bigint) => writeAsset(units, token.precision, asked)
  const stats = { supply: written(token.supply), max_supply: written(token.supplyMax), issuer: token.issuer }
  return { [asked]: stats }
}

function getAbi(node: EosNode, params: Params): object {
  const { name, account } = accountOf(node.told(), params.account_name)
  if (account.contract === undefined) return { account_name: name }
  return { account_name: name, abi: Serializer.objectify(abiFor(account.contract)) }
}

function getRawAbi(node: EosNode, params: Params): object {
  const { name, account } = accountOf(node.told(), params.account_name)
  const hex =
    account.contract === undefined ? '' : Serializer.encode({ object: abiFor(account.contract) }).hexString
  return {
    account_name: name,
    code_hash:
      account.contract === undefined
        ? '00'.repeat(32)
        : sha256(Buffer.from(account.contract).toString('hex')),
    abi_hash: hex === '' ? '00'.repeat(32) : sha256(hex),
    abi: Buffer.from(hex, 'hex').toString('base64'),
  }
}

function getRequiredKeys(node: EosNode, { transaction, available_keys }: Params): object {
  const actions = actionsOf(Transaction.from(transaction as Transaction))
  const given = (available_keys as string[]).map((key) => ({ key, full: String(PublicKey.from(key)) }))
  const needed = requiredKeys(
    actions,
    given.map(({ full }) => full),
    node.told().state,
  )
  return { required_keys: given.filter(({ full }) => needed.includes(full)).map(({ key }) => key) }
}

/** https://docs.antelope.io/docs/latest/api-reference: says UNKNOWN of what expired or was lost. */
function getStatus(node: EosNode, { id }: Params): object {
  const view = node.told()
  const irreversible = view.block(irreversibleHeight(view)) ?? view.head
  const found = view.find(String(id).toLowerCase())
  const isWaiting = node.chain.waiting.some((tx) => tx.id === String(id).toLowerCase())
  const inBlock = found && {
    block_number: found.block.height,
    block_id: found.block.seal.hash,
    block_timestamp: timeText(found.block.timeMs),
    expiration: timeText(found.tx.expirationMs),
  }
  // Transactions that ran later than they were sent are not followed, on a real node either.
  const isFollowed = found?.result.status === 'executed' && found.tx.notBeforeMs === undefined
  const state = isFollowed ? stateIn(found.block, irreversible) : undefined
  return {
    state: state ?? (isWaiting ? 'LOCALLY_APPLIED' : 'UNKNOWN'),
    ...(state && inBlock),
    head_number: view.head.height,
    head_id: view.head.seal.hash,
    head_timestamp: timeText(view.head.timeMs),
    irreversible_number: irreversible.height,
    irreversible_id: irreversible.seal.hash,
    irreversible_timestamp: timeText(irreversible.timeMs),
    earliest_tracked_block_id: view.block(1)?.seal.hash,
    earliest_tracked_block_number: 1,
  }
}

function stateIn(block: EosBlock, irreversible: EosBlock): string {
  return block.height > irreversible.height ? 'IN_BLOCK' : 'IRREVERSIBLE'
}

function traceBlock(node: EosNode, { block_num }: Params): object {
  const view = node.told()
  if (!/^\d{1,10}$/.test(String(block_num))) throw notTraced(400, 'Bad or missing block_num')
  const block = view.block(Number(block_num))
  if (block === undefined) throw notTraced(404, 'Block trace missing')
  const parent = view.block(block.height - 1)
  const { hash, transactionMroot, actionMroot } = block.seal
  return {
    id: hash,
    number: block.height,
    previous_id: block.parentHash,
    status: block.height <= irreversibleHeight(view) ? 'irreversible' : 'pending',
    timestamp: `${timeText(block.timeMs)}Z`,
    producer: PRODUCER,
    transaction_mroot: transactionMroot,
    action_mroot: actionMroot,
    schedule_version: 0,
    transactions: [
      ...(parent === undefined ? [] : [onblockJson(block, parent)]),
      ...block.included.map((item) => tracedJson(item, block, view.state)),
    ],
  }
}

function traceTransaction(node: EosNode, { id }: Params): object {
  const view = node.told()
  const found = node.troubles.now.isUnindexed ? undefined : view.find(String(id).toLowerCase())
  if (found === undefined)
    throw notTraced(404, 'Trace API: transaction id missing in the transaction id log files')
  return tracedJson(found, found.block, view.state)
}

function notTraced(code: number, message: string): OtherStatus {
  return new OtherStatus(code, { code, message, error: { code: 0, name: '', what: '', details: [] } })
}
