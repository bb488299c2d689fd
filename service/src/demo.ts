import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type CreatedOrder, createClient, type Order, type OrderEvent, type Retry } from '@cambist/sdk'
import { type Clock, systemClock } from './clock.ts'
import { readSandboxConfig } from './config/sandbox_config.ts'
import { type SandboxRemote, sandboxRemote } from './sandbox/remote.ts'

/** What a demo needs: the client an integrator would use, and a hand on the sandbox's chains. */
type Stage = {
  readonly client: ReturnType<typeof createClient>
  readonly sandbox: SandboxRemote
  /** The demo is over. */
  readonly signal: AbortSignal
  say(line: string): void
}

const demos: Readonly<Record<string, { readonly what: string; play(stage: Stage): Promise<Order> }>> = {
  exchange: { what: '0.05 BTC to USDT on ERC20, paid as asked', play: payAsAsked },
  underpaid: { what: 'only half is sent; the order is recalculated and goes on', play: payTooLittle },
  late: { what: 'the deposit comes after the order expired; it is refunded', play: payTooLate },
}

async function payAsAsked(stage: Stage): Promise<Order> {
  const order = await createOrder(stage)
  const story = follow(stage, order)
  await pay(stage, order)
  return story.until('DONE')
}

async function payTooLittle(stage: Stage): Promise<Order> {
  const order = await createOrder(stage)
  const story = follow(stage, order)
  await pay(stage, order, order.deposit_amount / 2)
  tellOffers(stage, await story.until('EMERGENCY'))
  stage.say('choosing: recalculate')
  await stage.client.chooseEmergencyAction(order.order_id, { action: 'recalculate' })
  return story.until('DONE')
}

async function payTooLate(stage: Stage): Promise<Order> {
  const order = await createOrder(stage)
  const story = follow(stage, order)
  stage.say('waiting until it expires (the sandbox clock is moved by 16 minutes)')
  await stage.sandbox.advanceClock(16 * 60)
  await story.until('EXPIRED')
  await pay(stage, order)
  tellOffers(stage, await story.until('EMERGENCY'))
  const refundAddress = await stage.sandbox.freshAddress('BTC')
  stage.say(`choosing: refund to ${refundAddress}`)
  await stage.client.chooseEmergencyAction(order.order_id, {
    action: 'refund',
    refund_address: refundAddress,
  })
  return story.until('REFUNDED')
}

async function createOrder({ client, sandbox, say }: Stage): Promise<CreatedOrder> {
  const pair = { from: 'BTC', from_network: 'BTC', to: 'USDT', to_network: 'ERC20', amount: 0.05 } as const
  const quote = await client.getRate({ ...pair, rate_type: 'fixed' })
  say(`quote: ${quote.from_amount} BTC → ${quote.to_amount} USDT, locked until ${quote.expires_at}`)
  const destination = await sandbox.freshAddress('ERC20')
  const order = await client.createOrder({ ...pair, rate_type: 'fixed', destination })
  say(`order ${order.order_id}: send ${order.deposit_amount} BTC to ${order.deposit_address}`)
  say(`QR: ${order.qr_code_url}`)
  return order
}

async function pay({ sandbox, say }: Stage, order: CreatedOrder, amount?: number): Promise<void> {
  const txHash = await sandbox.pay(order.order_id, amount)
  say(`paid ${amount ?? order.deposit_amount} BTC: ${txHash}`)
}

function tellOffers({ say }: Stage, order: Order): void {
  const { reasons, options } = order.emergency ?? {}
  say(`needs a decision: ${reasons?.join(', ')}`)
  if (options?.continue)
    say(`  continue     pays ${options.continue.receive_amount} ${order.receive_currency}`)
  if (options?.recalculate)
    say(`  recalculate  pays ${options.recalculate.receive_amount} ${order.receive_currency}`)
  if (options?.refund) say(`  refund       returns ${options.refund.refund_amount} ${order.deposit_currency}`)
}

const PROGRESS_MS = 250
const WAIT_MS = 180_000

/** The order's events as they come: however short a status lasts, it is shown. */
function follow({ client, signal, say }: Stage, { order_id: id }: CreatedOrder) {
  const events: AsyncIterator<OrderEvent> = client.followOrder(id, { signal })
  return {
    /** The order as it was when it came to `status`. */
    async until(status: Order['status']): Promise<Order> {
      const clock = systemClock()
      const end = new AbortController()
      const late = clock.sleep(WAIT_MS, end.signal).then(() => 'late' as const)
      const progress = showProgress(() => client.getOrder(id), clock, end.signal)
      try {
        for (;;) {
          const next = await Promise.race([events.next(), late])
          if (next === 'late') throw new Error(`the order is not ${status} after ${WAIT_MS / 1_000} s`)
          if (next.done) throw new Error(`the order has ended and is not ${status}`)
          clearProgress()
          say(describe(next.value.data))
          if (next.value.data.status === status) return next.value.data
        }
      } finally {
        end.abort()
        await progress
      }
    },
  }
}

function describe(order: Order): string {
  const detail: Partial<Record<Order['status'], string>> = {
    NEW: 'waiting for the deposit',
    PENDING: `deposit seen: ${order.deposit_tx_hash}`,
    EXCHANGE: 'confirmed, exchanging',
    WITHDRAW: `payout sent: ${order.withdraw_tx_hash}`,
    DONE: `${order.receive_final_amount} ${order.receive_currency} paid`,
    EXPIRED: 'no payment came in time',
    EMERGENCY: 'waiting for a decision',
    REFUND: 'the deposit is being returned',
    REFUNDED: `${order.refund?.amount} ${order.refund?.currency} returned`,
  }
  return `${order.status.padEnd(10)}${detail[order.status] ?? ''}`
}

/** A line that moves while nothing changes. */
async function showProgress(look: () => Promise<Order>, clock: Clock, signal: AbortSignal): Promise<void> {
  const startedMs = clock.wallMs()
  while (process.stdout.isTTY && !signal.aborted) {
    // What fails is told by the events; here only the line stands still.
    const order = await look().catch(() => null)
    if (order === null || signal.aborted) return
    const [seen, required] = [order.deposit_confirmations, order.deposit_required_confirmations]
    const bar = '█'.repeat(seen) + '░'.repeat(required - seen)
    const seconds = Math.round((clock.wallMs() - startedMs) / 1_000)
    process.stdout.write(
      `\r  ${order.status.padEnd(10)}${bar} ${seen}/${required} confirmations, ${seconds} s `,
    )
    await clock.sleep(PROGRESS_MS, signal)
  }
}

function clearProgress(): void {
  if (process.stdout.isTTY) process.stdout.write('\r\x1b[2K')
}

const WORTH_SAYING_MS = 3_000

async function main(): Promise<void> {
  const name = process.argv[2] ?? 'exchange'
  const demo = demos[name]
  if (demo === undefined) {
    const list = Object.entries(demos).map(
      ([each, { what }]) => `  npm run demo -- ${each.padEnd(12)}${what}`,
    )
    throw new Error([`there is no demo "${name}"; there are:`, ...list].join('\n'))
  }
  const file = join(readSandboxConfig(process.env).dataDir, 'sandbox.json')
  if (!existsSync(file))
    throw new Error('no sandbox is running; start one in another terminal with: npm start')
  const { base_url: baseUrl, api_key: apiKey, api_secret: apiSecret } = JSON.parse(readFileSync(file, 'utf8'))
  const over = new AbortController()
  const say = (line: string) => console.log(`  ${line}`)
  const onRetry = ({ delayMs, error }: Retry) => {
    // What is away for a moment only is not worth a line.
    if (delayMs >= WORTH_SAYING_MS) say(`${error.message}; asking again in ${Math.round(delayMs / 1_000)} s`)
  }
  const stage: Stage = {
    client: createClient({ baseUrl, apiKey, apiSecret, onRetry }),
    sandbox: sandboxRemote(baseUrl),
    signal: over.signal,
    say,
  }
  console.log(`${demo.what}\n`)
  const done = await demo.play(stage).finally(() => over.abort())
  console.log(`\n  deposit  ${done.deposit_tx_hash}`)
  console.log(done.refund ? `  refund   ${done.refund.tx_hash}` : `  payout   ${done.withdraw_tx_hash}`)
}

try {
  await main()
} catch (error) {
  console.error(error instanceof Error ? error.message : error)
  process.exitCode = 1
}
