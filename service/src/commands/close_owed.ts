import type { Command } from 'commander'
import { CommandRefused } from '../command_refused.ts'
import { show } from '../engine/books/audit_order.ts'
import { type ClosedOwed, closeOwed } from '../engine/books/close_owed.ts'
import { type Json, type OrderCommandWorld, withDatabase } from './command_world.ts'
import { describeLoss } from './describe_loss.ts'
import { noteBefore } from './note_before.ts'
import { operatorHere } from './operator_here.ts'
import { readReason } from './read_reason.ts'
import { toJson } from './table.ts'

export function registerCloseOwed(order: Command, world: OrderCommandWorld): void {
  order
    .command('close-owed')
    .argument('<payout-id>', 'as `ledger audit` and `order show` name it, such as CB1621820820853908:1')
    .requiredOption('--because <why>', 'goes into the audit log, such as "to be paid by hand to 0x4f…"')
    .option('--json', 'machine-readable output')
    .description(
      'book as capital what is owed of a payout that can never be mined again: before it is paid by hand, so that it is once',
    )
    .action((payoutId: string, { because, json }: Json & { because: string }) =>
      withDatabase(world, async (_, place) => {
        const said = await closeOwed({ ...place, by: operatorHere() }, payoutId.trim(), readReason(because))
        if (!said.ok) throw new CommandRefused(said.rejection.message)
        world.print(json ? toJson(said.value) : describe(said.value))
      }),
    )
}

function describe(closed: ClosedOwed): string {
  const { about, asset, units, entryKey, auditChain, loss } = closed
  const gone = describeLoss(loss)
  return [
    `What was owed of ${about} is closed: ${show(asset, units)} are capital, as ${entryKey}.`,
    gone ?? describePayment(closed),
    `It is in the audit log: cambist audit show ${auditChain}`,
    ...(gone === null ? [noteBefore(about)] : []),
  ].join('\n')
}

function describePayment({ minedHeight }: ClosedOwed): string {
  const pay =
    minedHeight === null
      ? 'Pay it by hand, once.'
      : `It is in block ${minedHeight}, and may have moved a part: ask an explorer first, and pay by hand what is missing, once.`
  return `${pay}\nWhat leaves our own addresses for that is booked with \`cambist ledger book\`.`
}
