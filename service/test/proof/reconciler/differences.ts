import pg from 'pg'
import { type Address, encodeAbiParameters, erc20Abi, keccak256, numberToHex } from 'viem'
import { type AssetId, assetOf } from '../../../src/domain/catalog/assets.ts'
import type { ChainId } from '../../../src/domain/catalog/networks.ts'
import type { TestSandbox } from '../../harness/test_sandbox.ts'

/** One unit too much or too little, somewhere in the books or on a chain. */
export type Difference = {
  /** What is bent, for the figures. */
  readonly kind: string
  readonly what: string
  /** Differences that would hide each other, or be told as one, have one of these in common. */
  readonly places: readonly string[]
  /** What the audit has to say about which subject. */
  readonly named: { readonly subject: string; readonly check: string }
  /** What else it may name because of it, beside the places. */
  readonly related?: readonly string[]
  /** The asset by which the reconciler sees it, and what it sees, in ledger units; null: only the audit can. */
  readonly seen: { readonly asset: AssetId; readonly chain: ChainId; readonly units: bigint } | null
  inject(): Promise<void>
  undo(): Promise<void>
}

type Bend = (sign: 1n | -1n) => Promise<void>
type Place = Omit<Difference, 'inject' | 'undo' | 'what' | 'seen'> & {
  readonly bend: Bend
  /** What the reconciler sees when a unit is added. */
  readonly seenUnits: bigint
  readonly asset: AssetId | null
}

export type Superuser = {
  rows<Row extends object>(sql: string, values?: readonly unknown[]): Promise<Row[]>
  /** Changes exactly one row. */
  change(sql: string, values: readonly unknown[]): Promise<void>
  close(): Promise<void>
}

/** Who may do to the books what the service may not. */
export async function openSuperuser(url: string): Promise<Superuser> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  const query = async (sql: string, values: readonly unknown[] = []) => client.query(sql, [...values])
  return {
    rows: async <Row extends object>(sql: string, values?: readonly unknown[]) =>
      (await query(sql, values)).rows as Row[],
    change: async (sql, values) => {
      const { rowCount } = await query(sql, values)
      if (rowCount !== 1) throw new Error(`${rowCount} rows were changed by ${sql} ${JSON.stringify(values)}`)
    },
    close: () => client.end(),
  }
}

/** Every place at which a unit can be added or taken away, both ways. */
export async function findDifferences(sandbox: TestSandbox, superuser: Superuser): Promise<Difference[]> {
  const places = [
    ...(await journalRows(superuser)),
    ...forgedRows(superuser),
    ...(await depositRows(superuser)),
    ...(await outflowRows(superuser)),
    ...(await orderRows(superuser)),
    ...(await houseRows(superuser)),
    ...(await coinRows(superuser)),
    ...(await chainBalances(sandbox, superuser)),
  ]
  return places.flatMap(({ bend, seenUnits, asset, ...place }) =>
    ([1n, -1n] as const).map((sign) => ({
      ...place,
      what: `${sign > 0n ? 'one more' : 'one less'}: ${place.kind} at ${place.places.join(', ')}`,
      seen:
        asset === null || seenUnits === 0n
          ? null
          : { asset, chain: assetOf(asset).chain, units: seenUnits * sign },
      inject: () => bend(sign),
      undo: () => bend(sign === 1n ? -1n : 1n),
    })),
  )
}

type JournalRow = {
  bucket: number
  owner: string
  entry_key: string
  line: number
  asset: AssetId
  debit: string
  credit: string
}

/** Of every row that books a movement; what touches the wallet is seen on the chain, the rest only in its order. */
async function journalRows(superuser: Superuser): Promise<Place[]> {
  const rows = await superuser.rows<JournalRow>(
    `SELECT bucket, owner, entry_key, line, asset, debit, credit FROM journal WHERE units > 1
     ORDER BY owner, entry_key, line`,
  )
  return rows.map(({ bucket, owner, entry_key, line, asset, debit, credit }) => {
    const wallet = debit === 'wallet' ? -1n : credit === 'wallet' ? 1n : 0n
    return {
      kind: wallet === 0n ? 'a row of the journal beside the wallet' : 'a row of the journal of the wallet',
      places: [owner === 'house' ? entry_key : owner, ...(wallet === 0n ? [] : [asset])],
      named: wallet === 0n ? { subject: owner, check: 'balances' } : { subject: asset, check: 'chain' },
      related: [asset, entry_key.replace(/:confirmed(:[^:]+)?$/, '')],
      asset,
      seenUnits: wallet,
      bend: (sign) =>
        superuser.change(
          'UPDATE journal SET units = units + $5 WHERE bucket = $1 AND owner = $2 AND entry_key = $3 AND line = $4',
          [bucket, owner, entry_key, line, sign],
        ),
    }
  })
}

const ASSETS: readonly AssetId[] = [
  'BTC:BTC',
  'ETH:ETH',
  'BNB:BNB',
  'USDT:ERC20',
  'USDC:ERC20',
  'USDT:BEP20',
  'USDC:BEP20',
]

/** A movement that never was: one more is one into the wallet. Taken back by deleting it. */
function forgedRows(superuser: Superuser): Place[] {
  return ASSETS.map((asset) => {
    const key = `forged ${asset}`
    const isThere = async () =>
      (await superuser.rows('SELECT 1 FROM journal WHERE entry_key = $1', [key])).length > 0
    return {
      kind: 'a forged row of the journal',
      places: [asset],
      named: { subject: asset, check: 'chain' },
      asset,
      seenUnits: -1n,
      bend: async (sign) => {
        if (await isThere()) return superuser.change('DELETE FROM journal WHERE entry_key = $1', [key])
        const [debit, credit] = sign > 0n ? ['wallet', 'capital'] : ['capital', 'wallet']
        await superuser.change("INSERT INTO journal VALUES (0, 'house', $1, 1, $2, $3, $4, 1, 1)", [
          key,
          asset,
          debit,
          credit,
        ])
      },
    }
  })
}

/** A deposit that is booked differs from its booking; one that is on its way is looked for on the chain. */
async function depositRows(superuser: Superuser): Promise<Place[]> {
  const rows = await superuser.rows<{ order_id: string; deposit_key: string; asset: AssetId; state: string }>(
    `SELECT order_id, deposit_key, asset, state FROM deposits WHERE state IN ('mined', 'confirmed') ORDER BY deposit_key`,
  )
  return rows.map(({ order_id, deposit_key, asset, state }) => {
    const isBooked = state === 'confirmed'
    return {
      kind: isBooked ? 'a booked deposit' : 'a deposit on its way',
      places: isBooked ? [order_id] : [order_id, asset],
      named: isBooked ? { subject: order_id, check: 'deposits' } : { subject: asset, check: 'chain' },
      asset,
      seenUnits: isBooked ? 0n : -1n,
      bend: (sign) =>
        superuser.change('UPDATE deposits SET units = units + $2 WHERE deposit_key = $1', [
          deposit_key,
          sign,
        ]),
    }
  })
}

async function outflowRows(superuser: Superuser): Promise<Place[]> {
  const rows = await superuser.rows<{ order_id: string; payout_id: string; asset: AssetId; state: string }>(
    `SELECT order_id, payout_id, asset, state FROM outflows WHERE state IN ('broadcast', 'confirmed') ORDER BY payout_id`,
  )
  return rows.map(({ order_id, payout_id, asset, state }) => {
    const isBooked = state === 'confirmed'
    return {
      kind: isBooked ? 'a booked payout' : 'a payout on its way',
      places: isBooked ? [order_id] : [order_id, asset],
      named: isBooked ? { subject: order_id, check: 'outflows' } : { subject: asset, check: 'chain' },
      asset,
      seenUnits: isBooked ? 0n : 1n,
      bend: (sign) =>
        superuser.change('UPDATE outflows SET units = units + $2 WHERE payout_id = $1', [payout_id, sign]),
    }
  })
}

/** Columns of an order that stand for money, and the count of its events. */
const ORDER_COLUMNS = {
  settled_received: 'balances',
  settled_paid: 'balances',
  settled_fee: 'balances',
  settled_network_fee: 'balances',
  refund_units: 'balances',
  refund_network_fee: 'balances',
  sequence: 'events',
} as const

async function orderRows(superuser: Superuser): Promise<Place[]> {
  const places: Place[] = []
  for (const [column, check] of Object.entries(ORDER_COLUMNS)) {
    const rows = await superuser.rows<{ order_id: string }>(
      `SELECT order_id FROM orders WHERE ${column} > 1 ORDER BY order_id`,
    )
    places.push(
      ...rows.map(({ order_id }) => ({
        kind: column === 'sequence' ? "an order's sequence" : "an order's settlement",
        places: [order_id],
        named: { subject: order_id, check },
        asset: null,
        seenUnits: 0n,
        bend: (sign: bigint) =>
          superuser.change(`UPDATE orders SET ${column} = ${column} + $2 WHERE order_id = $1`, [
            order_id,
            sign,
          ]),
      })),
    )
  }
  return places
}

async function houseRows(superuser: Superuser): Promise<Place[]> {
  const rows = await superuser.rows<{ deposit_key: string }>(
    `SELECT deposit_key FROM house_deposits WHERE state = 'confirmed' ORDER BY deposit_key`,
  )
  return rows.map(({ deposit_key }) => ({
    kind: 'a funding of the reserve',
    places: [deposit_key],
    named: { subject: deposit_key, check: 'deposits' },
    asset: null,
    seenUnits: 0n,
    bend: (sign) =>
      superuser.change('UPDATE house_deposits SET units = units + $2 WHERE deposit_key = $1', [
        deposit_key,
        sign,
      ]),
  }))
}

/** Payouts are made from the list of coins, so it has to be true by itself. */
async function coinRows(superuser: Superuser): Promise<Place[]> {
  const rows = await superuser.rows<{ tx_hash: string; output_index: number }>(
    'SELECT tx_hash, output_index FROM coins WHERE spent_by IS NULL ORDER BY tx_hash, output_index',
  )
  return rows.map(({ tx_hash, output_index }) => ({
    kind: 'a coin',
    places: ['the list of coins', 'BTC:BTC'],
    named: { subject: 'BTC:BTC', check: 'chain' },
    asset: null,
    seenUnits: 0n,
    bend: (sign) =>
      superuser.change('UPDATE coins SET satoshi = satoshi + $3 WHERE tx_hash = $1 AND output_index = $2', [
        tx_hash,
        output_index,
        sign,
      ]),
  }))
}

/** On an account chain the test can take a unit from an address of ours or bring one without any transaction. */
async function chainBalances(sandbox: TestSandbox, superuser: Superuser): Promise<Place[]> {
  const rows = await superuser.rows<{ address: Address }>(
    `SELECT address FROM addresses WHERE family = 'evm' AND (purpose = 'reserve' OR order_id IS NOT NULL)
     ORDER BY address`,
  )
  const places: Place[] = []
  for (const { address } of rows) {
    for (const asset of ASSETS.filter((id) => assetOf(id).chain !== 'BTC')) {
      const { chain, chainDecimals, decimals } = assetOf(asset)
      const held = await sandbox.devnet.balance(chain, assetOf(asset).currency, address)
      if (held === 0n) continue
      places.push({
        kind: 'a balance on the chain',
        places: [asset],
        named: { subject: asset, check: 'chain' },
        asset,
        seenUnits: 10n ** BigInt(decimals - chainDecimals),
        bend: (sign) => setBalance(sandbox, asset, address, sign),
      })
    }
  }
  return places
}

async function setBalance(
  sandbox: TestSandbox,
  asset: AssetId,
  address: Address,
  sign: bigint,
): Promise<void> {
  const { chain, currency } = assetOf(asset)
  if (chain !== 'ETH' && chain !== 'BNB') throw new Error(`a node of ${chain} cannot be made to lie`)
  const { client } = sandbox.devnet.evm(chain)
  if (currency === 'ETH' || currency === 'BNB') {
    await client.setBalance({ address, value: (await client.getBalance({ address })) + sign })
    return
  }
  const token = sandbox.devnet.networks[chain]?.tokens[currency as 'USDT'].address
  if (token === undefined) throw new Error(`there is no ${asset}`)
  const held = await client.readContract({
    address: token,
    abi: erc20Abi,
    functionName: 'balanceOf',
    args: [address],
  })
  // The token keeps its balances in its first slot.
  const index = keccak256(encodeAbiParameters([{ type: 'address' }, { type: 'uint256' }], [address, 0n]))
  await client.setStorageAt({ address: token, index, value: numberToHex(held + sign, { size: 32 }) })
}
