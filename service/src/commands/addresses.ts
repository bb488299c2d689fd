import type { Command } from 'commander'
import { CommandRefused } from '../command_refused.ts'
import { type SkipPlace, type SkippedPool, skipAddresses } from '../engine/skip_addresses.ts'
import { operatorHere } from './operator_here.ts'
import { table, toJson } from './table.ts'

/** `open` connects, and `close` is called however the command ends. */
export type AddressesCommandWorld = {
  open(): Promise<Omit<SkipPlace, 'by'> & { close(): Promise<void> }>
  print(text: string): void
}

/** Registers `skip` below `addresses`. */
export function registerAddressesCommands(addresses: Command, world: AddressesCommandWorld): void {
  addresses.description('deposit addresses')
  addresses
    .command('skip')
    .argument('<count>', 'how many further ones of each family; more than orders may have been lost')
    .option('--json', 'machine-readable output')
    .description('after a restore: give no order an address that a lost order may have, and watch them all')
    .action((count: string, options: { readonly json?: boolean }) => skip(world, parseCount(count), options))
}

async function skip(
  world: AddressesCommandWorld,
  count: number,
  { json }: { readonly json?: boolean },
): Promise<void> {
  const { close, ...place } = await world.open()
  try {
    const skipped = await skipAddresses({ ...place, by: operatorHere() }, count)
    if (!skipped.ok) throw new CommandRefused(skipped.rejection.message)
    world.print(json ? toJson(skipped.value) : describe(skipped.value))
  } finally {
    await close()
  }
}

function parseCount(text: string): number {
  const count = /^\d{1,7}$/.test(text) ? Number.parseInt(text, 10) : 0
  if (count < 1 || count > 1_000_000) throw new CommandRefused(`${text} is not a count from 1 to 1000000`)
  return count
}

function describe(skipped: readonly SkippedPool[]): string {
  return table(
    ['FAMILY', 'PURPOSE', 'WERE FREE, NOW ASSIGNED', 'DERIVED', 'NEXT INDEX'],
    skipped.map(({ family, purpose, assigned, derived, nextIndex }) => [
      family,
      purpose,
      purpose === 'deposit' ? String(assigned) : '-',
      String(derived),
      String(nextIndex),
    ]),
  )
}
