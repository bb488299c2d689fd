import type { Command } from 'commander'
import { CommandRefused } from '../command_refused.ts'
import { type Judged, judgeOutflow, verdictText } from '../engine/payouts/judge.ts'
import { type Json, type OrderCommandWorld, withDatabase } from './command_world.ts'
import { describeLoss } from './describe_loss.ts'
import { operatorHere } from './operator_here.ts'
import { readReason } from './read_reason.ts'
import { toJson } from './table.ts'

type Options = Json & { readonly paid?: boolean; readonly notPaid?: boolean; readonly because: string }

export function registerJudge(order: Command, world: OrderCommandWorld): void {
  order
    .command('judge')
    .argument('<payout-id>', 'as `order list --trouble` names it, such as CB1621820820853908:1')
    .option('--paid', 'what its token moved instead counts as the payment: the order ends')
    .option('--not-paid', 'it does not: the payout has failed, and its customer is asked')
    .requiredOption(
      '--because <why>',
      'goes into the audit log, such as "1 USDT that the token kept is to be sent by hand to 0x…"',
    )
    .option('--json', 'machine-readable output')
    .description('say whether a payout is paid whose token moved in another way than it was to')
    .action((payoutId: string, options: Options) => judge(world, payoutId, options))
}

async function judge(world: OrderCommandWorld, payoutId: string, options: Options): Promise<void> {
  const { paid = false, notPaid = false } = options
  if (paid === notPaid) throw new CommandRefused('Say either --paid or --not-paid.')
  const word = { payoutId: payoutId.trim(), isPaid: paid, because: readReason(options.because) }
  await withDatabase(world, async (_, place) => {
    const judged = await judgeOutflow({ ...place, by: operatorHere() }, word)
    if (!judged.ok) throw new CommandRefused(judged.rejection.message)
    world.print(options.json ? toJson(judged.value) : describe(judged.value))
  })
}

function describe(judged: Judged): string {
  const { payoutId, isPaid, txHash, moved, auditChain } = judged
  return [
    `${payoutId} is judged ${verdictText(isPaid)} by ${txHash}: ${moved}.`,
    whatFollows(judged),
    'Where `cambist ledger audit` then names a difference, book it: cambist ledger book',
    `It is in the audit log: cambist audit show ${auditChain}`,
  ].join('\n')
}

function whatFollows({ payoutId, isPaid, isOrderEnded, loss }: Judged): string {
  if (isOrderEnded) {
    const told = 'Its order has ended and stays as it is'
    if (isPaid) return `${told}.`
    const close = `An engine ends the payout within a minute; then close it, cambist order close-owed ${payoutId}`
    const gone = describeLoss(loss)
    return gone === null
      ? `${told}. Its payee is still owed the payment: send nothing yet. ${close}, and only then pay it by hand.`
      : `${told}. ${close}. ${gone}`
  }
  const next = isPaid ? 'ends its order' : 'asks its customer'
  return `An engine ${next} with the next look, within a minute.`
}
