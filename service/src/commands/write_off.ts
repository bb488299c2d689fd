import type { Command } from 'commander'
import { CommandRefused } from '../command_refused.ts'
import { show } from '../engine/books/audit_order.ts'
import type { Said } from '../engine/books/operator_word.ts'
import { writeOff } from '../engine/books/write_off.ts'
import { type Json, type OrderCommandWorld, withDatabase } from './command_world.ts'
import { operatorHere } from './operator_here.ts'
import { readReason } from './read_reason.ts'
import { resolveOrderId } from './show_order.ts'
import { toJson } from './table.ts'

export function registerWriteOff(order: Command, world: OrderCommandWorld): void {
  order
    .command('write-off')
    .argument('<id>', 'the order id, or its last 8 digits')
    .requiredOption('--because <why>', 'goes into the audit log')
    .option('--json', 'machine-readable output')
    .description('book against capital what is missing of the deposits that an order was paid for')
    .action((id: string, { because, json }: Json & { because: string }) =>
      withDatabase(world, async (db, place) => {
        const reason = readReason(because)
        const said = await writeOff({ ...place, by: operatorHere() }, await resolveOrderId(db, id), reason)
        if (!said.ok) throw new CommandRefused(said.rejection.message)
        world.print(json ? toJson(said.value) : describe(said.value))
      }),
    )
}

function describe({ about, asset, units, entryKey, auditChain }: Said): string {
  return [
    `Wrote off ${show(asset, units)} of ${about} against capital, as ${entryKey}.`,
    `It is in the audit log: cambist audit show ${auditChain}`,
  ].join('\n')
}
