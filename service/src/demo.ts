import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type CreatedOrder, createClient, type Order } from '@cambist/sdk'
import { systemClock } from './clock.ts'
import { readSandboxConfig } from './config/sandbox_config.ts'
import { type SandboxRemote, sandboxRemote } from './sandbox/remote.ts'

/** What a demo needs: the client an integrator would use, and a hand on the sandbox's chains. */
type Stage = {
  readonly client: ReturnType<typeof createClient>
  readonly sandbox: SandboxRemote
  say(line: string): void
}

const demos: Readonly<Record<string, { readonly what: string; play(stage: Stage): Promise<Order> }>> = {
  exchange: { what: '0.05 BTC to USDT on ERC20, paid as asked', play: payAsAsked },
  underpaid: { what: 'only half is sent; the order is recalculated and goes on', play: payTooLittle },
  late: { what: 'the deposit comes after the order expired; it is refunded', play: payTooLate },
}

async function payAsAsked(stage: Stage): Promise<Order> {
  const order = await createOrder(stage)
  await pay(stage, order)
  return follow(stage, order, ['DONE'])
}

async function payTooLittle(stage: Stage): Promise<Order> {
  const order = await createOrder(stage)
  await pay(stage, order, order.deposit_amount / 2)
  const stuck = await follow(stage, order, ['EMERGENCY'])
  tellOffers(stage, stuck)
  stage.say('choosing: recalculate')
  await stage.client.chooseEmergencyAction(order.order_id, { action: 'recalculate' })
  return follow(stage, order, ['DONE'])
}

async function payTooLate(stage: Stage): Promise<Order> {
  const order = await createOrder(stage)
  stage.say('waiting until it expires (the sandbox clock is moved by 16 minutes)')
  await stage.sandbox.advanceClock(16 * 60)
  await follow(stage, order, ['EXPIRED'])
  await pay(stage, order)
  const stuck = await follow(stage, order, ['EMERGENCY'])
  tellOffers(stage, stuck)
  const refundAddress = await stage.sandbox.freshAddress('BTC')
  stage.say(`choosing: refund to ${refundAddress}`)
  await stage.client.chooseEmergencyAction(order.order_id, {
    action: 'refund',
    refund_address: refundAddress,
  })
  return follow(stage, order, ['REFUNDED'])
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

const POLL_MS = 250
const WAIT_MS = 180_000

/** Shows every change of status, and a line that moves while nothing changes. */
async function follow({ client, say }: Stage, order: CreatedOrder, until: Order['status'][]): Promise<Order> {
  const clock = systemClock()
  const startedMs = clock.wallMs()
  let shown = ''
  for (;;) {
    const now = await client.getOrder(order.order_id)
    if (now.status !== shown) {
      clearProgress()
      say(describe(now))
      shown = now.status
    }
    if (until.includes(now.status)) return now
    if (clock.wallMs() - startedMs > WAIT_MS) throw new Error(`the order is still ${now.status}`)
    progress(now, clock.wallMs() - startedMs)
    await clock.sleep(POLL_MS)
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
    REFUND: 'the deposit is being returned',
    REFUNDED: `${order.refund?.amount} ${order.refund?.currency} returned`,
  }
  return `${order.status.padEnd(10)}${detail[order.status] ?? ''}`
}

function progress(order: Order, elapsedMs: number): void {
  if (!process.stdout.isTTY) return
  const seen = order.deposit_confirmations
  const required = order.deposit_required_confirmations
  const bar = '█'.repeat(seen) + '░'.repeat(required - seen)
  process.stdout.write(
    `\r  ${order.status.padEnd(10)}${bar} ${seen}/${required} confirmations, ${Math.round(elapsedMs / 1_000)} s `,
  )
}

function clearProgress(): void {
  if (process.stdout.isTTY) process.stdout.write('\r\x1b[2K')
}

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
  const say = (line: string) => console.log(`  ${line}`)
  const stage: Stage = {
    client: createClient({ baseUrl, apiKey, apiSecret }),
    sandbox: sandboxRemote(baseUrl),
    say,
  }
  console.log(`${demo.what}\n`)
  const done = await demo.play(stage)
  console.log(`\n  deposit  ${done.deposit_tx_hash}`)
  console.log(done.refund ? `  refund   ${done.refund.tx_hash}` : `  payout   ${done.withdraw_tx_hash}`)
}

try {
  await main()
} catch (error) {
  console.error(error instanceof Error ? error.message : error)
  process.exitCode = 1
}
