import type { Chain } from '../../src/chains/chain.ts'
import type { Clock } from '../../src/clock.ts'
import type { Database } from '../../src/db/database.ts'
import { signedTransactions } from '../../src/db/signed_transactions.ts'
import { chainFacts } from '../../src/domain/catalog/networks.ts'
import type { Desk, EmergencyAction } from '../../src/engine/desks/desk.ts'
import type { MarketBoard } from '../../src/engine/market.ts'
import type { Log } from '../../src/engine/world.ts'
import { type SandboxPrices, sandboxPrices } from '../../src/prices/index.ts'
import type { Prices } from '../../src/prices/price_source.ts'
import type { Signer } from '../../src/signer/signer.ts'
import { openNodes, type SimulatedNodes } from './chains/simulated_chains.ts'
import { Chance } from './chance.ts'
import { acts, isExpected } from './faults.ts'
import { type Ground, START_MS } from './ground.ts'
import { Life, type LifeParts, type Step, type Topic } from './life.ts'
import { type Outside, reachDatabase, reachNodes, reachSignedStore, reachSigner } from './outside.ts'
import { drawFault, drawProfile, type Profile } from './profile.ts'
import type { Recorder } from './recorder.ts'
import { requiredDepth } from './required_depth.ts'
import { Scheduler } from './scheduler.ts'
import { Tariffs } from './tariffs.ts'
import { Witness } from './witness.ts'

/** What stands between the engine and the outside in a known-bad engine. */
export type Flaw = {
  readonly database?: (db: Database) => Database
  readonly signer?: (signer: Signer, nodes: () => SimulatedNodes) => Signer
  readonly chain?: (chain: Chain) => Chain
  /** Between it and its clients. */
  readonly desk?: (desk: Desk) => Desk
  /** What it goes by when it prices something. */
  readonly market?: (market: MarketBoard) => MarketBoard
}

/** A process through all its lives. */
export class Process {
  readonly name: string
  readonly #begin: (name: string) => Life
  life: Life
  lives = 1
  /** Steps under way, and what each topic was when a step looked last. */
  readonly running = new Set<string>()
  readonly seen = new Map<string, string>()

  constructor(name: string, begin: (name: string) => Life) {
    this.name = name
    this.#begin = begin
    this.life = begin(`${name}.1`)
  }

  restart(): void {
    this.lives += 1
    this.running.clear()
    this.seen.clear()
    this.life = this.#begin(`${this.name}.${this.lives}`)
  }
}

/** One schedule under way: the world, who lives in it, and the chance that decides what is next. */
export class Play {
  readonly ground: Ground
  readonly chance: Chance
  readonly recorder: Recorder
  readonly profile: Profile
  readonly scheduler: Scheduler
  readonly witness: Witness
  readonly prices: SandboxPrices = sandboxPrices()
  readonly processes: Process[] = []
  readonly unexpected: string[] = []
  /** Orders that ask their client, who can choose nothing because too little has come. */
  readonly hopeless = new Set<string>()
  /** What clients have asked for in EMERGENCY, by the order, and was not refused; what nobody has answered may have been taken. */
  readonly choices = new Map<string, readonly EmergencyAction[]>()
  /** What things were worth, and what payouts were said to cost. */
  readonly tariffs: Tariffs
  readonly time = { nowMs: START_MS, aheadMs: 0 }
  nodes: SimulatedNodes
  /** Nothing goes wrong any more, and nobody has to wait. */
  isCalm = false
  /** Everybody has to wait at every gate. */
  isRacing = false
  hasPrices = true
  /** It is asked, and does not answer. */
  isSignerAway = false
  readonly #lifeParts: LifeParts
  readonly #topics = new Map<Topic, number>()

  constructor(ground: Ground, seed: number, recorder: Recorder, flaw: Flaw) {
    this.ground = ground
    this.chance = new Chance(seed)
    this.recorder = recorder
    this.profile = drawProfile(seed, this.chance)
    const { stops } = this.profile
    this.scheduler = new Scheduler(
      ground.locks,
      () => !this.isCalm && (this.isRacing || this.chance.isHit(stops)),
    )
    this.nodes = openNodes(() => this.time.nowMs)
    this.witness = new Witness(
      ground.rows,
      () => this.nodes,
      () => this.time.nowMs,
      requiredDepth(this.profile.largeBtc),
    )
    this.tariffs = new Tariffs(
      this.prices,
      () => this.nodes,
      () => this.time.nowMs,
    )
    this.#lifeParts = this.#openParts(flaw)
  }

  begin(name: string): Process {
    const process = new Process(name, (life) => new Life(life, this.#lifeParts))
    this.processes.push(process)
    return process
  }

  bump(...topics: readonly Topic[]): void {
    for (const topic of topics) this.#topics.set(topic, (this.#topics.get(topic) ?? 0) + 1)
  }

  /** Time goes by, for everybody. */
  pass(durationMs: number): void {
    this.time.nowMs += durationMs
    this.bump('time')
    if (durationMs >= 60_000) this.bump('minutes')
  }

  /** Steps that a process could begin, and whether anything has happened since they looked last. */
  steps(process: Process): readonly { readonly step: Step; readonly hasNews: boolean }[] {
    if (process.life.diedAt !== null) return []
    return process.life.steps
      .filter(({ name }) => !process.running.has(name))
      .map((step) => ({ step, hasNews: process.seen.get(step.name) !== this.#stateOf(step) }))
  }

  #stateOf({ topics }: Step): string {
    return topics.map((topic) => this.#topics.get(topic) ?? 0).join()
  }

  async look(process: Process, step: Step): Promise<void> {
    const { life } = process
    process.running.add(step.name)
    process.seen.set(step.name, this.#stateOf(step))
    await this.perform(life, `${life.name} ${step.name}`, async () => {
      let hasMore = true
      try {
        hasMore = await step.run()
      } finally {
        // Not of a later life.
        if (process.life === life) {
          process.running.delete(step.name)
          if (hasMore) process.seen.delete(step.name)
        }
      }
    })
  }

  /** Begins something that a process does, until it waits; what it fails with is noted. */
  async perform(life: Life, name: string, work: () => Promise<void>): Promise<void> {
    const { requireAlive } = life
    const begunAtMs = this.time.nowMs
    const task = { name, requireAlive, begunAtMs, isBusy: false, callsSinceAct: Number.POSITIVE_INFINITY }
    await this.scheduler.begin(task, async () => {
      try {
        await work()
        this.recorder.note(name, 'is done')
      } catch (error) {
        this.recorder.note(name, 'failed:', String(error))
        if (!isExpected(error)) this.unexpected.push(`${name}: ${String(error)}`)
      }
    })
    await this.bury()
  }

  /** Whatever the dead still had under way is over. */
  async bury(): Promise<void> {
    const dead = this.processes.filter(({ life }) => life.diedAt !== null)
    if (dead.length === 0) return
    await this.scheduler.release(({ requireAlive }) =>
      dead.some(({ life }) => life.requireAlive === requireAlive),
    )
  }

  #openParts(flaw: Flaw): LifeParts {
    const { ground, scheduler, recorder, chance, time } = this
    const outside: Outside = {
      scheduler,
      recorder,
      judge: (task, place, what) => {
        if (/^INSERT INTO (facts|outflows|attempts|orders)/.test(what)) this.bump('books')
        const { callsSinceAct } = task
        task.callsSinceAct = acts.includes(place) ? 0 : callsSinceAct + 1
        return this.isCalm ? null : drawFault(chance, this.profile, place, callsSinceAct)
      },
      witness: (...seen) => this.witness.see(...seen),
      witnessSent: (task, bytes) => this.witness.seeSent(task, bytes),
      refuses: (chain) => {
        const isRefused = !this.isCalm && chance.isHit(this.profile.refusals)
        // What rippled says is in no ledger it may try again with the next ones (src/chains/xrp/broadcast.ts), at the best of times.
        const isKept = chain === 'XRP' && chance.isHit(0.5)
        if (!isRefused && !isKept) return null
        recorder.count('refused broadcasts')
        if (isKept) {
          recorder.count('refused broadcasts that a node kept')
          this.bump(chain)
        }
        return isKept ? 'kept' : 'refused'
      },
      isSignerAway: () => this.isSignerAway,
      kill: (task, where) => this.#kill(task.requireAlive, where),
      tick: () => {
        time.nowMs += 1
      },
      shuffle: (rows) => chance.shuffle(rows),
    }
    const bend = <Part>(part: Part, by: ((part: Part) => Part) | undefined) => by?.(part) ?? part
    const db = bend(reachDatabase(outside, ground.db), flaw.database)
    ground.rememberIn(reachSignedStore(outside, signedTransactions(db)))
    const signer = reachSigner(outside, ground.signer)
    return {
      db,
      signer: flaw.signer?.(signer, () => this.nodes) ?? signer,
      lines: reachNodes(outside, () => this.nodes),
      bendChain: (chain) => bend(chain, flaw.chain),
      bendDesk: (desk) => bend(desk, flaw.desk),
      bendMarket: (market) => bend(market, flaw.market),
      clock: this.#clock(),
      prices: this.#believedPrices(),
      log: this.#log(),
      reserveOf: (chain) => ground.reserve[chainFacts[chain].family],
      watched: this.profile.chains,
      sweeps: this.profile.sweeps,
      largeBtc: this.profile.largeBtc,
      randomDigits: (count) => chance.digits(count),
      randomId: () => chance.digits(20),
    }
  }

  #kill(requireAlive: () => void, where: string): void {
    const process = this.processes.find(({ life }) => life.requireAlive === requireAlive)
    if (process === undefined || process.life.diedAt !== null) return
    process.life.diedAt = where
    this.recorder.note(process.life.name, 'died', where)
    this.recorder.count('deaths')
    if (process.lives > 1) this.recorder.count('deaths after a death')
  }

  #clock(): Clock {
    const { time } = this
    return {
      nowMs: () => time.nowMs + time.aheadMs,
      wallMs: () => time.nowMs,
      fromWallMs: (wallMs) => wallMs + time.aheadMs,
      sleep: async (durationMs) => this.pass(durationMs),
      // Whoever waits for others to arrive would go on beside them: one goes on at a time.
      endOfTurn: async () => {},
    }
  }

  #believedPrices(): Prices {
    return { usd: (currency) => (this.hasPrices ? this.prices.usd(currency) : null) }
  }

  #log(): Log {
    const note = (level: string) => (facts: object, message: string) => {
      this.recorder.note(level, message, { ...facts, err: undefined })
      this.recorder.count(`log: ${message}`)
    }
    return { info: note('info'), warn: note('warn'), error: note('error') }
  }
}
