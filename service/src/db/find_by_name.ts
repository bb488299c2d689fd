import { type AddressFamily, chainFacts, chainIds, depositsLie } from '../domain/catalog/networks.ts'
import { HOUSE } from './books.ts'
import type { Sql } from './database.ts'
import { closingsOf } from './operator_words.ts'

/** What a name leads to, for the operator. */
export type Found = {
  /** `deposit address` and the like, `deposit`, why money is unclaimed, or what an outflow is for; with `, closed` where it is. */
  readonly what: string
  /** The order that it is of; null where it is of none. */
  readonly order_id: string | null
  /** The address, the key of the deposit, or the id of the outflow. */
  readonly name: string
}

const families: readonly AddressFamily[] = [...new Set(chainIds.map((chain) => chainFacts[chain].family))]
const tagFamilies = families.filter((family) => depositsLie[family] === 'tags')

function closed(owner: string): string {
  return `CASE WHEN ${closingsOf(owner, 'd.deposit_key')} % 2 = 1 THEN ', closed' ELSE '' END`
}

/** Addresses of ours and transactions that have one of these names, whatever they are for; the same thing in several spellings. */
export function findByName(sql: Sql, spellings: readonly string[]): Promise<Found[]> {
  return sql.query(
    `SELECT purpose || ' address' AS what, order_id, address AS name FROM addresses
       WHERE family = ANY($2) AND address = ANY($1)
     UNION ALL
     SELECT 'deposit' || ${closed('d.order_id')}, order_id, deposit_key FROM deposits AS d WHERE tx_hash = ANY($1)
     UNION ALL
     SELECT kind || ${closed(`'${HOUSE}'`)}, order_id, deposit_key FROM house_deposits AS d WHERE tx_hash = ANY($1)
     UNION ALL
     SELECT kind, CASE WHEN kind IN ('payout', 'refund') THEN order_id END, payout_id
       FROM outflows JOIN (SELECT DISTINCT bucket, payout_id FROM attempts WHERE tx_hash = ANY($1)) AS made
       USING (bucket, payout_id)
     ORDER BY 2, 1, 3`,
    [spellings, families],
  )
}

/**
 * The deposit address with this tag or memo, at an account that many share: it is the number of the key, however the address spells it, and
 * the account itself is a key of the reserve. On EOS an account that had the name before is found by its addresses.
 */
export async function findByTag(sql: Sql, account: string, tag: string): Promise<Found[]> {
  if (!/^[1-9]\d{0,8}$/.test(tag)) return []
  return sql.query(
    `SELECT 'deposit address' AS what, order_id, address AS name FROM addresses AS own
     WHERE family = ANY($3) AND purpose = 'deposit' AND key_index = $2 AND (
       address = $4
       OR EXISTS (SELECT FROM addresses AS shared
         WHERE shared.family = own.family AND shared.address = $1 AND shared.purpose = 'reserve'))
     ORDER BY address`,
    [account, Number.parseInt(tag, 10), tagFamilies, `${account}/${tag}`],
  )
}
