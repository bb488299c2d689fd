import type { Devnet, KeptMail } from '@cambist/devnet'
import type { MovableClock } from '../clock.ts'
import { findOrder } from '../db/orders.ts'
import { type Asset, assetOf, findAsset, nativeAsset } from '../domain/catalog/assets.ts'
import { isCurrencyCode } from '../domain/catalog/currencies.ts'
import { type ChainId, isNetworkId, networkChains } from '../domain/catalog/networks.ts'
import { toChainUnits } from '../domain/money/amount.ts'
import { formatDecimal, parseDecimal } from '../domain/money/decimal.ts'
import type { DeskOutcome, DeskRejection } from '../engine/desks/desk.ts'
import type { World } from '../engine/world.ts'
import type { PriceChange, SandboxMail, SandboxRoutes } from '../http/sandbox/sandbox_port.ts'
import type { SandboxPrices } from '../prices/index.ts'
import { steadyMiner } from './mine.ts'
import { saveSetting } from './settings.ts'

export type SandboxWorld = {
  readonly world: World
  readonly devnet: Devnet
  readonly clock: MovableClock
  readonly prices: SandboxPrices
}

/** The calls of the sandbox (docs/api.md) on real local chains. */
export function openSandboxRoutes(sandbox: SandboxWorld): SandboxRoutes {
  const { devnet, clock, world } = sandbox
  const mine = steadyMiner(world, devnet)
  // Whoever tries it out has just made something to see, and need not wait until somebody looks again.
  const looking = <Value>(chain: ChainId, made: Promise<Value>) =>
    made.finally(() => world.alarms.ring(`watch ${chain}`))
  return {
    pay: (orderId, amount) => pay(sandbox, orderId, amount),
    mine: (network, blocks) => onChain(network, (chain) => looking(chain, mine(chain, blocks))),
    reorg: (network, depth) =>
      onChain(network, (chain) => looking(chain, devnet.reorg(chain, depth).then(done))),
    replace: (txHash, to) => replace(sandbox, txHash, to),
    prices: (change) => changePrice(sandbox, change),
    clock: async (advanceSeconds) => {
      clock.setOffset(clock.offsetMs() + advanceSeconds * 1_000)
      await saveSetting(world.db, 'clock_offset_ms', clock.offsetMs())
      world.alarms.ringAll()
      return { ok: true, value: { now: clock.nowMs() } }
    },
    address: (network) =>
      onChain(network, async (chain) => ({ ok: true, value: { address: await devnet.freshAddress(chain) } })),
    balance: (network, address, currency) => readBalance(sandbox, network, address, currency),
    mail: async () => ({ ok: true, value: { mails: (await devnet.mailbox.mails()).map(showMail) } }),
  }
}

function showMail({ number, messageId, receivedAtMs, ...mail }: KeptMail): SandboxMail {
  return { id: number, message_id: messageId, sent_at: receivedAtMs, ...mail }
}

function done(): DeskOutcome<Record<string, never>> {
  return { ok: true, value: {} }
}

function wrong(field: string, message: string): { readonly ok: false; readonly rejection: DeskRejection } {
  return { ok: false, rejection: { code: 'INVALID_PARAMETER', message, details: [{ field, message }] } }
}

async function onChain<Value>(
  network: string,
  act: (chain: ChainId) => Promise<DeskOutcome<Value>>,
): Promise<DeskOutcome<Value>> {
  if (!isNetworkId(network))
    return wrong('network', `must be one of ${Object.keys(networkChains).join(', ')}`)
  return orSayNo('network', () => act(networkChains[network]))
}

/** A local node says no (a reorganisation deeper than its memory, an amount it has not): the caller's doing. */
async function orSayNo<Value>(
  field: string,
  act: () => Promise<DeskOutcome<Value>>,
): Promise<DeskOutcome<Value>> {
  try {
    return await act()
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error)
    // The first line says what is wrong; libraries go on with what they sent and their version.
    return wrong(field, message.split('\n')[0] ?? '')
  }
}

async function replace(
  { world, devnet }: SandboxWorld,
  txHash: string,
  to: string | null,
): Promise<DeskOutcome<{ readonly tx_hash: string }>> {
  if (to !== null && ![...world.chains.values()].some((chain) => chain.parseAddress(to).ok))
    return wrong('to', 'must be an address on a network of the sandbox')
  return orSayNo('tx_hash', async () => {
    const replacement = await devnet.replace(txHash, to === null ? {} : { to })
    return { ok: true, value: { tx_hash: replacement.txHash } }
  })
}

async function pay(
  { world, devnet }: SandboxWorld,
  orderId: string,
  amountText: string | null,
): Promise<DeskOutcome<{ readonly tx_hash: string }>> {
  const order = await findOrder(world.db, orderId)
  if (order === null)
    return { ok: false, rejection: { code: 'ORDER_NOT_FOUND', message: 'there is no such order' } }
  const asset = assetOf(order.terms.from)
  const units = amountText === null ? toChainUnits(order.terms.asks) : chainUnitsOf(asset, amountText)
  if (units === null)
    return wrong('amount', `must be above zero, with at most ${asset.chainDecimals} decimals`)
  return orSayNo('amount', async () => {
    const { chain } = asset
    const { depositAddress, depositTag } = order.terms
    // Elsewhere the address carries the tag.
    const memo = chain === 'EOS' && depositTag !== null ? depositTag : undefined
    const { txHash } = await devnet.send(chain, asset.currency, depositAddress, units, 1, memo)
    world.alarms.ring(`watch ${chain}`)
    return { ok: true, value: { tx_hash: txHash } }
  })
}

/** Anything the chain can carry, down to its last decimal: the sandbox pays odd amounts on purpose. */
function chainUnitsOf(asset: Asset, text: string): bigint | null {
  const units = parseDecimal(text, asset.chainDecimals)
  return units.ok && units.value > 0n ? units.value : null
}

async function changePrice(
  { world, prices }: SandboxWorld,
  change: PriceChange,
): Promise<DeskOutcome<Record<string, never>>> {
  const { code } = change
  if (!isCurrencyCode(code)) return wrong('code', 'must be a currency of the sandbox')
  const changed = 'usd' in change ? prices.set(code, change.usd) : prices.change(code, change.changePercent)
  if (!changed.ok) return wrong('usd' in change ? 'usd' : 'change_percent', changed.rejection.message)
  await saveSetting(world.db, 'prices', prices.all())
  world.alarms.ring('market')
  return { ok: true, value: {} }
}

function readBalance(
  { world, devnet }: SandboxWorld,
  network: string,
  address: string,
  currency: string | null,
): Promise<DeskOutcome<{ readonly balance: string }>> {
  return onChain(network, async (chain) => {
    const asset = currency === null ? nativeAsset(chain) : assetOn(network, currency)
    if (asset === undefined) return wrong('currency', `does not travel on ${network}`)
    const parsed = world.chains.get(chain)?.parseAddress(address)
    // One that may not be paid still has a balance.
    if (parsed?.ok === false && parsed.rejection.code !== 'address_unpayable')
      return wrong('address', `is not one on ${network}: ${parsed.rejection.message}`)
    const units = await devnet.balance(chain, asset.currency, address)
    return { ok: true, value: { balance: formatDecimal(units, asset.chainDecimals) } }
  })
}

/** `ETH` on ERC20 means ether: on request both names mean the same chain. */
function assetOn(network: string, currency: string): Asset | undefined {
  if (!isCurrencyCode(currency) || !isNetworkId(network)) return undefined
  const native = nativeAsset(networkChains[network])
  return findAsset(currency, network) ?? (native.currency === currency ? native : undefined)
}
