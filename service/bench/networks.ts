import { setTimeout as delay } from 'node:timers/promises'
import { type Client, createClient, type Order } from '@cambist/sdk'
import { type ChainId, chainFacts, depositsLie } from '../src/domain/catalog/networks.ts'
import { blocksToBeTold } from '../src/sandbox/mine.ts'
import { type SandboxRemote, sandboxRemote } from '../src/sandbox/remote.ts'
import type { Sandbox } from '../src/sandbox/start_sandbox.ts'
import { secondsABlock } from './block_times.ts'
import { tell } from './figure.ts'
import { inSandbox } from './in_sandbox.ts'

/**
 * How long the service keeps a customer waiting beside the chain: from the block with his deposit to PENDING, and from
 * the last confirmation to his payout in a mempool, against the time in which the real network makes a block. Blocks
 * are mined at the moment that is measured from; how slow the local chains are is no part of it.
 */
/** Each is paid in from every network, and out of another one. The first is not counted: it compiles. */
const ROUNDS = 13
const LOOK_EVERY_MS = 5
const PATIENCE_MS = 60_000

/** About a hundred dollars of each. What has none is not measured: a network is added by a line here. */
const AMOUNT = {
  BTC: '0.0015',
  ETH: '0.03',
  BNB: '0.16',
  XRP: '40',
  XLM: '250',
  TRX: '400',
  EOS: '125',
  SOL: '0.7',
} as const satisfies Partial<Record<ChainId, string>>
type Measured = keyof typeof AMOUNT
const chains = Object.keys(AMOUNT) as readonly Measured[]

/** Where connectors are told of blocks alone, and not of what waits. */
const TOLD_IN_BLOCKS: readonly ChainId[] = ['XLM', 'EOS', 'SOL']

type Lags = { readonly toPending: number[]; readonly toMempool: number[] }
type Stage = {
  readonly sandbox: Sandbox
  readonly client: Client
  readonly remote: SandboxRemote
  readonly lags: Readonly<Record<Measured, Lags>>
}

await inSandbox(async (sandbox) => {
  const { service, account } = sandbox
  const { baseUrl } = service
  const client = createClient({ baseUrl, apiKey: account.api_key, apiSecret: account.api_secret })
  const lags = Object.fromEntries(
    chains.map((chain) => [chain, { toPending: [], toMempool: [] }]),
  ) as unknown as Stage['lags']
  const stage = { sandbox, client, remote: sandboxRemote(baseUrl), lags }
  for (let round = 0; round < ROUNDS; round += 1) {
    for (const [place, from] of chains.entries()) {
      const further = 1 + (round % (chains.length - 1))
      const to = chains[(place + further) % chains.length]
      if (to !== undefined) await exchange(stage, from, to, round > 0)
    }
  }
  for (const chain of chains) report(chain, lags[chain])
})
process.exit(0)

async function exchange(stage: Stage, from: Measured, to: Measured, isCounted: boolean): Promise<void> {
  const { sandbox, client, remote, lags } = stage
  const { devnet } = sandbox
  const { order_id: id } = await client.createOrder({
    from: chainFacts[from].native,
    from_network: from,
    to: chainFacts[to].native,
    to_network: to,
    amount: AMOUNT[from],
    rate_type: 'float',
    destination: await remote.freshAddress(to),
    ...(depositsLie[chainFacts[to].family] === 'tags' && { destination_tag: '7' }),
  })
  // A payout on TRON refers to a solid block, which has to be young: on a chain that stands still there is none.
  await devnet.mine(to, blocksToBury(devnet, to))
  await remote.pay(id)
  let lastBlockMs = performance.now()
  await devnet.mine(from, blocksToBeTold(devnet, from))
  const pending = await untilOrder(stage, id, ({ status }) => status !== 'NEW')
  const toPending = performance.now() - lastBlockMs
  const confirmations = pending.deposit_required_confirmations
  if (confirmations > 1) {
    if (confirmations > 2) await devnet.mine(from, confirmations - 2)
    await untilOrder(stage, id, (order) => order.deposit_confirmations === confirmations - 1)
    lastBlockMs = performance.now()
    await devnet.mine(from, 1)
  }
  const { withdraw_tx_hash: txHash } = await untilOrder(stage, id, (order) => order.withdraw_tx_hash !== null)
  await untilOnChain(stage, to, txHash ?? '')
  const toMempool = performance.now() - lastBlockMs
  if (isCounted) {
    if (!(await wasSeenWaiting(stage, id))) lags[from].toPending.push(toPending)
    lags[to].toMempool.push(toMempool)
  }
  await devnet.mine(to, blocksToBury(devnet, to))
  await untilOrder(stage, id, ({ status }) => status === 'DONE')
}

function blocksToBury(devnet: Sandbox['devnet'], chain: ChainId): number {
  return chainFacts[chain].confirmationsLarge - 1 + blocksToBeTold(devnet, chain)
}

/** The watcher looked just between the payment and its block: the order was PENDING before what is measured began. */
async function wasSeenWaiting({ sandbox }: Stage, id: string): Promise<boolean> {
  const { db } = sandbox.service.world
  const seen = await db.query(`SELECT 1 FROM facts WHERE order_id = $1 AND fact_key LIKE '%:seen:%'`, [id])
  return seen.length > 0
}

function untilOrder({ client }: Stage, id: string, is: (order: Order) => boolean): Promise<Order> {
  return until(async () => {
    const order = await client.getOrder(id)
    const { status, deposit_confirmations, deposit_network, receive_network } = order
    const seen = `${id} from ${deposit_network} to ${receive_network} is ${status}, ${deposit_confirmations} deep`
    if (status === 'EMERGENCY') throw new Error(seen)
    return is(order) ? order : seen
  })
}

/** The node has it. Where it tells of blocks alone, one is made as soon as the service says that it was sent. */
async function untilOnChain({ sandbox }: Stage, chain: ChainId, txHash: string): Promise<void> {
  const { devnet, service } = sandbox
  if (TOLD_IN_BLOCKS.includes(chain)) await devnet.mine(chain, blocksToBeTold(devnet, chain))
  await until(async () => {
    const status = await service.world.chains.get(chain)?.lookup(txHash)
    return status === undefined || status.where === 'absent' ? `payout ${txHash} is absent` : status
  })
}

/** `look` says in words what it sees until it sees what is waited for. */
async function until<Found extends object>(look: () => Promise<Found | string>): Promise<Found> {
  const untilMs = performance.now() + PATIENCE_MS
  for (;;) {
    const found = await look()
    if (typeof found !== 'string') return found
    if (performance.now() > untilMs) throw new Error(`waited in vain: ${found}`)
    await delay(LOOK_EVERY_MS)
  }
}

function report(chain: ChainId, { toPending, toMempool }: Lags): void {
  const where = TOLD_IN_BLOCKS.includes(chain) ? 'the next block' : 'a mempool'
  for (const [name, lags] of [
    ['from the block with a deposit to PENDING', toPending],
    [`from the last confirmation to the payout in ${where}`, toMempool],
  ] as const) {
    const half = percentile(lags, 0.5)
    const most = percentile(lags, 0.95)
    if (lags.length === 0) throw new Error(`${chain}: nothing was measured ${name}`)
    tell({
      name: `${chain}: ${name}, 95 of 100`,
      value: most / (secondsABlock[chain] * 1_000),
      unit: `of the time between two blocks (${secondsABlock[chain]} s)`,
      limit: { atMost: 1 },
      detail: `${lags.length} orders: half within ${half.toFixed(0)} ms, 95 of 100 within ${most.toFixed(0)} ms`,
    })
  }
}

/** The least that is enough for this share. */
function percentile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((one, other) => one - other)
  return sorted[Math.ceil(sorted.length * share) - 1] ?? Number.NaN
}
