import { randomBytes } from 'node:crypto'
import { openChainFile } from './chain_file.ts'
import { type Change, createHistory, type Draft, draftOn, type State, takeOver } from './state.ts'

/** The four things that differ from network to network, all plain data (JSON, and bigint). */
export type Kind = {
  /** An account, a coin, a contract's storage slot. */
  entry: unknown
  tx: { readonly id: string }
  /** What became of a transaction in its block. */
  result: unknown
  /** What closes a block: its hash, and whatever else the network says of a block. */
  seal: { readonly hash: string }
}

export type Included<K extends Kind> = { readonly tx: K['tx']; readonly result: K['result'] }

export type OpenBlock<K extends Kind> = {
  readonly height: number
  readonly parentHash: string
  readonly timeMs: number
  /** Random: two blocks at one height differ, though both are empty. */
  readonly salt: string
  readonly included: readonly Included<K>[]
}

export type Block<K extends Kind> = OpenBlock<K> & { readonly seal: K['seal'] }

/** Where a transaction runs. */
export type Place = { readonly height: number; readonly timeMs: number; readonly index: number }

export type Rules<K extends Kind> = {
  /** Who holds what before the first block. */
  genesis(state: Draft<K['entry']>): void
  /**
   * Runs a transaction. Its changes count only when it is included (and so also when it failed and was charged); `waits`
   * keeps it for a later block, `void` throws it away.
   */
  run(tx: K['tx'], state: Draft<K['entry']>, place: Place): { included: K['result'] } | 'waits' | 'void'
  /**
   * After the last transaction. `state` knows what the block changed, and may still be changed (a reward). `parent` is
   * undefined in the first block.
   */
  seal(block: OpenBlock<K>, state: Draft<K['entry']>, parent: Block<K> | undefined): K['seal']
  /** Of the block that is there from the beginning. */
  readonly firstHeight: number
  /** The least time between two blocks, by their own timestamps. */
  readonly blockStepMs: number
  /** What a reorganisation does to the transactions of the blocks that it undoes. */
  readonly afterReorg: 'transactions wait again' | 'transactions are gone' | 'no reorganisations'
}

/** The chain as it is told at one height. */
export type View<K extends Kind> = {
  readonly head: Block<K>
  block(height: number): Block<K> | undefined
  blockOf(hash: string): Block<K> | undefined
  find(id: string): (Included<K> & { readonly block: Block<K>; readonly index: number }) | undefined
  readonly state: State<K['entry']>
}

export type SimulatedChain<K extends Kind> = {
  readonly head: Block<K>
  /** Default: now. A lower height is the chain as it was then. */
  view(height?: number): View<K>
  /** Submitted and in no block, oldest first. */
  readonly waiting: readonly K['tx'][]
  /** The state as it would be if everything that waits was included now. */
  open(): State<K['entry']>
  /** Nothing, when it waits already. Whether it is acceptable, whoever calls has asked the rules. */
  submit(tx: K['tx']): void
  /** A waiting transaction that no longer waits: replaced, expired. */
  withdraw(id: string): void
  /** `pick`: which of the waiting transactions; default all. */
  mine(blocks: number, pick?: (tx: K['tx']) => boolean): void
  /** Undoes the last `depth` blocks and makes one more than that, all empty. */
  reorg(depth: number): void
  /** Undoes the last `depth` blocks; what comes in their place is for the caller to mine. */
  undo(depth: number): void
  /** The blocks that were undone, and the last of them that held a transaction. */
  readonly lost: {
    blockOf(hash: string): Block<K> | undefined
    find(id: string): Block<K> | undefined
  }
  /** Told of every block, mined by whomever, until what it returns is called. */
  onBlock(listener: (block: Block<K>) => void): () => void
  close(): void
}

type Line<K extends Kind> =
  | { readonly block: Block<K>; readonly changes: readonly Change<K['entry']>[] }
  | { readonly submitted: K['tx'] }
  | { readonly withdrawn: string }
  | { readonly backTo: number; readonly again: readonly K['tx'][] }

/** A chain that lives in one file. The same file goes on as the same chain, with the same blocks and the same queue. */
export function openChain<K extends Kind>(path: string, rules: Rules<K>): SimulatedChain<K> {
  const file = openChainFile<Line<K>>(path)
  const books = createBooks<K>()
  for (const line of file.lines) books.enter(line)
  let opened: Filled<K> | undefined
  const write = (line: Line<K>) => {
    file.append(line)
    books.enter(line)
    opened = undefined
  }
  const listeners = new Set<(block: Block<K>) => void>()
  const mineOne = (pick: (tx: K['tx']) => boolean) => {
    const made = makeBlock(books, rules, pick)
    for (const withdrawn of made.voided) write({ withdrawn })
    write({ block: made.block, changes: made.changes })
    for (const listener of listeners) listener(made.block)
  }
  if (books.blocks.length === 0) mineOne(() => false)
  const undo = (depth: number) => write(goBack(books, rules, depth))
  const mine = (count: number, pick: (tx: K['tx']) => boolean) => {
    for (let made = 0; made < count; made++) mineOne(pick)
  }
  return {
    get head() {
      return headOf(books)
    },
    view: (height = headOf(books).height) => viewAt(books, height),
    get waiting() {
      return [...books.waiting.values()]
    },
    open: () => {
      opened ??= fill(
        rules,
        draftOn(books.history.at(headOf(books).height)),
        [...books.waiting.values()],
        nextPlace(books, rules),
      )
      return opened.draft
    },
    submit: (tx) => {
      if (books.waiting.has(tx.id)) return
      const before = opened
      write({ submitted: tx })
      // Nothing waits for this one: what was run before need not run again.
      if (before?.left.length === 0) opened = fill(rules, before.draft, [tx], nextPlace(books, rules))
    },
    withdraw: (id) => write({ withdrawn: id }),
    mine: (blocks, pick = () => true) => mine(blocks, pick),
    reorg: (depth) => {
      undo(depth)
      mine(depth + 1, () => false)
    },
    undo,
    lost: {
      blockOf: (hash) => books.lostBlocks.get(hash),
      find: (id) => books.lostBlockOf.get(id),
    },
    onBlock: (listener) => {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    close: () => file.close(),
  }
}

/** Everything that the file says, and nothing else: what was read and what was written are entered alike. */
function createBooks<K extends Kind>() {
  const blocks: Block<K>[] = []
  const history = createHistory<K['entry']>()
  const waiting = new Map<string, K['tx']>()
  const heightOf = new Map<string, number>()
  const placeOf = new Map<string, { height: number; index: number }>()
  const lostBlocks = new Map<string, Block<K>>()
  const lostBlockOf = new Map<string, Block<K>>()
  const enter = (line: Line<K>) => {
    if ('submitted' in line) waiting.set(line.submitted.id, line.submitted)
    else if ('withdrawn' in line) waiting.delete(line.withdrawn)
    else if ('block' in line) {
      const { height, included, seal } = line.block
      blocks.push(line.block)
      heightOf.set(seal.hash, height)
      history.commit(height, line.changes)
      for (const [index, { tx }] of included.entries()) {
        waiting.delete(tx.id)
        placeOf.set(tx.id, { height, index })
      }
    } else {
      for (const block of blocks.splice(line.backTo + 1 - (blocks[0]?.height ?? 0))) {
        heightOf.delete(block.seal.hash)
        lostBlocks.set(block.seal.hash, block)
        for (const { tx } of block.included) {
          placeOf.delete(tx.id)
          lostBlockOf.set(tx.id, block)
        }
      }
      history.goBack(line.backTo)
      for (const tx of line.again) waiting.set(tx.id, tx)
    }
  }
  return { blocks, history, waiting, heightOf, placeOf, lostBlocks, lostBlockOf, enter }
}

type Books<K extends Kind> = ReturnType<typeof createBooks<K>>

function headOf<K extends Kind>(books: Books<K>): Block<K> {
  const head = books.blocks.at(-1)
  if (head === undefined) throw new Error('a chain has a first block from its opening on')
  return head
}

/** The line that undoes the last blocks. */
function goBack<K extends Kind>(books: Books<K>, rules: Rules<K>, depth: number): Line<K> {
  if (rules.afterReorg === 'no reorganisations') throw new Error('a closed block of this network is final')
  const { height } = headOf(books)
  const deepest = height - rules.firstHeight
  if (depth < 1 || depth > deepest) throw new Error(`cannot undo ${depth} of ${deepest} blocks`)
  const undone = books.blocks.slice(-depth).flatMap(({ included }) => included)
  const isLost = rules.afterReorg === 'transactions are gone'
  return { backTo: height - depth, again: isLost ? [] : undone.map(({ tx }) => tx) }
}

function viewAt<K extends Kind>(books: Books<K>, height: number): View<K> {
  const first = books.blocks[0]?.height ?? 0
  const block = (at: number) => (at <= height ? books.blocks[at - first] : undefined)
  const head = block(height)
  if (head === undefined) throw new Error(`there is no block ${height}`)
  return {
    head,
    block,
    blockOf: (hash) => block(books.heightOf.get(hash) ?? Number.POSITIVE_INFINITY),
    find: (id) => {
      const place = books.placeOf.get(id)
      const found = place && block(place.height)
      const item = found?.included[place?.index ?? 0]
      return found && item && place && { ...item, block: found, index: place.index }
    },
    state: books.history.at(height),
  }
}

function nextPlace<K extends Kind>(books: Books<K>, rules: Rules<K>): Omit<Place, 'index'> {
  const parent = books.blocks.at(-1)
  if (parent === undefined) return { height: rules.firstHeight, timeMs: Date.now() }
  return { height: parent.height + 1, timeMs: Math.max(Date.now(), parent.timeMs + rules.blockStepMs) }
}

type Filled<K extends Kind> = {
  readonly draft: Draft<K['entry']>
  readonly included: readonly Included<K>[]
  readonly left: readonly K['tx'][]
  readonly voided: readonly string[]
}

/** Runs what waits, on a draft. One that waits for another (a gap in the sequence) is tried again after those that got in. */
function fill<K extends Kind>(
  rules: Rules<K>,
  draft: Draft<K['entry']>,
  waiting: readonly K['tx'][],
  place: Omit<Place, 'index'>,
): Filled<K> {
  const included: Included<K>[] = []
  const voided: string[] = []
  let left = waiting
  for (let before = -1; before !== included.length; ) {
    before = included.length
    left = left.filter((tx) => {
      const trial = draftOn(draft)
      const verdict = rules.run(tx, trial, { ...place, index: included.length })
      if (verdict === 'waits') return true
      if (verdict === 'void') voided.push(tx.id)
      else {
        takeOver(draft, trial.changes())
        included.push({ tx, result: verdict.included })
      }
      return false
    })
  }
  return { draft, included, left, voided }
}

function makeBlock<K extends Kind>(books: Books<K>, rules: Rules<K>, pick: (tx: K['tx']) => boolean) {
  const place = nextPlace(books, rules)
  const parent = books.blocks.at(-1)
  const draft = draftOn(books.history.at(place.height - 1))
  if (parent === undefined) rules.genesis(draft)
  const { included, voided } = fill(rules, draft, [...books.waiting.values()].filter(pick), place)
  const parentHash = parent?.seal.hash ?? '0'.repeat(64)
  const open = { ...place, parentHash, salt: randomBytes(8).toString('hex'), included }
  const seal = rules.seal(open, draft, parent)
  return { block: { ...open, seal }, changes: draft.changes(), voided }
}
