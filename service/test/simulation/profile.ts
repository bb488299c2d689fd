import { chainFacts, depositsLie } from '../../src/domain/catalog/networks.ts'
import type { DatedId } from './chains/dated_node.ts'
import { datedRules } from './chains/dated_rules.ts'
import type { Chance } from './chance.ts'
import { type Fault, type Place, possibleFaults } from './faults.ts'

/** What has happened already when the bad times begin. */
export const beginnings = [
  'nothing',
  'created',
  'paid',
  'awaited',
  'confirmed',
  'exchanged',
  'orphaned',
  'unsigned',
  'overtaken',
  'sent',
] as const

/** Chains that a schedule is about. Two are enough for every path between them, and each costs every look. */
export type Watched = 'BTC' | 'ETH' | DatedId

const coinsAndAccounts: readonly Watched[] = ['BTC', 'ETH']
/** With tags on one account; with final ledgers; with attempts that only time keeps apart. */
const withDates: readonly [readonly Watched[], ...(readonly Watched[])[]] = [
  ['ETH', 'XRP'],
  ['ETH', 'TRX'],
  ['BTC', 'TRX'],
  ['XRP', 'TRX'],
  ['ETH', 'XLM'],
  ['BTC', 'XLM'],
  ['ETH', 'EOS'],
  ['BTC', 'EOS'],
  ['ETH', 'SOL'],
  ['BTC', 'SOL'],
  ['XLM', 'SOL'],
  ['XLM', 'EOS'],
  ['XRP', 'SOL'],
]

/** Every so many-th seed is of a schedule over chains whose transactions have an end. */
export const DATED_EVERY = 7

/** In every so many-th, usual amounts on Bitcoin are large ones. */
const LARGE_EVERY = 3

/** Whether its transactions have an end. */
export function isDated(id: Watched): id is DatedId {
  return id in datedRules
}

function chainsOf(seed: number, chance: Chance): readonly Watched[] {
  return seed % DATED_EVERY === 0 ? chance.pick(withDates) : coinsAndAccounts
}

/** What kind of times a schedule is: how busy, how bad. Some are bad in one way only, some in all. */
export type Profile = {
  readonly chains: readonly Watched[]
  readonly beginsWith: Beginning
  /** How likely a task has to wait at a gate at which it could go on. */
  readonly stops: number
  readonly turns: number
  readonly orders: number
  readonly processes: number
  /** Of all calls so many go wrong, by where. */
  readonly faults: Readonly<Record<Place, number>>
  /** Of all transactions of ours the nodes refuse so many at first. */
  readonly refusals: number
  /** Of all calls so many are the last of their process; of what cannot be undone more. */
  readonly deaths: number
  /** Of the calls right after something that cannot be undone so many go wrong, and half as many are the last. */
  readonly faultsAfterActs: number
  /** How often several are let go on in turns, statement by statement. */
  readonly races: number
  /** How heavy reorganisations and replacements, fees and prices are among what happens. */
  readonly reorgs: number
  readonly weather: number
  readonly sweeps: boolean
  /** Blocks that a deposit on the account chain waits for. */
  readonly confirmations: number
  /** From so much on a deposit on Bitcoin is large. Most reserves do not cover the real threshold. */
  readonly largeBtc: '0.1' | '1'
}

export type Beginning = (typeof beginnings)[number]

/** Most often what comes right before the money leaves. */
function drawBeginning(chance: Chance): Beginning {
  const drawn = beginnings.filter((one) => one !== 'sent')
  return chance.pick<Beginning>(['confirmed', 'exchanged', 'exchanged', 'exchanged', ...drawn])
}

/** Where transactions have an end, most often what comes after it has left. */
const datedBeginnings = [
  'nothing',
  'paid',
  'confirmed',
  'exchanged',
  'orphaned',
  'unsigned',
  'sent',
  'sent',
  'sent',
] as const

export function drawProfile(seed: number, chance: Chance): Profile {
  const chains = chainsOf(seed, chance)
  const database = chance.pick([0, 0, 0.003, 0.01, 0.03])
  const nodes = chance.pick([0, 0, 0.01, 0.05, 0.15])
  return {
    chains,
    beginsWith: chains === coinsAndAccounts ? drawBeginning(chance) : chance.pick(datedBeginnings),
    stops: chance.pick([0.01, 0.05, 0.1, 0.25]),
    turns: chance.between(30, 80),
    orders: chance.pick([1, 1, 1, 1, 2, 2, 3]),
    processes: chance.pick([1, 2, 2]),
    faults: {
      statement: database,
      'statement in a transaction': database,
      commit: database * 3,
      question: nodes,
      broadcast: chance.pick([0, nodes, 0.4]),
      signature: chance.pick([0, database, 0.2]),
    },
    refusals: chance.pick([0, 0, 0, 0.5, 1]),
    deaths: chance.pick([0, 0, 0.002, 0.01]),
    faultsAfterActs: chance.pick([0, 0, 0.1, 0.3]),
    races: chance.pick([0, 1, 3]),
    reorgs: chance.pick([0, 2, 8]),
    weather: chance.pick([0, 1, 2]),
    sweeps: chance.isHit(0.2) && chains.some(isSwept),
    confirmations: chance.isHit(0.05) ? 12 : chance.pick([2, 3, 4]),
    largeBtc: seed % LARGE_EVERY === 0 ? '0.1' : '1',
  }
}

/** Whether deposits lie on addresses of their own there. */
export function isSwept(id: Watched): boolean {
  return depositsLie[chainFacts[id].family] === 'addresses'
}

/** These come seldom, and nowhere else is a death as dangerous. */
const deadlier: Partial<Record<Place, number>> = { broadcast: 60, signature: 40, commit: 3 }

/** Within so many calls an act is written down. */
const AFTER_ACT_CALLS = 4

/** What goes wrong at a place this time. */
export function drawFault(
  chance: Chance,
  { faults, deaths, faultsAfterActs }: Profile,
  place: Place,
  callsSinceAct: number,
): Fault | null {
  const least = callsSinceAct < AFTER_ACT_CALLS ? faultsAfterActs : 0
  const isDeath = chance.isHit(Math.max(deaths * (deadlier[place] ?? 1), least / 2))
  if (!isDeath && !chance.isHit(Math.max(faults[place], least))) return null
  const choices = possibleFaults[place].filter((fault) => fault.startsWith('dies') === isDeath)
  return choices[chance.between(0, choices.length - 1)] ?? null
}
