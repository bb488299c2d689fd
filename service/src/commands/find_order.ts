import type { Command } from 'commander'
import { CommandRefused } from '../command_refused.ts'
import type { Sql } from '../db/database.ts'
import { type Found, findByName, findByTag } from '../db/find_by_name.ts'
import { isOrderId } from '../domain/orders/identifiers.ts'
import { type Json, type OrderCommandWorld, withDatabase } from './command_world.ts'
import { table, toJson } from './table.ts'

export function registerFind(order: Command, world: OrderCommandWorld): void {
  order
    .command('find')
    .argument(
      '<text>',
      'an address, or the hash of a transaction: of a deposit, of unclaimed money or of a payout',
    )
    .argument('[tag]', 'the tag or memo, where many share the account')
    .option('--json', 'machine-readable output')
    .description('the order that an address or a transaction is of')
    .action((text: string, tag: string | undefined, options: Json) =>
      withDatabase(world, async (db) => {
        const found = await findNamed(db, text, tag ?? null)
        world.print(options.json ? toJson(found) : describeFound(found))
      }),
    )
}

/** What an address or a transaction is of ours; with a tag or memo, whose deposits it tells apart. Refuses what leads to nothing. */
async function findNamed(sql: Sql, text: string, tag: string | null): Promise<Found[]> {
  const name = text.trim()
  const found =
    tag === null ? await findByName(sql, await spellingsOf(name)) : await findByTag(sql, name, tag.trim())
  if (found.length > 0) return found
  throw new CommandRefused(
    tag === null
      ? `There is nothing of that name: ${name} is no address of ours, and no transaction of a deposit, of unclaimed money, or of a payout or another outflow.`
      : `There is nothing of that name: no order has the tag or memo ${tag} at ${name}.`,
  )
}

/** As people copy it and as it is stored: hashes in either case, with and without 0x; addresses of EVM chains with their checksum. */
async function spellingsOf(name: string): Promise<string[]> {
  const spellings = [name, name.toLowerCase(), name.toUpperCase()]
  if (/^0x[0-9a-f]{40}$/i.test(name)) {
    const { checksummed } = await import('../chains/evm/decode.ts')
    spellings.push(checksummed(name.toLowerCase()))
  }
  const hash = /^(?:0x)?([0-9a-f]{64})$/i.exec(name)?.[1]?.toLowerCase()
  if (hash !== undefined) spellings.push(hash, `0x${hash}`, hash.toUpperCase())
  return [...new Set(spellings)]
}

/** `cambist order show` takes what stands under ORDER. */
function describeFound(found: readonly Found[]): string {
  const rows = found.map(({ what, order_id, name }) => [
    what,
    order_id !== null && isOrderId(order_id) ? order_id : '-',
    name,
  ])
  const isShared = found.some(({ what }) => what === 'reserve address')
  const more = isShared
    ? '\n\nWhere many share an account (XRP, XLM, EOS), give the tag or memo behind it.'
    : ''
  return table(['IS', 'ORDER', 'NAME'], rows) + more
}
