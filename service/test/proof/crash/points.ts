import type { ChainId } from '../../../src/domain/catalog/networks.ts'

/** A role whose processes are killed. */
export type Role = 'api' | 'watcher' | 'engine' | 'signer'

/** One call of an exported function, as it is seen at a point. */
export type Call = { readonly args: readonly unknown[]; readonly result?: unknown }

/** Where in the code a point is: before or after calls of an exported function, or of a method of what it gives back. */
export type Place = {
  /** Below service/src. */
  readonly file: string
  readonly name: string
  readonly method?: string
  readonly when: 'before' | 'after'
  /** Left out: every call. */
  readonly only?: (call: Call) => boolean
}

/** A named moment in the life of an order at which a process, or PostgreSQL under it, is killed. */
export type Point = {
  readonly name: string
  readonly role: Role
  readonly places: readonly Place[]
  /** Nobody comes to it but where this chain is paid out on. */
  readonly chain?: ChainId
}

const apply = 'engine/apply.ts apply'
/** What the watcher tells an order of: several facts at once. */
const applyInTurn = 'engine/apply.ts applyInTurn'
const insertFact = 'db/books.ts insertFact'

const NOT_SENT = 'signed bytes are committed, not sent'
const NOT_NOTED = 'the network has the bytes, nobody noted it'

/** Every point is named by what is done already and what is not. */
export const points: readonly Point[] = [
  point('api', 'an order is made, not written', before('db/new_orders.ts insertNewOrders')),
  point('api', 'an order is committed, not answered', after('db/new_orders.ts insertNewOrders')),
  point('api', 'an action is written, not committed', after(insertFact, isFact('ActionChosen'))),
  point(
    'api',
    'an action is committed, not answered',
    after('engine/desks/emergency_desk.ts emergencyDesk chooseAction'),
  ),

  point('watcher', 'a lease is taken', after('db/leases.ts takeLease', gave)),
  point('watcher', 'a block is begun, not committed', after('db/chain_heads.ts beginBlock')),
  point('watcher', 'a block is begun, nothing of it is told', before(applyInTurn, tellsOfBlock)),
  point(
    'watcher',
    'a deposit of a block is written, not committed',
    after(insertFact, isFact('DepositSeen')),
  ),
  point('watcher', 'a deposit of a block is told, the next one is not', after(applyInTurn, tellsOfBlock)),
  point('watcher', 'a block is told, the head has not moved', before('db/chain_heads.ts advanceHead')),
  point(
    'watcher',
    'the head has moved, not committed',
    after('db/chain_heads.ts advanceHead', isInTransaction),
  ),
  point('watcher', 'a confirmation is written, not committed', after(insertFact, isFact('DepositConfirmed'))),
  point(
    'watcher',
    'a confirmation is told, the next one is not',
    after(applyInTurn, tells('DepositConfirmed')),
  ),
  point(
    'watcher',
    'a deposit that left its block is told, the head has not gone back',
    after(applyInTurn, tells('DepositUnmined')),
  ),
  point('watcher', 'the head goes back, not committed', after('db/chain_heads.ts rewindHead')),

  point('engine', 'addresses are derived, not stored', before('db/addresses.ts insertAddresses')),
  point('engine', 'an exchange is written, not committed', after(insertFact, isFact('ExchangePriced'))),
  point('engine', 'a payout is planned, not committed', after('db/outflows.ts planOutflow')),
  point('engine', 'an exchange is settled, its payout is due', after(apply, isTold('ExchangePriced'))),
  point('engine', 'outflows are claimed', after('db/claim_outflows.ts claimOutflows', gaveSome)),
  point('engine', 'a nonce is taken, not committed', after('db/nonces.ts takeNonce')),
  point('engine', 'coins are taken, not committed', after('db/coins.ts markSpent')),
  point('engine', 'a draft is written, not committed', after('db/attempts.ts insertAttempt')),
  point(
    'engine',
    'a draft is committed, not signed',
    before('signer/socket/socket_client.ts socketSigner sign'),
  ),
  point(
    'engine',
    'signed bytes are received, not stored',
    after('signer/socket/socket_client.ts socketSigner sign'),
  ),
  point('engine', 'signed bytes are stored, not committed', after('db/attempts.ts storeSignedBytes')),
  point('engine', NOT_SENT, ...coinsAndNonces('before')),
  point('engine', NOT_NOTED, ...coinsAndNonces('after')),
  ...broadcastsElsewhere(NOT_SENT, 'before'),
  ...broadcastsElsewhere(NOT_NOTED, 'after'),
  point('engine', 'an answer of the network is noted, not committed', after('db/attempts.ts storeAnswer')),
  point('engine', 'a sent payout is told, its worker holds it', after(apply, isTold('PayoutBroadcast'))),
  point(
    'engine',
    'the end of a payout is written, not committed',
    after(insertFact, isFact('PayoutConfirmed')),
  ),
  point('engine', 'the end of a payout is told', after(apply, isTold('PayoutConfirmed'))),
  point('engine', 'an outflow is about to be let go', before('db/claim_outflows.ts postponeOutflow')),

  point(
    'signer',
    'a transaction is signed, not stored',
    before('db/signed_transactions.ts signedTransactions insertOnce'),
  ),
  point(
    'signer',
    'a signature is stored, not answered',
    after('db/signed_transactions.ts signedTransactions insertOnce'),
  ),
  point(
    'signer',
    'addresses are derived, not answered',
    after('signer/local_signer.ts localSigner addresses'),
  ),
]

/**
 * Around every COMMIT of every role, and around every write that commits by itself. What is in flight has left us, and
 * nobody knows whether it arrived.
 */
export const commitMoments = [
  'a COMMIT is not sent',
  'a COMMIT is in flight',
  'a COMMIT is answered',
] as const

function point(role: Role, name: string, ...places: readonly Place[]): Point {
  return { role, name, places }
}

function place(where: string, when: Place['when'], only?: Place['only']): Place {
  const [file = '', name = '', method] = where.split(' ')
  return { file, name, when, ...(method !== undefined && { method }), ...(only && { only }) }
}

function before(where: string, only?: Place['only']): Place {
  return place(where, 'before', only)
}

function after(where: string, only?: Place['only']): Place {
  return place(where, 'after', only)
}

function coinsAndNonces(when: Place['when']): readonly Place[] {
  return ['chains/bitcoin/index.ts bitcoin broadcast', 'chains/evm/index.ts evm broadcast'].map((where) =>
    place(where, when),
  )
}

/** Most payouts go elsewhere: only points of their own are sure to be come to on these. */
function broadcastsElsewhere(name: string, when: Place['when']): readonly Point[] {
  const connectors = { XRP: 'xrp', XLM: 'stellar', TRX: 'tron', EOS: 'eos', SOL: 'solana' } as const
  return Object.entries(connectors).map(([chain, connector]) => ({
    ...point(
      'engine',
      `${name}, on ${chain}`,
      place(`chains/${connector}/index.ts ${connector} broadcast`, when),
    ),
    chain: chain as keyof typeof connectors,
  }))
}

type FactLike = { readonly kind?: string; readonly block?: unknown }

/** A fact that `apply` is told. */
function isTold(kind: string): Place['only'] {
  return ({ args }) => (args[3] as FactLike).kind === kind
}

/** Facts that `applyInTurn` is told. */
function factsOf({ args }: Call): readonly FactLike[] {
  return (args[2] as readonly { readonly fact: FactLike }[]).map(({ fact }) => fact)
}

function tells(kind: string): Place['only'] {
  return (call) => factsOf(call).some((fact) => fact.kind === kind)
}

function tellsOfBlock(call: Call): boolean {
  return factsOf(call).some(({ kind, block }) => kind === 'DepositSeen' && block !== null)
}

/** A fact that is written inside `apply`. */
function isFact(kind: string): Place['only'] {
  return ({ args }) => (args[2] as FactLike).kind === kind
}

/** A block that brought nothing is noted by a statement that commits by itself. */
function isInTransaction({ args: [sql] }: Call): boolean {
  return !('transaction' in (sql as object))
}

function gave({ result }: Call): boolean {
  return result !== null
}

function gaveSome({ result }: Call): boolean {
  return (result as readonly unknown[]).length > 0
}
