import { type Database, errorCode, type Sql } from '../../src/db/database.ts'
import { assert } from '../../src/domain/assert.ts'
import type { SignedStore, Signer } from '../../src/signer/signer.ts'
import { directLine, type Line } from './chains/line.ts'
import { linesBy, type NodeLines, type SimulatedNodes } from './chains/simulated_chains.ts'
import { deadlock, type Fault, faultAt, type Place, ProcessDied } from './faults.ts'
import type { Recorder } from './recorder.ts'
import { inSettledOrder } from './row_order.ts'
import type { Scheduler, Task } from './scheduler.ts'

/** Everything that tasks reach the outside through: each call is a gate, and any of them may go wrong. */
export type Outside = {
  readonly scheduler: Scheduler
  readonly recorder: Recorder
  /** What goes wrong here, if anything; called once for each call. */
  judge(task: Task, place: Place, what: string): Fault | null
  /** Is told of every statement that was done, and how many rows it answered. */
  witness(task: Task, what: string, values: readonly unknown[], answered: number): Promise<void>
  /** Is told of every transaction that a node is given. */
  witnessSent(task: Task, bytes: string): Promise<void>
  /** A node wants nothing of a transaction of ours now, for reasons of its own; whether it keeps it all the same. Null: it takes it. */
  refuses(chain: keyof SimulatedNodes): 'refused' | 'kept' | null
  /** Whether nothing is signed now, for as long as it takes. */
  isSignerAway(): boolean
  /** The process of this task ends. */
  kill(task: Task, where: string): void
  /** Something outside has happened: a little time has passed. */
  tick(): void
  /** An order of rows that a statement does not ask for. */
  shuffle<Row>(rows: Row[]): Row[]
}

export async function call<Value>(
  outside: Outside,
  place: Place,
  what: string,
  work: () => Promise<Value>,
): Promise<Value> {
  const { scheduler } = outside
  return scheduler.pass(async () => {
    const fault = judge(outside, place, what)
    strikeBefore(outside, place, what, fault)
    const value = await scheduler.outside(work)
    scheduler.task.requireAlive()
    strikeAfter(outside, place, what, fault)
    return value
  })
}

function judge(outside: Outside, place: Place, what: string): Fault | null {
  const { scheduler, recorder } = outside
  outside.tick()
  const fault = outside.judge(scheduler.task, place, what)
  recorder.note(scheduler.task.name, what, ...(fault === null ? [] : [fault]))
  recorder.count('calls')
  if (fault !== null) recorder.count(`fault: ${place} ${fault}`)
  return fault
}

function strikeBefore(outside: Outside, place: Place, what: string, fault: Fault | null) {
  if (fault === 'fails') throw faultAt(place, what)
  if (fault === 'deadlock') throw deadlock()
  if (fault === 'dies before') die(outside, `before ${what}`)
}

function strikeAfter(outside: Outside, place: Place, what: string, fault: Fault | null) {
  if (fault === 'answer lost') throw faultAt(place, what)
  if (fault === 'dies after') die(outside, `after ${what}`)
}

function die(outside: Outside, where: string): never {
  outside.kill(outside.scheduler.task, where)
  throw new ProcessDied(where)
}

/**
 * The real database, statement by statement. A process that dies in a transaction takes it along; of a COMMIT whose
 * answer is lost nobody can tell whether it happened.
 */
export function reachDatabase(outside: Outside, db: Database): Database {
  return {
    query: (text, values) => statement(outside, db, 'statement', text, values),
    close: async () => {},
    transaction: (work) => transaction(outside, db, work),
  }
}

async function transaction<Value>(
  outside: Outside,
  db: Database,
  work: (tx: Sql) => Promise<Value>,
): Promise<Value> {
  const { scheduler } = outside
  let fault: Fault | null = null
  let end = () => {}
  const open = (begun: () => void) =>
    db.transaction(async (tx) => {
      end()
      begun()
      try {
        const query: Sql['query'] = (text, values) =>
          statement(outside, tx, 'statement in a transaction', text, values)
        const value = await work({ query })
        await scheduler.pass(async () => {
          fault = judge(outside, 'commit', 'COMMIT')
          strikeBefore(outside, 'commit', 'COMMIT', fault)
        })
        return value
      } finally {
        scheduler.noteRelease()
        end = scheduler.enter()
      }
    })
  let ended: Promise<Value> | undefined
  try {
    // Of several that one task begins at the same time, one after the other.
    await scheduler.pass(async () => {
      end = scheduler.enter()
      await new Promise<void>((begun, failed) => {
        ended = open(begun)
        ended.catch(failed)
      })
    })
    assert(ended !== undefined, 'what was begun ends')
    const value = await ended
    end()
    scheduler.task.requireAlive()
    strikeAfter(outside, 'commit', 'COMMIT', fault)
    return value
  } finally {
    end()
  }
}

async function statement<Row extends object>(
  outside: Outside,
  sql: Sql,
  place: Place,
  text: string,
  values: readonly unknown[] = [],
): Promise<Row[]> {
  const { recorder } = outside
  const what = nameOf(text)
  try {
    const rows = await call(outside, place, what, async () => {
      const answered = await sql.query<Row>(text, values)
      await outside.witness(outside.scheduler.task, what, values, answered.length)
      return answered
    })
    const settled = rows.length > 1 ? inSettledOrder(text, rows, outside.shuffle) : rows
    recorder.note(values, '→', settled)
    return settled
  } catch (error) {
    recorder.note('→', String(error))
    // Cancelled, because another statement waits for a lock: PostgreSQL would call it this where they wait for each other.
    if (errorCode(error) === CANCELLED) throw deadlock()
    throw error
  }
}

const CANCELLED = '57014'
const names = new Map<string, string>()

function nameOf(text: string): string {
  const known = names.get(text)
  if (known !== undefined) return known
  const name = text.replaceAll(/\s+/g, ' ').trim().slice(0, 70)
  names.set(text, name)
  return name
}

export function reachNodes(outside: Outside, nodes: () => SimulatedNodes): NodeLines {
  const line =
    <Id extends keyof SimulatedNodes>(id: Id): Line<SimulatedNodes[Id]> =>
    (name, ...asked) =>
      call(outside, name === 'send' ? 'broadcast' : 'question', `${id} ${name}`, async () => {
        if (name === 'send') await outside.witnessSent(outside.scheduler.task, String(asked[0]))
        const refusal = name === 'send' ? outside.refuses(id) : null
        const said = refusal === 'refused' ? refusal : await directLine(nodes()[id])(name, ...asked)
        const answer = refusal === null ? said : 'refused'
        outside.recorder.note(answer)
        return answer as Awaited<ReturnType<ReturnType<typeof directLine<SimulatedNodes[Id]>>>>
      })
  return linesBy(line)
}

/** Of a task that signs, what ends its signing; the scheduler has to be told of what it would not see. */
const signing = new WeakMap<Task, () => void>()

/**
 * Between what it reads and what it stores a signer may load a library or ask WebCrypto, and that takes its time: nobody
 * else goes on meanwhile.
 */
export function reachSignedStore({ scheduler }: Outside, store: SignedStore): SignedStore {
  return {
    spent: (limit, nowMs) => store.spent(limit, nowMs),
    attempts: async (id) => {
      const found = await store.attempts(id)
      signing.set(scheduler.task, scheduler.enter())
      return found
    },
    lastOutflow: (orderId) => store.lastOutflow(orderId),
    insertOnce: (record, limits) => {
      signing.get(scheduler.task)?.()
      return store.insertOnce(record, limits)
    },
  }
}

export function reachSigner(outside: Outside, signer: Signer): Signer {
  const { scheduler } = outside
  return {
    addresses: (...asked) => signer.addresses(...asked),
    room: (asset) => signer.room(asset),
    lastSigned: (payoutId) => signer.lastSigned(payoutId).finally(() => signing.get(scheduler.task)?.()),
    lastOutflow: (orderId) => signer.lastOutflow(orderId),
    sign: async (intent, authority) => {
      const what = `sign ${intent.payoutId} ${intent.attempt}`
      // Signing itself goes through the database, statement by statement: only the way there and back is judged here.
      const fault = await scheduler.pass(async () => {
        const fault = judge(outside, 'signature', what) ?? (outside.isSignerAway() ? 'fails' : null)
        strikeBefore(outside, 'signature', what, fault)
        return fault
      })
      try {
        const signed = await signer.sign(intent, authority)
        strikeAfter(outside, 'signature', what, fault)
        assert(signed !== undefined, 'a signer answers')
        return signed
      } finally {
        signing.get(scheduler.task)?.()
      }
    },
  }
}
