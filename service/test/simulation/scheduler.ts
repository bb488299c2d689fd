import { AsyncLocalStorage } from 'node:async_hooks'
import { setImmediate as drained } from 'node:timers/promises'
import { assert } from '../../src/domain/assert.ts'
import type { LockWatch } from './lock_watch.ts'

/** Something that goes on by itself: a step of an engine, what a client asked for. */
export type Task = {
  readonly name: string
  /** Throws when whoever does this is dead. */
  readonly requireAlive: () => void
  /** When it began. */
  readonly begunAtMs: number
  /** Whether it is behind a gate. */
  isBusy: boolean
  /** What it has asked since it did something that cannot be undone. */
  callsSinceAct: number
}

type Gate = { readonly task: Task; readonly number: number; open(): void }

/** How long a statement may take before it is asked whether it waits for a lock. Decides nothing but how soon we ask. */
const SOON_MS = 3

/**
 * Lets one task go on at a time. Every call to the outside is a gate: there a task may have to wait, and whoever holds
 * the scheduler picks who is next. A statement that waits for a lock counts as waiting until it is granted, so that
 * what happens depends on the picks alone and never on how fast anything was. Of several that wait for a lock
 * PostgreSQL grants it to whichever wakes up first: therefore one may wait, and the next gives up as in a deadlock.
 */
export class Scheduler {
  readonly #tasks = new AsyncLocalStorage<Task>()
  readonly #gates: Gate[] = []
  readonly #locks: LockWatch
  /** Answers how likely it is that a task has to wait at a gate; asked only when it could go on. */
  readonly #stops: () => boolean
  #current: Task | null = null
  #underWay = 0
  #ended = 0
  #waitingForLocks = 0
  #hasReleased = false
  #number = 0
  #wake: (() => void) | null = null
  /** Statements that had to wait for a lock. */
  waits = 0

  constructor(locks: LockWatch, stops: () => boolean) {
    this.#locks = locks
    this.#stops = stops
  }

  /** Gates at which somebody waits, in an order that depends on what happened alone. */
  waiting(): readonly { readonly name: string; open(): Promise<void> }[] {
    const order = this.#gates.toSorted((left, right) =>
      left.task.name === right.task.name
        ? left.number - right.number
        : left.task.name < right.task.name
          ? -1
          : 1,
    )
    return order.map((gate) => ({ name: gate.task.name, open: () => this.#open(gate) }))
  }

  /** Whether anything has begun and not ended. */
  get isIdle(): boolean {
    return this.#gates.length === 0 && this.#underWay === 0
  }

  get task(): Task {
    const task = this.#tasks.getStore()
    assert(task !== undefined, 'whatever happens is done by somebody')
    return task
  }

  /** Begins a task and lets it go on until it waits. `work` answers for its own failures. */
  async begin(task: Task, work: () => Promise<void>): Promise<void> {
    this.#current = task
    void this.#tasks.run(task, work)
    await this.#settle()
  }

  /** Opens every gate, one after the other, until nobody waits. */
  async finish(): Promise<void> {
    for (let [next] = this.waiting(); next !== undefined; [next] = this.waiting()) await next.open()
    assert(this.isIdle, 'nobody waits for a lock that nobody holds')
  }

  /** What a task does outside, behind a gate at which it may have to wait for its turn: one thing at a time. */
  async pass<Value>(work: () => Promise<Value>): Promise<Value> {
    const { task } = this
    task.requireAlive()
    if (task !== this.#current || task.isBusy || this.#stops()) {
      await this.#wait(task)
      task.requireAlive()
    }
    task.isBusy = true
    try {
      return await work()
    } finally {
      task.isBusy = false
    }
  }

  /** Wakes the tasks that wait at gates and for which `matches` holds; their gates throw when their doer is dead. */
  async release(matches: (task: Task) => boolean): Promise<void> {
    for (const { name, open } of this.waiting()) {
      const gate = this.#gates.find(({ task }) => task.name === name)
      if (gate !== undefined && matches(gate.task)) await open()
    }
  }

  /**
   * Something outside, for the task that asks: nobody else goes on until it is over or waits for a lock. Whoever gets
   * the lock from somebody else waits for a turn: two answers are under way then, and either may be the first to come.
   */
  async outside<Value>(work: () => Promise<Value>): Promise<Value> {
    const { task } = this
    const end = this.enter()
    try {
      return await work()
    } finally {
      end()
      if (task !== this.#current) await this.#wait(task)
    }
  }

  /** The same for what begins here and ends elsewhere; what is answered ends it, once. */
  enter(): () => void {
    this.#underWay += 1
    let isOver = false
    return () => {
      if (isOver) return
      isOver = true
      this.#underWay -= 1
      this.#ended += 1
      this.#wake?.()
    }
  }

  /** Locks are about to be let go: whoever waits for one may go on. */
  noteRelease(): void {
    this.#hasReleased = true
  }

  #wait(task: Task): Promise<void> {
    this.#number += 1
    const number = this.#number
    return new Promise((open) => this.#gates.push({ task, number, open }))
  }

  async #open(gate: Gate): Promise<void> {
    const at = this.#gates.indexOf(gate)
    if (at < 0) return
    this.#gates.splice(at, 1)
    this.#current = gate.task
    gate.open()
    await this.#settle()
  }

  /** Until everybody waits: at a gate, or for a lock. */
  async #settle(): Promise<void> {
    for (;;) {
      await drained()
      if (this.#underWay === 0) break
      if (this.#underWay === this.#waitingForLocks && !this.#hasReleased) break
      if ((await this.#nextEnd()) || this.#underWay === 0) continue
      this.#hasReleased = false
      const ended = this.#ended
      const waiting = await this.#locks.waiting()
      // What ended while we asked may have let locks go after the answer was made.
      if (waiting < this.#underWay || ended < this.#ended) {
        this.#hasReleased = true
        continue
      }
      if (waiting > 1) {
        await this.#locks.cancelLast()
        this.#hasReleased = true
        continue
      }
      this.waits += Math.max(0, waiting - this.#waitingForLocks)
      this.#waitingForLocks = waiting
    }
    this.#waitingForLocks = this.#underWay
    this.#hasReleased = false
    this.#current = null
  }

  /** True: something outside ended. False: nothing did for a while. */
  #nextEnd(): Promise<boolean> {
    return new Promise((resolve) => {
      const timer = setTimeout(() => {
        this.#wake = null
        resolve(false)
      }, SOON_MS)
      this.#wake = () => {
        this.#wake = null
        clearTimeout(timer)
        resolve(true)
      }
    })
  }
}
