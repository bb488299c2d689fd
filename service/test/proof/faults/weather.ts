import { setTimeout as pause } from 'node:timers/promises'
import type { Hash } from 'viem'
import { connect as openHorizon } from '../../../src/chains/stellar/horizon.ts'
import { head as newestLedger } from '../../../src/chains/stellar/ledger.ts'
import { connect } from '../../../src/chains/xrp/rpc.ts'
import type { MovableClock } from '../../../src/clock.ts'
import { type CurrencyCode, currencyCodes } from '../../../src/domain/catalog/currencies.ts'
import { type ChainId, type NetworkId, networkChains } from '../../../src/domain/catalog/networks.ts'
import type { OrderStatus } from '../../../src/domain/orders/order.ts'
import { USD_PRICE_DECIMALS } from '../../../src/prices/price_source.ts'
import type { Chance } from '../../harness/chance.ts'
import type { Call, Verdict } from '../../harness/http_line.ts'
import type { ChainName, TestSandbox } from '../../harness/test_sandbox.ts'
import { type BadLines, TRUE_CENTS } from './bad_lines.ts'

/** How a nonce comes to be missing while later ones wait behind it. */
export type Gap =
  | 'dropped' // the node forgot the transaction
  | 'refused' // the network never takes it
  | 'forgotten' // the network took it, forgot it, and takes it no more

export type Weather = {
  readonly gaps: Readonly<Record<Gap, number>>
  readonly counts: { spikes: number; aboveCap: number; prices: number; noPrice: number }
  /** Lets blocks, time and customers' answers come until `isOver` says so. */
  until(what: string | (() => string), isOver: () => Promise<boolean>, isMining?: boolean): Promise<void>
  /** The payouts to this destination are never taken, until its order asks what to do. */
  refuse(destination: string, gap: Gap): void
  /** Makes the node forget payouts that later ones wait behind; answers to whom they went. */
  drop(orderIds: readonly string[], count: number): Promise<string[]>
  /** The simulated nodes accept some of the payouts that come next and forget them, or do as asked and cut the line. */
  forgetNext(): void
  /** This simulated node accepts whatever comes and forgets it, until it is to remember again. */
  forgetAll(chain: SimulatedName): void
  remember(chain: SimulatedName): void
  spike(chain: ChainName): Promise<void>
  endSpikes(): Promise<void>
  jump(seconds: number): void
  clear(): void
}

const SPIKE = 20n
const GWEI = 10n ** 9n
const USUAL_WEI = GWEI
const ABOVE_CAP_WEI = 600n * GWEI
/** The sandbox bids 5 sat/vB where the node has no estimate; as BTC for a thousand vbytes. */
const SPIKE_BTC_PER_KVB = '0.00100000'
const SIMULATED = ['XRP', 'XLM', 'TRX', 'EOS', 'SOL'] as const
type SimulatedName = (typeof SIMULATED)[number]
const FORGETFUL = ['none', 'drop', 'lose reply', 'drop'] as const
const BLOCKS_AHEAD = 4
const TICK_MS = 100
const SECONDS_A_TICK = 2
const PATIENCE_MS = 180_000

type Sky = {
  readonly sandbox: TestSandbox
  readonly lines: BadLines
  readonly chance: Chance
  readonly refused: Map<string, string>
  readonly expensive: Map<ChainId, bigint>
  readonly answering: Map<string, Promise<void>>
  readonly counts: Weather['counts']
}

export function openWeather(sandbox: TestSandbox, lines: BadLines, chance: Chance): Weather {
  const gaps: Record<Gap, number> = { dropped: 0, refused: 0, forgotten: 0 }
  const counts = { spikes: 0, aboveCap: 0, prices: 0, noPrice: 0 }
  const sky: Sky = {
    sandbox,
    lines,
    chance,
    refused: new Map(),
    expensive: new Map(),
    answering: new Map(),
    counts,
  }
  lines.intervene((chain, call) => interfere(sky, chain, call))
  return {
    gaps,
    counts,
    until: (what, isOver, isMining = true) =>
      blow(sky, typeof what === 'string' ? () => what : what, isOver, isMining),
    refuse: (destination, gap) => {
      gaps[gap] += 1
      sky.refused.set(destination, destination.replace(/^0x/, '').toLowerCase())
    },
    drop: async (orderIds, count) => {
      const dropped = await drop(sky, orderIds, count)
      gaps.dropped += dropped.length
      return dropped
    },
    forgetNext: () => troubleSimulated(sandbox, { submits: FORGETFUL }),
    forgetAll: (chain) =>
      sandbox.devnet.trouble(chain, { submits: Array.from({ length: 10_000 }, () => 'drop' as const) }),
    remember: (chain) => sandbox.devnet.trouble(chain, null),
    spike: (chain) => spike(sky, chain),
    endSpikes: async () => {
      for (const chain of sky.expensive.keys()) await setBaseFee(sky, chain, USUAL_WEI)
      sky.expensive.clear()
    },
    jump: (seconds) => advance(sky, seconds),
    clear: () => {
      troubleSimulated(sandbox, null)
      sky.refused.clear()
      sky.expensive.clear()
    },
  }
}

/** What the nodes are made to say, whatever chance does to the line. */
function interfere({ refused, expensive }: Sky, chain: ChainId, { method, params }: Call): Verdict {
  if (method === 'eth_sendRawTransaction') {
    const bytes = String(params?.[0])
    return [...refused.values()].some((payee) => bytes.includes(payee))
      ? { refuse: 'intrinsic gas too low' }
      : null
  }
  if (method === 'estimatesmartfee' && expensive.has(chain))
    return { tell: { feerate: SPIKE_BTC_PER_KVB, blocks: 2 } }
  return null
}

async function blow(
  sky: Sky,
  what: () => string,
  isOver: () => Promise<boolean>,
  isMining: boolean,
): Promise<void> {
  const { sandbox } = sky
  const untilMs = performance.now() + PATIENCE_MS
  while (!(await isOver())) {
    if (performance.now() > untilMs) throw new Error(`never came true: ${what()}\n${await describe(sandbox)}`)
    if (isMining) await mineSome(sky)
    advance(sky, SECONDS_A_TICK)
    await answerOrders(sky)
    lookAtPrices(sky)
    await pause(TICK_MS)
  }
}

/** A block comes when the service has seen all but the last few: it is to be kept from paying, not from watching. */
async function mineSome(sky: Sky): Promise<void> {
  const { sandbox, expensive } = sky
  const heads = await sandbox.rows<{ chain: ChainId; height: number }>(
    'SELECT chain, height FROM chain_heads',
  )
  for (const { chain, height } of heads) {
    if ((await heightOf(sandbox, chain)) - height >= BLOCKS_AHEAD) continue
    const baseFeeWei = expensive.get(chain)
    if (baseFeeWei !== undefined) await setBaseFee(sky, chain, baseFeeWei)
    await sandbox.devnet.mine(chain, 1)
  }
}

async function heightOf({ devnet }: TestSandbox, chain: ChainId): Promise<number> {
  if (chain === 'XRP') {
    const { ledger_index } = await connect(devnet.networks.XRP?.rpcUrl ?? '', 60_000).call('ledger_closed')
    return Number(ledger_index)
  }
  if (chain === 'XLM') {
    const { horizonUrl = '' } = devnet.networks.XLM ?? {}
    return (await newestLedger(openHorizon(horizonUrl, 60_000))).height
  }
  if (chain === 'TRX') {
    const { block_header } = (await (
      await fetch(`${devnet.networks.TRX?.fullNodeUrl}/wallet/getnowblock`)
    ).json()) as { block_header: { raw_data: { number: number } } }
    return block_header.raw_data.number
  }
  if (chain === 'EOS') {
    const info = await fetch(`${devnet.networks.EOS?.rpcUrl}/v1/chain/get_info`, { method: 'POST' })
    return ((await info.json()) as { last_irreversible_block_num: number }).last_irreversible_block_num
  }
  if (chain === 'SOL') {
    // Slots, skipped ones too, are what the service counts.
    const asked = {
      method: 'POST',
      body: JSON.stringify({
        jsonrpc: '2.0',
        id: 1,
        method: 'getSlot',
        params: [{ commitment: 'finalized' }],
      }),
    }
    const { result } = (await (await fetch(devnet.networks.SOL?.rpcUrl ?? '', asked)).json()) as {
      result: number
    }
    return result
  }
  if (chain === 'BTC') return (await devnet.bitcoin.rpc('getblockcount', [])) as number
  return Number(await devnet.evm(chain).client.getBlockNumber())
}

async function setBaseFee({ sandbox }: Sky, chain: ChainId, wei: bigint): Promise<void> {
  if (chain !== 'ETH' && chain !== 'BNB') return
  await sandbox.devnet.evm(chain).client.setNextBlockBaseFeePerGas({ baseFeePerGas: wei })
}

function advance({ sandbox }: Sky, seconds: number): void {
  const clock = sandbox.service.world.clock as MovableClock
  clock.setOffset(clock.offsetMs() + seconds * 1_000)
}

function troubleSimulated({ devnet }: TestSandbox, troubles: Parameters<typeof devnet.trouble>[1]): void {
  for (const network of SIMULATED) if (network in devnet.networks) devnet.trouble(network, troubles)
}

async function drop({ sandbox }: Sky, orderIds: readonly string[], count: number): Promise<string[]> {
  const waiting = await sandbox.rows<{ chain: 'ETH' | 'BNB'; address: string; tx_hash: Hash }>(
    `SELECT o.chain, o.address, a.tx_hash FROM outflows o JOIN attempts a USING (bucket, payout_id)
     WHERE o.order_id = ANY($1) AND o.state = 'broadcast' AND a.answer = 'accepted' AND o.chain IN ('ETH', 'BNB')
       AND EXISTS (SELECT FROM outflows later WHERE later.chain = o.chain AND later.nonce > o.nonce
         AND later.from_address IS NULL AND later.state = 'broadcast')
     ORDER BY md5(o.payout_id)`,
    [orderIds],
  )
  const dropped: string[] = []
  for (const { chain, address, tx_hash: hash } of waiting) {
    if (dropped.length === count) break
    const gone = await sandbox.devnet
      .evm(chain)
      .client.dropTransaction({ hash })
      .then(
        () => true,
        () => false,
      )
    if (gone) dropped.push(address)
  }
  return dropped
}

/** What waits is not mined at its price any more, and what comes has to bid twenty times as much. */
async function spike(sky: Sky, chain: ChainName): Promise<void> {
  const { sandbox, counts, expensive } = sky
  counts.spikes += 1
  if (chain === 'BTC') {
    const waiting = (await sandbox.devnet.bitcoin.rpc('getrawmempool', [])) as string[]
    for (const txid of waiting)
      await sandbox.devnet.bitcoin.rpc('prioritisetransaction', [txid, 0, -100_000_000])
    expensive.set('BTC', 1n)
    return
  }
  const isAboveCap = counts.spikes % 4 === 0
  if (isAboveCap) counts.aboveCap += 1
  expensive.set(chain, isAboveCap ? ABOVE_CAP_WEI : SPIKE * 2n * USUAL_WEI)
}

/** Customers whose order asks: some go on, some want their money back. */
async function answerOrders(sky: Sky): Promise<void> {
  const { sandbox, answering, refused, chance } = sky
  const asking = await sandbox.rows<{ order_id: string; destination: string }>(
    `SELECT order_id, destination FROM orders WHERE status = 'EMERGENCY'`,
  )
  for (const { order_id: id, destination } of asking) {
    if (answering.has(id)) continue
    refused.delete(destination)
    const answer = chooseFor(sandbox, id, chance.happens(0.5) ? 'continue' : 'refund')
    answering.set(
      id,
      answer.finally(() => answering.delete(id)),
    )
  }
}

async function chooseFor(sandbox: TestSandbox, orderId: string, wish: 'continue' | 'refund'): Promise<void> {
  try {
    const { emergency, deposit_network: network } = await sandbox.client.getOrder(orderId)
    const isOffered = emergency?.options.continue != null
    if (wish === 'continue' && isOffered) {
      await sandbox.client.chooseEmergencyAction(orderId, { action: 'continue' })
      return
    }
    const refund_address = await sandbox.devnet.freshAddress(networkChains[network as NetworkId])
    await sandbox.client.chooseEmergencyAction(orderId, { action: 'refund', refund_address })
  } catch {
    // The line to the database failed: asked again at the next look.
  }
}

/** A price is right or there is none: the venues agree to a hundredth. */
function lookAtPrices({ lines, counts }: Sky): void {
  for (const code of currencyCodes as readonly CurrencyCode[]) {
    const price = lines.book.usd(code)
    counts.prices += 1
    if (price === null) {
      counts.noPrice += 1
      continue
    }
    const truth = TRUE_CENTS[code] * 10n ** BigInt(USD_PRICE_DECIMALS - 2)
    const difference = price > truth ? price - truth : truth - price
    if (difference * 100n > truth)
      throw new Error(`${code} is believed to cost ${price} of 10^-${USD_PRICE_DECIMALS} dollars`)
  }
}

const ENDED: readonly OrderStatus[] = ['DONE', 'REFUNDED']

async function describe({ rows }: TestSandbox): Promise<string> {
  const open = await rows<{ text: string }>(
    `SELECT o.order_id || ' ' || o.status || ' ' || coalesce(string_agg(f.payout_id || ' ' || f.state || ' nonce ' ||
       coalesce(f.nonce::text, '-') || ' ' || coalesce(f.trouble, 'no trouble'), '; '), 'nothing planned') AS text
     FROM orders o LEFT JOIN outflows f USING (bucket, order_id)
     WHERE o.status <> ALL($1) GROUP BY o.order_id, o.status LIMIT 30`,
    [ENDED],
  )
  return open.map(({ text }) => text).join('\n')
}
