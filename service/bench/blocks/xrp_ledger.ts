import { encodeAccountID } from 'ripple-address-codec'
import type { Chance } from '../../test/harness/chance.ts'
import { OWN_ACCOUNT, ownTag, paidIn } from './own_addresses.ts'

/** What a rippled answers to `ledger`, as JSON text: with everything in it, and the header alone. */
export type XrpLedger = {
  readonly hash: string
  readonly whole: string
  readonly header: string
  /** What changed our account last, as its entry in the ledger names it. */
  readonly thread: Thread
}

type Thread = { readonly PreviousTxnID: string; readonly PreviousTxnLgrSeq: number }

/** The index of our account's entry. */
const OWN_ENTRY = '31CCE9D28412FF973E9AB6D0FA219BACF19687D9A2456A0C2ABC3280E9D47E37'

/**
 * Twice what a busy month has: 50.6 million transactions in September 2024
 * (https://dev.to/enchstyle/xrpl-activity-report-september-2024-5h3b), of 22,493 ledgers a day
 * (https://devnull.network/blog/2020/07/02/xrp-2020-quarter-2.html), are 75 in each.
 */
const TRANSACTIONS = 200

/** People, exchanges and makers are met again and again. */
const ACCOUNTS = 1_500

type Json = Record<string, unknown>

/**
 * A validated ledger as mainnet has them: offers of makers above all, then payments, most of them to exchanges and so with
 * a tag, a few tokens along trust lines, a few failures; each with what it changed.
 */
export function makeXrpLedger(chance: Chance, parentHash: string, height: number): XrpLedger {
  const accounts = Array.from({ length: ACCOUNTS }, () => encodeAccountID(chance.bytes(20)))
  const ours = paidIn(height).map((index) =>
    payment(chance, accounts, { Destination: OWN_ACCOUNT.XRP, DestinationTag: ownTag(index) }),
  )
  const others = Array.from({ length: TRANSACTIONS - ours.length }, () => someTransaction(chance, accounts))
  let thread: Thread = { PreviousTxnID: hex(chance, 32), PreviousTxnLgrSeq: height - 1 }
  const transactions = chance.shuffled([...others, ...ours]).map(({ metaData, ...tx }, index) => {
    const hash = hex(chance, 32)
    const meta = metaData as Meta
    const AffectedNodes = meta.AffectedNodes.map((node) => threaded(node, thread))
    if (tx.Destination === OWN_ACCOUNT.XRP) thread = { PreviousTxnID: hash, PreviousTxnLgrSeq: height }
    return {
      ...tx,
      SigningPubKey: `03${hex(chance, 32)}`,
      TxnSignature: `3045${hex(chance, 69)}`,
      hash,
      metaData: { ...meta, AffectedNodes, TransactionIndex: index },
    }
  })
  const hash = hex(chance, 32)
  const header = headerOf(chance, { hash, parentHash, height })
  const result = (ledger: Json) =>
    JSON.stringify({ ledger, ledger_hash: hash, ledger_index: height, validated: true, status: 'success' })
  return { hash, header: result(header), whole: result({ ...header, transactions }), thread }
}

type Meta = { readonly AffectedNodes: readonly Json[] }

/** The entry of our account names what changed it before. */
function threaded({ ModifiedNode, ...node }: Json, thread: Thread): Json {
  if (ModifiedNode === undefined) return node
  const changed = ModifiedNode as { readonly FinalFields: Json }
  const isOurs = changed.FinalFields.Account === OWN_ACCOUNT.XRP
  return { ModifiedNode: isOurs ? { ...changed, LedgerIndex: OWN_ENTRY, ...thread } : changed }
}

function headerOf(
  chance: Chance,
  {
    hash,
    parentHash,
    height,
  }: { readonly hash: string; readonly parentHash: string; readonly height: number },
): Json {
  const closeTime = 853_315_200 + 4 * height
  return {
    account_hash: hex(chance, 32),
    close_flags: 0,
    close_time: closeTime,
    close_time_human: '2027-Jan-15 08:00:00.000000000 UTC',
    close_time_resolution: 10,
    closed: true,
    ledger_hash: hash,
    ledger_index: String(height),
    parent_close_time: closeTime - 4,
    parent_hash: parentHash,
    total_coins: '99985000000000000',
    transaction_hash: hex(chance, 32),
  }
}

function someTransaction(chance: Chance, accounts: readonly string[]): Json {
  const dice = chance.below(100)
  if (dice < 50) return offer(chance, accounts)
  if (dice < 58) return cancel(chance, accounts)
  if (dice < 90) {
    const isTagged = chance.below(100) < 70
    return payment(chance, accounts, {
      Destination: chance.pick(accounts),
      ...(isTagged && { DestinationTag: chance.below(2 ** 31) }),
    })
  }
  return tokenPayment(chance, accounts)
}

function common(chance: Chance, type: string, account: string): Json {
  return {
    Account: account,
    Fee: String(chance.between(10, 40)),
    Flags: 2_147_483_648,
    LastLedgerSequence: chance.between(90_000_000, 99_000_000),
    Sequence: chance.between(60_000_000, 99_000_000),
    TransactionType: type,
  }
}

type Payee = { readonly Destination: string; readonly DestinationTag?: number }

function payment(chance: Chance, accounts: readonly string[], to: Payee): Json {
  const from = chance.pick(accounts)
  const drops = chance.between(1_000_000, 2 ** 31)
  const hasFailed = to.Destination !== OWN_ACCOUNT.XRP && chance.below(100) < 4
  const sender = changedAccount(chance, from, hasFailed ? -12 : -drops - 12)
  const nodes = hasFailed ? [sender] : [sender, changedAccount(chance, to.Destination, drops)]
  return {
    ...common(chance, 'Payment', from),
    Amount: String(drops),
    DeliverMax: String(drops),
    ...to,
    metaData: {
      AffectedNodes: nodes,
      TransactionResult: hasFailed ? 'tecUNFUNDED_PAYMENT' : 'tesSUCCESS',
      ...(!hasFailed && { delivered_amount: String(drops) }),
    },
  }
}

function tokenPayment(chance: Chance, accounts: readonly string[]): Json {
  const [from, to, issuer] = [chance.pick(accounts), chance.pick(accounts), chance.pick(accounts)]
  const amount = { currency: 'USD', issuer, value: `${chance.below(100_000)}.${chance.between(1, 99_999)}` }
  return {
    ...common(chance, 'Payment', from),
    Amount: amount,
    DeliverMax: amount,
    Destination: to,
    SendMax: amount,
    metaData: {
      AffectedNodes: [
        changedAccount(chance, from, -12),
        changedLine(chance, from, issuer),
        changedLine(chance, to, issuer),
      ],
      TransactionResult: 'tesSUCCESS',
      delivered_amount: amount,
    },
  }
}

/** One in three meets others at once: XRP and tokens change hands. */
function offer(chance: Chance, accounts: readonly string[]): Json {
  const maker = chance.pick(accounts)
  const issuer = chance.pick(accounts)
  const TakerGets = String(chance.between(1_000_000, 2 ** 31))
  const TakerPays = { currency: 'USD', issuer, value: `${chance.below(10_000)}.${chance.between(1, 99_999)}` }
  const crossed = chance.below(3) === 0 ? chance.between(1, 3) : 0
  const trades = Array.from({ length: crossed }, () => {
    const other = chance.pick(accounts)
    return [
      changedAccount(chance, other, chance.between(1_000, 2 ** 30)),
      changedLine(chance, other, issuer),
      entry(chance, 'ModifiedNode', 'Offer', { Account: other, TakerGets, TakerPays, Flags: 0 }),
    ]
  })
  return {
    ...common(chance, 'OfferCreate', maker),
    TakerGets,
    TakerPays,
    metaData: {
      AffectedNodes: [
        changedAccount(chance, maker, crossed > 0 ? -chance.between(1_000, 2 ** 30) : -12),
        entry(chance, 'CreatedNode', 'Offer', { Account: maker, TakerGets, TakerPays }),
        entry(chance, 'ModifiedNode', 'DirectoryNode', { Owner: maker, RootIndex: hex(chance, 32) }),
        entry(chance, 'CreatedNode', 'DirectoryNode', {
          ExchangeRate: hex(chance, 8),
          RootIndex: hex(chance, 32),
          TakerPaysCurrency: hex(chance, 20),
          TakerPaysIssuer: hex(chance, 20),
        }),
        ...trades.flat(),
      ],
      TransactionResult: 'tesSUCCESS',
    },
  }
}

function cancel(chance: Chance, accounts: readonly string[]): Json {
  const maker = chance.pick(accounts)
  return {
    ...common(chance, 'OfferCancel', maker),
    OfferSequence: chance.between(60_000_000, 99_000_000),
    metaData: {
      AffectedNodes: [
        changedAccount(chance, maker, -12),
        entry(chance, 'DeletedNode', 'Offer', { Account: maker, TakerGets: '1000000', Flags: 0 }),
        entry(chance, 'ModifiedNode', 'DirectoryNode', { Owner: maker, RootIndex: hex(chance, 32) }),
      ],
      TransactionResult: 'tesSUCCESS',
    },
  }
}

function changedAccount(chance: Chance, account: string, drops: number): Json {
  const before = chance.between(2 ** 31, 2 ** 40)
  const sequence = chance.between(60_000_000, 99_000_000)
  return entry(
    chance,
    'ModifiedNode',
    'AccountRoot',
    { Account: account, Balance: String(before + drops), Flags: 0, OwnerCount: 3, Sequence: sequence },
    { Balance: String(before), Sequence: sequence - 1 },
  )
}

function changedLine(chance: Chance, one: string, other: string): Json {
  const units = (value: number) => ({
    currency: 'USD',
    issuer: 'rrrrrrrrrrrrrrrrrrrrBZbvji',
    value: String(value),
  })
  const limit = (issuer: string, value: string) => ({ currency: 'USD', issuer, value })
  return entry(
    chance,
    'ModifiedNode',
    'RippleState',
    {
      Balance: units(chance.below(100_000)),
      Flags: 1_114_112,
      HighLimit: limit(other, '0'),
      HighNode: '0',
      LowLimit: limit(one, '1000000000'),
      LowNode: '0',
    },
    { Balance: units(chance.below(100_000)) },
  )
}

function entry(chance: Chance, kind: string, type: string, fields: Json, previous: Json | null = null): Json {
  return {
    [kind]: {
      ...(kind === 'CreatedNode' ? { NewFields: fields } : { FinalFields: fields }),
      LedgerEntryType: type,
      LedgerIndex: hex(chance, 32),
      ...(previous !== null && { PreviousFields: previous }),
      ...(kind === 'ModifiedNode' && { PreviousTxnID: hex(chance, 32), PreviousTxnLgrSeq: 95_000_000 }),
    },
  }
}

function hex(chance: Chance, count: number): string {
  return chance.bytes(count).toString('hex').toUpperCase()
}
