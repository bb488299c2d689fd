import { LEDGERS_TO_LIVE } from '../../src/chains/xrp/bid.ts'
import { chainFacts } from '../../src/domain/catalog/networks.ts'
import type { Fate } from './chains/branch.ts'
import type { DatedId } from './chains/dated_node.ts'
import { datedRules } from './chains/dated_rules.ts'
import { outsideAddress } from './customers.ts'
import { payReserve, wholeUnits } from './ground.ts'
import type { Play } from './play.ts'
import { isDated, type Watched } from './profile.ts'

/** Something that happens outside, more likely the more it weighs. */
export type Happening = { readonly name: string; readonly weight: number; happen(): void | Promise<void> }

/** What may happen to the chains, to prices and to time. */
export function natureOf(play: Play): readonly Happening[] {
  const { profile } = play
  const { weather, reorgs, chains } = profile
  return [
    ...chains.flatMap((id) => happeningsOn(play, id)),
    { name: 'a moment passes', weight: 1.5, happen: () => play.pass(play.chance.pick([300, 1_100, 2_500])) },
    { name: 'a claim runs out', weight: 0.5, happen: () => play.pass(play.chance.pick([7_000, 61_000])) },
    { name: 'minutes pass', weight: 0.2, happen: () => play.pass(play.chance.pick([185_000, 300_000])) },
    {
      name: 'much time passes',
      weight: 0.1 + profile.refusals,
      happen: () => play.pass(play.chance.pick([910_000, 1_900_000])),
    },
    { name: 'the clock is put forward', weight: 0.1 * weather, happen: () => putForward(play) },
    { name: 'a price moves', weight: 0.5 * weather, happen: () => movePrice(play) },
    { name: 'prices come and go', weight: 0.15 * weather, happen: () => togglePrices(play) },
    {
      name: 'the signer comes and goes',
      weight: play.isSignerAway ? 0.5 : 0.1 * weather,
      happen: () => toggleSigner(play),
    },
    { name: 'the reserve is topped up', weight: 0.1, happen: () => topUp(play) },
    ...(reorgs === 0 ? [] : chains.filter((id) => depthMax(id) > 0).map((id) => reorganisation(play, id))),
    {
      name: 'somebody makes an account on XLM',
      weight: play.nodes.XLM.awaited().length === 0 ? 0 : 15,
      happen: () => makeAccount(play),
    },
    {
      name: 'BTC is reorganised below what was paid out',
      weight: sourcesWithinReach(play).length === 0 ? 0 : 0.15 * reorgs,
      happen: () => overtake(play),
    },
  ]
}

function happeningsOn(play: Play, id: Watched): Happening[] {
  const node = play.nodes[id]
  const waits = node.mempool().length > 0
  const isFresh = node.depth() <= blocksToConfirm(id)
  const { weather, reorgs } = play.profile
  return [
    {
      name: `${id} mines`,
      weight: waits ? 4 : isFresh ? 0.5 : 0.02,
      happen: () => mine(play, id, play.chance.pick([1, 1, 2])),
    },
    {
      name: `${id} mines deep`,
      weight: waits || isFresh ? 2 : 0.02,
      happen: () => mine(play, id, blocksToConfirm(id) + play.chance.between(-1, 1)),
    },
    { name: `${id} replaces`, weight: waits ? 0.3 * reorgs : 0, happen: () => replace(play, id) },
    { name: `${id} forgets`, weight: waits ? 0.15 * weather : 0, happen: () => forget(play, id) },
    {
      name: `${id} is congested`,
      weight: weightOfCongestion(play, id),
      happen: () => congest(play, id),
    },
    { name: `${id} fees move`, weight: 0.15 * weather, happen: () => moveFees(play, id) },
  ]
}

/** Where transactions have an end, they see it in this way only. */
function weightOfCongestion({ nodes, profile }: Play, id: Watched): number {
  if (isDated(id)) return nodes[id].hasDated() ? 15 : 0
  return nodes[id].mempool().length > 0 ? 0.4 * profile.weather : 0
}

/** Sometimes a transaction has to wait although it pays enough. */
function mine(play: Play, id: Watched, blocks: number): void {
  const leaves = play.chance.pick([0, 0, 0.5])
  play.nodes[id].mine(Math.max(1, blocks), () => !play.chance.isHit(leaves))
  play.recorder.count('blocks', Math.max(1, blocks))
  play.bump(id)
}

function reorganisation(play: Play, id: Watched): Happening {
  return {
    name: `${id} is reorganised`,
    weight: 0.15 * play.profile.reorgs,
    happen: () => {
      const { chance, nodes } = play
      const most = depthMax(id)
      const newest = nodes[id].depth()
      // The newest block that has anything in it, or any.
      reorganise(play, id, newest <= most && chance.isHit(0.5) ? newest : chance.between(1, most))
    },
  }
}

/** How many blocks a chain may lose; one more than what a deposit waits for, where nothing forbids it. */
export function depthMax(id: Watched): number {
  return isDated(id) ? datedRules[id].reversible() : chainFacts[id].confirmations + 1
}

/** After so many blocks what is in the first of them is as deep as a deposit has to be, by what is told. */
export function blocksToConfirm(id: Watched): number {
  const { confirmations } = chainFacts[id]
  const isUntold = isDated(id) && !datedRules[id].tellsReversible
  return confirmations + (isUntold ? datedRules[id].reversible() : 0)
}

/** Not as deep as what there was before anybody watched. */
const OVERTAKEN_DEPTH_MAX = 12

/**
 * What was deep enough to be spent is in no block any more, after it was sent on to somebody: its sender has spent it
 * otherwise, or everybody has forgotten it for a while.
 */
export function overtake(play: Play): void {
  const { chance, nodes, recorder } = play
  const [source] = chance.shuffle(sourcesWithinReach(play))
  if (source === undefined) return
  const { depth, txHash } = source
  const isSpent = chance.isHit(0.7)
  reorganise(play, 'BTC', depth, new Map([[txHash, isSpent ? 'lost' : 'waits']]))
  if (!isSpent) nodes.BTC.forget(txHash)
  recorder.count(`coins ${isSpent ? 'lost' : 'forgotten'} after they were paid out`)
}

function sourcesWithinReach({ nodes, profile }: Play) {
  if (!profile.chains.includes('BTC')) return []
  return nodes.BTC.sources().filter(({ depth }) => depth <= OVERTAKEN_DEPTH_MAX)
}

/** The newest `depth` blocks lose; what was in them stays, waits again or is lost, which one is drawn where not given. */
export function reorganise(play: Play, id: Watched, depth: number, fates = new Map<string, Fate>()): void {
  const { chance, recorder, nodes } = play
  const mood = chance.pick<Fate | 'mixed'>(['stays', 'waits', 'lost', 'mixed', 'mixed'])
  const fate = (txHash: string): Fate => {
    const drawn =
      fates.get(txHash) ?? (mood === 'mixed' ? chance.pick<Fate>(['stays', 'waits', 'lost']) : mood)
    fates.set(txHash, drawn)
    return drawn
  }
  const node = nodes[id]
  node.reorg({ depth, longer: chance.between(1, 2), fate })
  recorder.count('reorgs')
  const isBelow = depth > blocksToConfirm(id)
  recorder.count(`reorg: ${id} ${isBelow ? 'below' : 'within'} the confirmations`)
  play.bump(id)
}

/** A deposit that waits is sent anew: another amount, to somebody else, or only dearer. */
function replace(play: Play, id: Watched): void {
  const { chance, nodes, recorder } = play
  const [chosen] = chance.shuffle(nodes[id].outsiders())
  if (chosen === undefined) return
  const { txHash, payments } = chosen
  const change = chance.pick(['amount', 'address', 'fee'])
  const altered = payments.map(({ to, asset, units }) => ({
    asset,
    to: change === 'address' ? outsideAddress(asset, 'somebody else') : to,
    units: change === 'amount' ? (units * 2n) / 3n : units,
  }))
  nodes[id].replaceOutside(txHash, altered)
  recorder.count(`replaced deposit: ${change}`)
  play.bump(id)
}

function forget(play: Play, id: Watched): void {
  const [txHash] = play.chance.shuffle(play.nodes[id].mempool())
  if (txHash === undefined) return
  play.nodes[id].forget(txHash)
  play.recorder.count('forgotten transactions')
  play.bump(id)
}

function moveFees(play: Play, id: Watched): void {
  const { chance, nodes, recorder } = play
  const times = chance.pick([1n, 4n, 20n])
  recorder.count('fee moves')
  if (id === 'BTC') {
    nodes.BTC.milliSatPerVb = 5_000n * times
    nodes.BTC.mineMilliSatPerVb = chance.pick([1_000n, 5_000n * times])
    nodes.BTC.relayMilliSatPerVb = chance.pick([1_000n, 1_000n, 5_000n * times])
  } else if (id === 'ETH') {
    nodes.ETH.baseWei = 10n ** 9n * times
    nodes.ETH.relayWei = chance.pick([1n, 1n, 10n ** 9n * times])
  } else {
    nodes[id].fee = 1_000n * times
  }
  play.bump(id)
}

/** What was about to make it fails in the next ledger: it costs its fee, and pays nothing. */
function makeAccount(play: Play): void {
  const { chance, nodes, recorder } = play
  const [address] = chance.shuffle(nodes.XLM.awaited())
  if (address === undefined) return
  nodes.XLM.opened.add(address)
  nodes.XLM.mine()
  recorder.count('accounts made before we made them')
  play.bump('XLM')
}

/** What waits is not mined for so long that its fee is raised, or that its time is over. */
function congest(play: Play, id: Watched): void {
  const { nodes, recorder } = play
  nodes.BTC.mineMilliSatPerVb = 20_000n
  nodes.ETH.baseWei = 6n * 10n ** 9n
  recorder.count('congestions')
  play.bump(id)
  play.pass(id === 'BTC' ? 1_900_000 : 185_000)
  if (isDated(id)) {
    nodes[id].mine(blocksToRunOut(id), () => false)
    recorder.count('times that ran out')
  }
}

/** Where the time that has passed is not enough, so many ledgers or slots. */
function blocksToRunOut(id: DatedId): number {
  return id === 'XLM' || id === 'EOS' ? depthMax(id) + 1 : LEDGERS_TO_LIVE + 1
}

function movePrice({ chance, prices, recorder }: Play): void {
  prices.change(chance.pick(['BTC', 'ETH']), chance.pick(['-5', '-1', '1', '5']))
  recorder.count('price moves')
}

function togglePrices(play: Play): void {
  play.hasPrices = !play.hasPrices
  play.recorder.count('prices come and go')
}

function toggleSigner(play: Play): void {
  play.isSignerAway = !play.isSignerAway
  play.recorder.count('the signer comes and goes')
  play.bump('time')
}

function putForward(play: Play): void {
  play.time.aheadMs += play.chance.pick([60_000, 900_000])
  play.recorder.count('clock put forward')
  play.bump('time')
}

/** In whole coins. */
const topUps = { XRP: 60_000n, XLM: 375_000n, TRX: 500_000n, EOS: 185_000n, SOL: 1_000n } as const

export function topUp(play: Play): void {
  const { nodes, ground, profile } = play
  nodes.BTC.pay([{ address: ground.reserve.bitcoin, satoshi: 150_000_000n }], 500_000n)
  for (const [asset, whole] of [
    ['ETH:ETH', 40n],
    ['USDT:ERC20', 100_000n],
  ] as const) {
    nodes.ETH.pay([{ to: ground.reserve.evm, asset, units: wholeUnits(asset, whole) }], 10n ** 12n)
  }
  for (const id of profile.chains.filter(isDated)) payReserve(nodes[id], ground.reserve, id, topUps[id])
  play.recorder.count('reserve top-ups')
  play.bump(...profile.chains)
}
