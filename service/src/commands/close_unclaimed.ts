import type { Command } from 'commander'
import { CommandRefused } from '../command_refused.ts'
import { show } from '../engine/books/audit_order.ts'
import { type ClosedUnclaimed, closeUnclaimed, takeBackClosed } from '../engine/books/close_unclaimed.ts'
import { type Json, type OrderCommandWorld, withDatabase } from './command_world.ts'
import { noteBefore } from './note_before.ts'
import { operatorHere } from './operator_here.ts'
import { readReason } from './read_reason.ts'
import { toJson } from './table.ts'

export function registerCloseUnclaimed(order: Command, world: OrderCommandWorld): void {
  order
    .command('close-unclaimed')
    .argument('<deposit>', 'its key, as `order unclaimed` has it under DEPOSIT')
    .requiredOption(
      '--because <why>',
      'goes into the audit log, such as "to be given back to its sender, 0x…"',
    )
    .option(
      '--gone',
      'what is closed has left its chain, or is another amount by now: take it off capital again',
    )
    .option('--even-so', 'close also what `order unclaimed` says `no` of: it may have been paid already')
    .option('--json', 'machine-readable output')
    .description(
      'book unclaimed money as capital: before it is given back, so that it is once, or because it is ours',
    )
    .action((deposit: string, { because: why, gone, evenSo, json }: Options) =>
      withDatabase(world, async (_, opened) => {
        if (gone && evenSo) throw new CommandRefused('Either --gone or --even-so.')
        const [place, because] = [{ ...opened, by: operatorHere() }, readReason(why)]
        const said = gone
          ? await takeBackClosed(place, deposit, because)
          : await closeUnclaimed(place, deposit, because, evenSo ? 'even so' : null)
        if (!said.ok) throw new CommandRefused(said.rejection.message)
        world.print(json ? toJson(said.value) : describe(said.value))
      }),
    )
}

type Options = Json & { readonly because: string; readonly gone?: boolean; readonly evenSo?: boolean }

function describe({ about, asset, units, entryKey, auditChain, doubt }: ClosedUnclaimed): string {
  const [done, size] = units < 0n ? ['no longer closed: it is gone', -units] : ['closed', units]
  const booked =
    entryKey === null
      ? `${show(asset, size)}, which the books do not have.`
      : `${show(asset, size)} ${units < 0n ? 'are taken off capital again' : 'are capital'}, as ${entryKey}.`
  return [
    ...(doubt === null ? [] : [`no: ${doubt}. Send nothing that may have been paid already.`]),
    `${about} is ${done}. ${booked}`,
    `It is in the audit log: cambist audit show ${auditChain}`,
    ...(units < 0n ? [] : [noteBefore(about)]),
  ].join('\n')
}
