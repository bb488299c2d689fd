import { accountTransactions } from './account_tx.ts'
import { type ApiVersion, fieldsJson, inLedgerJson, ledgerJson, transactionJson } from './answers.ts'
import { accountNotFound, accountOf, ledgerOf, nameOf, stateOf } from './asked_ledger.ts'
import { type Answer, CommandError, type Params, type XrpNode } from './command.ts'
import { accountFlags, isLower, readAccount, readAll } from './entries.ts'
import { BASE_FEE, RESERVE_BASE, RESERVE_INCREMENT } from './reserves.ts'
import type { Ledger } from './rules.ts'
import { submit } from './submit.ts'

type Command = (node: XrpNode, params: Params, version: ApiVersion) => Answer

export const commands: Readonly<Record<string, Command>> = {
  ping: () => ({}),
  server_info: (node) => ({ info: serverInfo(node) }),
  server_state: (node) => ({ state: serverState(node) }),
  fee: readFee,
  ledger_current: (node) => ({ ledger_current_index: node.told().head.height + 1 }),
  ledger_closed: (node) => ({
    ledger_hash: node.told().head.seal.hash,
    ledger_index: node.told().head.height,
  }),
  ledger: readLedger,
  account_info: accountInfo,
  account_lines: accountLines,
  account_objects: accountObjects,
  account_tx: accountTransactions,
  tx: findTransaction,
  submit,
}

function serverInfo(node: XrpNode): Answer {
  const { head } = node.told()
  return {
    ...aboutServer(node),
    load_factor: 1,
    validated_ledger: {
      age: Math.max(0, Math.round((Date.now() - head.timeMs) / 1000)),
      base_fee_xrp: Number(BASE_FEE) / 1e6,
      hash: head.seal.hash,
      reserve_base_xrp: Number(RESERVE_BASE) / 1e6,
      reserve_inc_xrp: Number(RESERVE_INCREMENT) / 1e6,
      seq: head.height,
    },
  }
}

function serverState(node: XrpNode): Answer {
  const { head } = node.told()
  return {
    ...aboutServer(node),
    load_base: 256,
    load_factor: 256,
    validated_ledger: {
      base_fee: Number(BASE_FEE),
      close_time: head.seal.close_time,
      hash: head.seal.hash,
      reserve_base: Number(RESERVE_BASE),
      reserve_inc: Number(RESERVE_INCREMENT),
      seq: head.height,
    },
  }
}

function aboutServer(node: XrpNode): Answer {
  return {
    build_version: '2.4.0',
    complete_ledgers: completeLedgers(node.told().head),
    network_id: node.networkId(),
    peers: 0,
    server_state: 'full',
    time: new Date().toISOString(),
    uptime: Math.floor((Date.now() - node.startedAtMs) / 1000),
    validation_quorum: 1,
  }
}

export function completeLedgers(head: Ledger): string {
  return `1-${head.height}`
}

function readFee(node: XrpNode): Answer {
  const drops = String(BASE_FEE)
  return {
    current_ledger_size: String(node.chain.waiting.length),
    current_queue_size: '0',
    drops: { base_fee: drops, median_fee: drops, minimum_fee: drops, open_ledger_fee: drops },
    expected_ledger_size: '1000',
    ledger_current_index: node.told().head.height + 1,
    levels: { median_level: '256', minimum_level: '256', open_ledger_level: '256', reference_level: '256' },
    max_queue_size: '20000',
  }
}

function readLedger(node: XrpNode, params: Params, version: ApiVersion): Answer {
  const ledger = ledgerOf(node.told(), params)
  if (ledger === 'open') {
    const { head } = node.told()
    const open = { closed: false, ledger_index: String(head.height + 1), parent_hash: head.seal.hash }
    return { ledger: open, ledger_current_index: head.height + 1, validated: false }
  }
  const listed =
    params.expand === true
      ? ledger.included.map((each) => inLedgerJson(each, ledger, version))
      : ledger.included.map(({ tx }) => tx.id)
  return {
    ledger: { ...ledgerJson(ledger, version), ...(params.transactions === true && { transactions: listed }) },
    ...nameOf(ledger),
  }
}

function accountInfo(node: XrpNode, params: Params): Answer {
  const account = accountOf(params)
  const { state, named } = stateOf(node, params)
  const root = readAccount(state, account)
  if (root === undefined) throw accountNotFound(account, named)
  const has = (flag: number) => (root.Flags & flag) !== 0
  return {
    account_data: root,
    account_flags: {
      defaultRipple: has(accountFlags.defaultRipple),
      depositAuth: has(accountFlags.depositAuth),
      disallowIncomingXRP: has(accountFlags.disallowXrp),
      requireDestinationTag: has(accountFlags.requireDestTag),
    },
    ...(params.queue === true && { queue_data: queueOf(node, account) }),
    ...named,
  }
}

/** Without a list where nothing is queued. */
function queueOf({ chain }: XrpNode, account: string): Answer {
  const queued = chain.waiting.filter(({ fields, held }) => {
    return fields.Account === account && held?.isQueued === true && held.from > chain.head.height + 1
  })
  const transactions = queued.map(({ fields: { Sequence, Fee, LastLedgerSequence } }) => {
    return { seq: Sequence, fee: Fee, ...(LastLedgerSequence !== undefined && { LastLedgerSequence }) }
  })
  return { txn_count: queued.length, ...(queued.length > 0 && { transactions }) }
}

function accountLines(node: XrpNode, params: Params): Answer {
  const account = accountOf(params)
  const { state, named } = stateOf(node, params)
  if (readAccount(state, account) === undefined) throw accountNotFound(account, named)
  const lines = readAll(state, 'RippleState').flatMap(({ entry }) => {
    const [low, high] = [entry.LowLimit, entry.HighLimit]
    if (low.issuer !== account && high.issuer !== account) return []
    const [own, peer] = low.issuer === account ? [low, high] : [high, low]
    const { value } = entry.Balance
    const balance = isLower(account, peer.issuer) || value === '0' ? value : negated(value)
    return [
      {
        account: peer.issuer,
        balance,
        currency: entry.Balance.currency,
        limit: own.value,
        limit_peer: peer.value,
        quality_in: 0,
        quality_out: 0,
      },
    ]
  })
  return { account, lines, ...named }
}

function accountObjects(node: XrpNode, params: Params): Answer {
  const account = accountOf(params)
  const { state, named } = stateOf(node, params)
  const offers = readAll(state, 'Offer').filter(({ entry }) => entry.Account === account)
  const lines = readAll(state, 'RippleState').filter(({ entry }) =>
    [entry.LowLimit.issuer, entry.HighLimit.issuer].includes(account),
  )
  return { account, account_objects: [...offers, ...lines].map(({ entry }) => entry), ...named }
}

function negated(value: string): string {
  return value.startsWith('-') ? value.slice(1) : `-${value}`
}

function findTransaction(node: XrpNode, params: Params, version: ApiVersion): Answer {
  const id = String(params.transaction).toUpperCase()
  const view = node.told()
  const found = view.find(id)
  if (found !== undefined) return transactionJson(found, found.block, version)
  const waiting = node.chain.waiting.find((tx) => tx.id === id)
  const isBehind = view.head.height < node.chain.head.height
  if (waiting === undefined || isBehind) {
    const { min_ledger, max_ledger } = params
    const isRange = typeof min_ledger === 'number' && typeof max_ledger === 'number'
    const more = isRange ? { searched_all: min_ledger >= 1 && max_ledger <= view.head.height } : {}
    throw new CommandError('txnNotFound', 29, 'Transaction not found.', more)
  }
  const fields = fieldsJson(waiting.fields, version)
  if (version === 1) return { ...fields, hash: id, validated: false }
  return { hash: id, tx_json: fields, validated: false }
}
